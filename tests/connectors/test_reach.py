"""Tests of the strict reading of URLs and of the allow-list.

Not here: connecting (test_dial).
"""

from ipaddress import ip_address

import pytest

from bot.connectors.reach import Blocked, Reach, ReachError, Target

GENEROUS = Reach.parse(
    "127.0.0.1, [::1], localhost, 169.254.169.254, 8.8.8.8, n8n.example, *.hooks.example, n8n"
)

# Each is read by some client or resolver as an address of this machine, of its network, or as another host.
ODD_SPELLINGS = [
    # numbers that resolvers take for 127.0.0.1
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0X7F000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.01/",
    "http://127.000.000.001/",
    "http://127.0.0.0x1/",
    "http://0/",
    "http://0x/",
    "http://0.0.0.0/",
    "http://00000177.1/",
    "http://127.0.0.1./",
    "http://127.0.0.256/",
    "http://1.2.3.4.5/",
    "http://425.510.425.510/",
    "http://2852039166/",
    "http://0251.0376.0251.0376/",
    "http://0xa9fea9fe/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[::]/",
    "http://[ff02::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1/",
    "http://::1/",
    "http://[127.0.0.1]/",
    "http://[::1].n8n.example/",
    "http://[::1]n8n.example/",
    "http://[v1.x]/",
    # other ways to name another host than the reader sees
    "http://localhost./",
    "http://n8n.example./",
    "http://n8n.example@127.0.0.1/",
    "http://n8n.example:80@127.0.0.1/",
    "http://user:password@n8n.example/",
    "http://@n8n.example/",
    "http://n8n.example%40evil.example/",
    "http://n8n.example%2eevil.example/",
    "http://n8n.example%00.evil.example/",
    "http://%6c%6fcalhost/",
    "http://n8n.example\\@evil.example/",
    "http://n8n.example\\.evil.example/",
    "http://n8n.example#@evil.example/",
    "http://n8n.example/#fragment",
    "http:///n8n.example/",
    "http:/n8n.example/",
    "http:n8n.example/",
    "//n8n.example/",
    "http://n8n.example:/",
    "http://n8n.example:0/",
    "http://n8n.example:080/",
    "http://n8n.example:65536/",
    "http://n8n.example:99999/",
    "http://n8n.example:80:80/",
    "http://n8n.example:-1/",
    "http://n8n.example:８０/",
    "http://n8n..example/",
    "http://.n8n.example/",
    "http://-n8n.example/",
    "http://n8n.example-/",
    "http://*.hooks.example/",
    "http://n8n。example/",
    "http://n8n．example/",
    "http://ｎ8n.example/",
    "http://①②⑦.⓪.⓪.①/",
    "http://loc\u00adalhost/",
    "http://n8n.example\u200b/",
    "http:// n8n.example/",
    " http://n8n.example/",
    "http://n8n.example/ ",
    "http://n8n.example/a b",
    "http://n8n.example/\r\nHost: evil.example",
    "http://n8n.example\r\n/",
    "http://n8n.example\t/",
    "http://n8n.example/\x00",
    "http://n8n.example/é",
    "ht\ntp://n8n.example/",
    # schemes
    "ftp://n8n.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_",
    "dict://127.0.0.1:11211/",
    "ws://n8n.example/",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "data:,x",
    "",
    "n8n.example",
    "http://",
    "http://?x",
]


# No odd spelling of a host is read at all, not even where the address that it stands for is on the list.
@pytest.mark.parametrize("url", ODD_SPELLINGS)
def test_odd_spelling_is_blocked(url: str) -> None:
    assert isinstance(GENEROUS.check_url(url), Blocked)


# With an empty list nothing may be reached.
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "https://n8n.example/", "http://8.8.8.8/", "http://[::1]/"]
)
def test_empty_list_reaches_nothing(url: str) -> None:
    assert Reach.parse("").check_url(url) == Blocked("host_not_allowed")


