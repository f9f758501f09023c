"""The single-use tokens of decision buttons: how they are made, and what of them is stored.
Not here: what a token may decide and whether it is spent, which the approvals' rows say (store/approvals).
"""

import hashlib
import secrets

from bot.policy.limits import TOKEN_BYTES


def mint_token() -> str:
    """Make a token: base64url of 32 random bytes without padding, 43 characters."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> str:
    """Give what is stored and looked up: hex SHA-256 of the token's characters.

    No salt and no slow hash: 256 random bits cannot be guessed, and the row must be found by it.
    """
    return hashlib.sha256(token.encode()).hexdigest()
