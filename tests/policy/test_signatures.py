"""Signatures and bearer tokens: what is genuine is named, everything else is nobody and never an exception.
Not here: HTTP headers.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.signatures import NamedSecret, SignedMessage, match_bearer, read_secret, sign, verify

NOW = 1_800_000_000.0
SECRET = b"a secret of some thirty bytes ok"
BODY = b'{"event_key": "evt-2",  "n": 1.0, "t":"\\u001B"}'
MESSAGE = SignedMessage("evt-2", "1800000000", BODY)
SECRETS = [NamedSecret("old", b"another"), NamedSecret("n8n", SECRET), NamedSecret("n8n", b"rotated in")]


# What we sign we recognise, for any secret and any bytes, and the reference library agrees on the signature.
@given(st.binary(min_size=1, max_size=64), st.text(max_size=50))
def test_round_trip(secret: bytes, text: str) -> None:
    message = SignedMessage("msg.1", "1800000000", text.encode("utf-8", "ignore"))
    signature = sign(secret, message)
    assert verify(message, signature, secrets=[NamedSecret("me", secret)], now=NOW) == "me"
    assert verify(message, signature, secrets=[NamedSecret("me", secret + b"x")], now=NOW) is None


# The header is byte for byte that of the example which the standard's own libraries test against.
def test_reference() -> None:
    message = SignedMessage("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), message) == signature


# The raw bytes are what counts: genuine odd spelling passes, one flipped bit does not.
@pytest.mark.parametrize("position", range(0, len(BODY), 7))
def test_raw_bytes(position: int) -> None:
    signature = sign(SECRET, MESSAGE)
    assert verify(MESSAGE, signature, secrets=SECRETS, now=NOW) == "n8n"
    flipped = bytearray(BODY)
    flipped[position] ^= 1
    assert verify(replace(MESSAGE, body=bytes(flipped)), signature, secrets=SECRETS, now=NOW) is None


# Time, id and body are all covered by the signature.
@pytest.mark.parametrize("change", [{"message_id": "evt-3"}, {"timestamp": "1800000001"}, {"body": b"{}"}])
def test_everything_is_covered(change: dict[str, object]) -> None:
    changed = replace(MESSAGE, **change)  # type: ignore[arg-type]
    assert verify(changed, sign(SECRET, MESSAGE), secrets=SECRETS, now=NOW) is None


# Five minutes either side are fine, a second more is not.
@pytest.mark.parametrize(
    ("age", "genuine"), [(-301, False), (-300, True), (0, True), (300, True), (301, False)]
)
def test_window(age: int, genuine: bool) -> None:
    name = verify(MESSAGE, sign(SECRET, MESSAGE), secrets=SECRETS, now=NOW + age)
    assert (name == "n8n") is genuine


# Any of several signatures may match, and both secrets of a name while they rotate.
def test_rotation() -> None:
    several = f"v1,{'A' * 44} v1a,xyz {sign(b'rotated in', MESSAGE)}"
    assert verify(MESSAGE, several, secrets=SECRETS, now=NOW) == "n8n"
    assert verify(MESSAGE, sign(b"another", MESSAGE), secrets=SECRETS, now=NOW) == "old"
    assert verify(MESSAGE, sign(SECRET, MESSAGE), secrets=[], now=NOW) is None


# Whatever else a signature header may hold is a bad signature.
@pytest.mark.parametrize(
    "signature",
    ["", " ", "v1", "v1,", "v1, ", "v2,abc", "v1,é", "v1,\ud800", "v1," + "=" * 44, "v1,\x00", ",", "v1a,x"],
)
def test_odd_signatures(signature: str) -> None:
    assert verify(MESSAGE, signature, secrets=SECRETS, now=NOW) is None


# The scheme's name is part of it: the right digest under another name is not ours.
def test_other_scheme() -> None:
    digest = sign(SECRET, MESSAGE).removeprefix("v1,")
    for odd in (f"v1a,{digest}", f"V1,{digest}", digest, f"v1,{digest}=", f"v1,{digest.rstrip('=')}"):
        assert verify(MESSAGE, odd, secrets=SECRETS, now=NOW) is None


# Odd times and ids are bad signatures even if signed with the right secret.
@pytest.mark.parametrize(
    "timestamp",
    ["", "now", "-1800000000", "1.8e9", "1800000000.0", " 1800000000", "９", "9" * 400, "+1800000000"],
)
def test_odd_times(timestamp: str) -> None:
    message = replace(MESSAGE, timestamp=timestamp)
    assert verify(message, "v1,x", secrets=SECRETS, now=NOW) is None


# An empty, endless or unencodable id is no id.
@pytest.mark.parametrize("message_id", ["", "x" * 5000, "ключ", "\ud800"])
def test_odd_ids(message_id: str) -> None:
    assert verify(replace(MESSAGE, message_id=message_id), "v1,x", secrets=SECRETS, now=NOW) is None


# Any text at all in the three headers is answered, never raised over.
@given(st.text(), st.text(), st.text(), st.floats(0, 1e12))
def test_any_text(message_id: str, timestamp: str, signature: str, now: float) -> None:
    assert verify(SignedMessage(message_id, timestamp, BODY), signature, secrets=SECRETS, now=now) is None


# A secret is whsec_ and base64; the sentence about a wrong one does not repeat it.
@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_%%%", "c2VjcmV0", "whsec_c2VjcmV", "WHSEC_c2VjcmV0", "whsec_c2V jcmV0"]
)
def test_wrong_secrets(text: str) -> None:
    with pytest.raises(ValueError, match="must be whsec_ followed by base64") as caught:
        read_secret(text)
    assert str(caught.value) == "must be whsec_ followed by base64"


# A right one gives its bytes, and stays out of what gets logged.
def test_secret() -> None:
    assert read_secret("whsec_c2VjcmV0") == b"secret"
    assert "secret'" not in repr(NamedSecret("n8n", b"secret"))
    assert "evt-2\\" not in repr(MESSAGE)


TOKENS = [NamedSecret("crm", b"tok-crm"), NamedSecret("n8n", b"tok-n8n")]


# A bearer token names its source; the scheme's case does not matter, the token's does.
@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Bearer tok-n8n", "n8n"),
        ("bearer tok-crm", "crm"),
        ("BEARER  tok-crm ", "crm"),
        ("Bearer TOK-N8N", None),
        ("Bearer tok-n8nx", None),
        ("Bearer tok-n8", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("", None),
        ("Basic tok-n8n", None),
        ("tok-n8n", None),
        ("Bearer tok-n8n tok-crm", None),
        ("Bearer tok-n8n\x00", None),
        ("Bearer ключ", None),
        ("Bearer \ud800", None),
    ],
)
def test_bearer(header: str, name: str | None) -> None:
    assert match_bearer(header, TOKENS) == name
    assert match_bearer(header, []) is None
