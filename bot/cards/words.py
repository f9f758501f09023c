"""Finds the sentence for a key in the reader's language; every text a person sees comes through here.

The sentences themselves stand in three tables a language (`words_en`, `words_en_answers` and so on).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bot.cards import (
    words_en,
    words_en_answers,
    words_en_reasons,
    words_zh,
    words_zh_answers,
    words_zh_reasons,
)

DEFAULT_LANGUAGE: Final = "en"

TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "en": {**words_en.WORDS, **words_en_answers.WORDS, **words_en_reasons.WORDS},
        "zh-CN": {**words_zh.WORDS, **words_zh_answers.WORDS, **words_zh_reasons.WORDS},
    }
)


def language_of(locale: str | None, otherwise: str) -> str:
    """The language of a person whose Slack speaks `locale`, as `en-GB` or `zh-CN`; else the one given.

    Traditional Chinese (`zh-TW`) is another script: who reads that is served as everybody else is.
    """
    if locale is not None and locale in TABLES:
        return locale
    spoken = (locale or "").partition("-")[0]
    return spoken if spoken in TABLES else otherwise


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
