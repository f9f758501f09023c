"""Text from outside made safe to show: hidden characters marked, signs escaped, long text cut or split.

Which block a text goes into is decided in `blocks`; nothing here knows Slack's block limits.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

# What the reader would not see, or what would make them read something else (Unicode's
# Default_Ignorable_Code_Point, Bidi_Control, and blanks that imitate an empty text); also all of Cc, Cf, Cs.
_HIDDEN_RANGES = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian selectors
    (0x2028, 0x2029),  # line and paragraph separator
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x2800, 0x2800),  # braille blank
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xFFF0, 0xFFFB),
    (0x1D159, 0x1D159),  # musical null note head
    (0xE0000, 0xE0FFF),  # tags and supplementary variation selectors
)
# Format characters that have a shape of their own (Prepended_Concatenation_Mark).
_SHAPED_FORMATS = frozenset(
    (*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD),
)
# Near enough to Extended_Pictographic: the ranges that hold emoji and the signs that become emoji.
_EMOJI_RANGES = (
    (0x203C, 0x2049),
    (0x2122, 0x2139),
    (0x2190, 0x2BFF),
    (0x3030, 0x303D),
    (0x3297, 0x3299),
    (0x1F000, 0x1FAFF),
)
_EMOJI_SINGLES = frozenset((0xA9, 0xAE))
# Scripts whose spelling needs joiners: Arabic and its kin, Mongolian, and the Indic family.
_JOINING_RANGES = (
    (0x0620, 0x08FF),
    (0x0900, 0x0DFF),
    (0x1000, 0x109F),
    (0x1780, 0x18AA),
    (0x1A20, 0x1AAF),
    (0xFB50, 0xFDFF),
    (0xFE70, 0xFEFC),
)
_IDEOGRAPH_RANGES = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
# The three flags that Unicode recommends for interchange; any other run of tags can smuggle text.
_TAG_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(c)) for c in name) + "\U000e007f" for name in ("gbeng", "gbsct", "gbwls")
)
_BLACK_FLAG = "\U0001f3f4"
_ZWNJ, _ZWJ, _TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\u200c", "\u200d", "\ufe0e", "\ufe0f", "\u20e3"
_VIRAMA_CLASS = 9  # canonical combining class of viramas (RFC 5892, appendix A.1)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_WORD_END_REACH = 60  # How far back a cut may go to end at a space: a long word; more would waste the room.


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a text, and how many characters (code points) of it are not shown."""

    shown: str
    left_out: int


def visible(text: str) -> str:
    """Show each hidden or direction-changing character as `⟦U+XXXX⟧`; ordinary text of any script stays.

    Joiners stay where spelling or an emoji needs them; a lone surrogate becomes a marker too, so the result
    is always valid Unicode.
    """
    text = text.replace("\r\n", "\n")
    return _HIDDEN.sub(lambda found: _shown(text, found.start()), text)


def hidden_characters(text: str) -> int:
    """How many characters `visible` would show as markers."""
    text = text.replace("\r\n", "\n")
    return sum(not _is_needed(text, found.start()) for found in _HIDDEN.finditer(text))


def _shown(text: str, i: int) -> str:
    return text[i] if _is_needed(text, i) else f"⟦U+{ord(text[i]):04X}⟧"


def _is_hidden(code: int) -> bool:
    if code in _SHAPED_FORMATS or chr(code) in "\n\t":
        return False
    return unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"} or _within(code, _HIDDEN_RANGES)


def _is_needed(text: str, i: int) -> bool:
    """Say whether the hidden character at `i` belongs to an emoji or to the spelling of its script."""
    char, code = text[i], ord(text[i])
    before = text[i - 1] if i else ""
    after = text[i + 1] if i + 1 < len(text) else ""
    if char in (_TEXT_STYLE, _EMOJI_STYLE):
        return _is_emoji(before) or (before != "" and before in "0123456789#*" and after == _KEYCAP)
    if char in (_ZWJ, _ZWNJ):
        return _joins(char, before, after)
    if 0xE0100 <= code <= 0xE01EF:  # noqa: PLR2004 - the block of ideographic variation selectors
        return before != "" and _within(ord(before), _IDEOGRAPH_RANGES)
    if 0xE0020 <= code <= 0xE007F:  # noqa: PLR2004 - the block of tags
        return _in_tag_flag(text, i)
    return False