# A URL on the list comes back in parts: lower-case host, the scheme's port, a path with its query untouched.
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://n8n.example/webhook/x?y=%2F", Target("https", "n8n.example", 443, "/webhook/x?y=%2F")),
        ("HTTPS://N8N.Example:8443", Target("https", "n8n.example", 8443, "/")),
        ("http://n8n.example?a=B", Target("http", "n8n.example", 80, "/?a=B")),
        ("http://eu.hooks.example/A/../B", Target("http", "eu.hooks.example", 80, "/A/../B")),
        ("http://[::1]:5678/x", Target("http", "::1", 5678, "/x")),
        ("http://[0:0::1]:5678/x", Target("http", "::1", 5678, "/x")),
        ("http://127.0.0.1:5678/x", Target("http", "127.0.0.1", 5678, "/x")),
        ("http://n8n:5678/", Target("http", "n8n", 5678, "/")),
    ],
)
def test_url_on_the_list(url: str, expected: Target) -> None:
    assert GENEROUS.check_url(url) == expected


# A suffix covers names under it, and neither itself nor names that only end alike.
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://a.hooks.example/", True),
        ("https://a.b.hooks.example/", True),
        ("https://hooks.example/", False),
        ("https://evilhooks.example/", False),
        ("https://hooks.example.evil.example/", False),
    ],
)
def test_suffix(url: str, allowed: bool) -> None:
    assert isinstance(Reach.parse("*.hooks.example").check_url(url), Target) is allowed


# An entry with a port speaks of that port only.
def test_port() -> None:
    reach = Reach.parse("n8n.example:8443")
    assert isinstance(reach.check_url("https://n8n.example:8443/"), Target)
    assert reach.check_url("https://n8n.example/") == Blocked("host_not_allowed")


# What a name led to may be reached only by this table: list, host, address.
@pytest.mark.parametrize(
    ("entries", "host", "address", "allowed"),
    [
        ("n8n.example", "n8n.example", "93.184.216.34", True),
        ("*.example", "n8n.example", "93.184.216.34", True),
        ("n8n.example", "n8n.example", "10.0.0.7", True),
        ("*.example", "n8n.example", "10.0.0.7", False),
        ("*.example, 10.0.0.7", "n8n.example", "10.0.0.7", True),
        ("n8n.example:443", "n8n.example", "10.0.0.7", False),
        ("n8n.example", "n8n.example", "127.0.0.1", False),
        ("n8n.example, 127.0.0.1", "n8n.example", "127.0.0.1", True),
        ("n8n.example", "n8n.example", "169.254.169.254", False),
        ("n8n.example", "n8n.example", "::ffff:127.0.0.1", False),
        ("localhost", "localhost", "127.0.0.1", True),
        ("localhost", "localhost", "::1", True),
        ("n8n", "n8n", "172.18.0.3", True),
        ("host.docker.internal", "host.docker.internal", "192.168.65.2", True),
        ("*.localhost", "x.localhost", "127.0.0.1", False),
        ("localhost", "localhost", "0.0.0.0", False),  # noqa: S104 - an address to refuse, nothing is bound
        ("localhost", "localhost", "224.0.0.1", False),
    ],
)
def test_address_behind_a_name(entries: str, host: str, address: str, allowed: bool) -> None:
    assert Reach.parse(entries).permits(host, 80, ip_address(address)) is allowed


# An entry that cannot mean what its writer hopes stops the start with a sentence that names it.
@pytest.mark.parametrize(
    "entry",
    [
        "https://n8n.example",
        "n8n.example/webhook",
        "*",
        "*.",
        "*.1.2.3.4",
        "n8n.*.example",
        "n8n.example:99999",
        "n8n.example:",
        "2130706433",
        "127.1",
        "0.0.0.0",  # noqa: S104 - an entry to refuse, nothing is bound
        "224.0.0.1",
        "10.0.0.0/8",
        "user@n8n.example",
        "n8n.example.",
    ],
)
def test_entry_that_cannot_be_read(entry: str) -> None:
    with pytest.raises(ReachError, match="EFFECT_ALLOWED_HOSTS"):
        Reach.parse(f"n8n.example, {entry}")


# What may hold a secret, the path, is not in a target's repr.
def test_path_is_not_shown() -> None:
    assert "MARK2" not in repr(GENEROUS.check_url("https://n8n.example/webhook/MARK2"))
