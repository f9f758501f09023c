"""Finds the sentence for a key in the reader's language; every text a person sees comes through here.

The sentences themselves stand in one table a language (`words_en`, `words_en_answers`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bot.cards import words_en, words_en_answers

DEFAULT_LANGUAGE: Final = "en"

TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"en": {**words_en.WORDS, **words_en_answers.WORDS}}
)


def template(language: str, key: str, /) -> str:
    """The sentence under `key`, with its `{places}` still open; English where a language has no table.

    Raises KeyError for a key that no table has: a test keeps every key in use and in every table.
    """
    return TABLES.get(language, TABLES[DEFAULT_LANGUAGE])[key]


def say(language: str, key: str, /, **values: str | int) -> str:
    """The sentence under `key` as plain text, its places filled."""
    return template(language, key).format_map(values)


def has(language: str, key: str) -> bool:
    """Say whether there is a sentence under `key`."""
    return key in TABLES.get(language, TABLES[DEFAULT_LANGUAGE])