def _joins(char: str, before: str, after: str) -> bool:
    if not before:
        return False
    if char == _ZWJ and (_is_emoji(before) or before == _EMOJI_STYLE):
        return _is_emoji(after)
    if unicodedata.combining(before) == _VIRAMA_CLASS:
        return True
    same_script = ((low, high) for low, high in _JOINING_RANGES if low <= ord(before) <= high)
    return after != "" and any(low <= ord(after) <= high for low, high in same_script)


def _in_tag_flag(text: str, i: int) -> bool:
    start = text.rfind(_BLACK_FLAG, max(0, i - 6), i)
    return start >= 0 and text.startswith(_TAG_FLAGS, start + 1)


@cache
def _is_emoji(char: str) -> bool:
    return char != "" and (_within(ord(char), _EMOJI_RANGES) or ord(char) in _EMOJI_SINGLES)


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _class_of(codes: Iterable[int]) -> str:
    """A character class as ranges: a literal for each would be tried one by one."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in runs) + "]"


# All of them at once, so that harmless text is never looked at one by one. None lies beyond these planes.
_HIDDEN = re.compile(_class_of(filter(_is_hidden, (*range(0x20000), *range(0xE0000, 0xE1000)))))


def escape(text: str) -> str:
    """Make `&`, `<` and `>` entities, once: for mrkdwn and the fallback text only."""
    return "".join(_ENTITIES.get(char, char) for char in text)


def length(text: str) -> int:
    """How long Slack may take a text to be: after escaping and in UTF-16 units, the longest way to count."""
    entities = 3 * (text.count("<") + text.count(">")) + 4 * text.count("&")
    return len(text) + entities + len(_ASTRAL.findall(text))


def graphemes(text: str) -> Iterator[str]:
    """What a reader takes for one character each; joined they are the text (close to UAX 29, never finer)."""
    start = 0
    for i in range(1, len(text) + 1):
        if i == len(text) or not _clings(text, i):
            yield text[start:i]
            start = i


def _clings(text: str, i: int) -> bool:
    char, before = text[i], text[i - 1]
    if char < "\u0300" and before < "\u0300":
        return False
    if unicodedata.category(char) in {"Mn", "Me", "Mc"} or char in (_ZWJ, _ZWNJ) or before == _ZWJ:
        return True
    if 0x1F3FB <= ord(char) <= 0x1F3FF or 0xE0020 <= ord(char) <= 0xE007F:  # noqa: PLR2004 - skin tones, tags
        return True
    return _is_flag_half(char) and _is_flag_half(before) and _flag_halves_before(text, i) % 2 == 1


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, i: int) -> int:
    start = i
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return i - start


def cut(text: str, limit: int) -> Cut:
    """Keep the beginning that is at most `limit` long (see `length`), never cutting inside a grapheme.

    A cut prefers to end at a space. The text comes back unescaped; escaping it later cannot break an entity.
    """
    if length(text) <= limit:
        return Cut(text, 0)
    end = _fitting(text, 0, limit)
    end = _word_end(text, 0, end)
    return Cut(text[:end], len(text) - end)


def split(text: str, limit: int) -> list[str]:
    """Cut the whole text into pieces at most `limit` long; joined they are the text, sign for sign."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = max(_fitting(text, start, limit), start + 1)  # a limit below one character still ends
        if end < len(text):
            end = _word_end(text, start, end)
        pieces.append(text[start:end])
        start = end
    return pieces


def _fitting(text: str, start: int, limit: int) -> int:
    """Find where the longest piece from `start` ends; one grapheme over the limit is cut by code points."""
    end, used = start, 0
    for part in graphemes(text[start : start + limit + 1]):
        used += length(part)
        if used > limit:
            break
        end += len(part)
    if end == start:
        end, used = start, 0
        while end < len(text) and (used := used + length(text[end])) <= limit:
            end += 1
    return end


def _word_end(text: str, start: int, end: int) -> int:
    window = text[max(start + 1, end - _WORD_END_REACH) : end]
    at = max(window.rfind(" "), window.rfind("\n"))
    return end if at < 0 else end - len(window) + at + 1
