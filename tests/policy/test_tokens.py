"""Tokens of buttons: long, random, and stored only as a hash.
Not here: what a token may decide.
"""

import hashlib
import re

from bot.contracts.click import ButtonValue, decode_value, encode_value
from bot.policy.tokens import hash_token, mint_token


# Tokens have 43 characters of base64url, never repeat, and fit into a button's value.
def test_mint() -> None:
    tokens = {mint_token() for _ in range(200)}
    assert len(tokens) == 200
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)
    assert all(decode_value(encode_value(ButtonValue(token, 1))) for token in tokens)


# What is stored is the SHA-256 of the characters, in lower-case hex.
def test_hash() -> None:
    assert hash_token("abc") == hashlib.sha256(b"abc").hexdigest()
