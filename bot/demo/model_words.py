"""What the pretend model writes: a plausible draft for any output schema, from the event in the prompt.

Not here: faults and the wire (model, model_script). No intelligence: words are looked for and put together.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.drafting.prompt import DATA_END, DATA_START

_DATA = re.compile(re.escape(DATA_START) + r"\n(.*?)\n" + re.escape(DATA_END), re.DOTALL)
_HAN = re.compile("[\u4e00-\u9fff]")
_MONEY = re.compile(r"refund|money back|chargeback|\u9000\u6b3e", re.IGNORECASE)
_ANGRY = re.compile(r"lawyer|complain|unacceptable|furious|\u6295\u8bc9|\u5f8b\u5e08", re.IGNORECASE)
_TITLES = frozenset({"subject", "title", "headline", "summary"})
_TEXT_NAMES = ("text", "body", "message", "question", "description", "content")
_SAMPLES = {
    "email": "amy@example.test",
    "date": "2030-01-31",
    "date-time": "2030-01-31T09:00:00Z",
    "uri": "https://example.test/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_MAX_DEPTH = 8  # a schema that refers to itself ends here


def blocks_in(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Read the marked data blocks of what the user said: the payload, then a reviewer's wish if any."""
    said = "\n".join(str(each.get("content")) for each in messages if each.get("role") == "user")
    return [json.loads(block) for block in _DATA.findall(said)]


def write_draft(body: Mapping[str, Any]) -> str:
    """Answer a chat completion request with the JSON text of a draft."""
    blocks = blocks_in(body.get("messages", []))
    payload = blocks[0] if blocks else {}
    wish = str(blocks[-1].get("wish", "")) if len(blocks) > 1 else ""
    schema = _schema_of(body)
    return json.dumps(_Writer(schema, payload, wish).value(schema, "", 0), ensure_ascii=False)


def _schema_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The schema asked for: in response_format, else the one written at the end of the system message."""
    described = (body.get("response_format") or {}).get("json_schema") or {}
    if isinstance(described.get("schema"), dict):
        return dict(described["schema"])
    system = next((str(each["content"]) for each in body.get("messages", []) if each["role"] == "system"), "")
    try:
        return dict(json.loads(system.rstrip().rpartition("\n")[2]))
    except (ValueError, TypeError):
        return {"type": "object", "properties": {"subject": {"type": "string"}, "body": {"type": "string"}}}


class _Writer:
    """Fills one schema with words about one payload."""

    def __init__(self, root: Mapping[str, Any], payload: Mapping[str, Any], wish: str) -> None:
        self._root = root
        self._wish = wish
        self._about = str(payload.get("subject") or payload.get("title") or "your message")
        self._asked = next((str(payload[name]) for name in _TEXT_NAMES if payload.get(name)), "")
        self._everything = json.dumps(payload, ensure_ascii=False)
        self._to = str(payload.get("name") or str(payload.get("to") or "").partition("@")[0])

    def value(self, schema: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - JSON of any type
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._choice(schema["enum"])
        kinds = schema.get("type") or ("object" if "properties" in schema else "string")
        match kinds[0] if isinstance(kinds, list) else kinds:
            case "object":
                properties = schema.get("properties", {})
                wanted = schema.get("required") or properties
                return {each: self.value(properties.get(each, {}), each, depth + 1) for each in wanted}
            case "array":
                count = max(1, int(schema.get("minItems", 1)))
                return [self.value(schema.get("items", {}), name, depth + 1) for _ in range(count)]
            case "boolean":
                return bool(_ANGRY.search(self._everything) or _MONEY.search(self._everything))
            case "integer" | "number" as kind:
                return self._number(schema, kind)
            case "null":
                return None
            case _:
                return self._string(schema, name)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
            found: Any = self._root
            for step in reference[2:].split("/"):
                found = found[step]
            return self._resolved(found)
        for several in ("anyOf", "oneOf", "allOf"):
            if schema.get(several):
                return self._resolved(
                    {**schema[several][0], **{k: v for k, v in schema.items() if k != several}}
                )
        return schema

    def _choice(self, options: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON of any type
        """The option that the event mentions, else the first."""
        text = self._everything.casefold()
        money = next((each for each in options if each == "refund" and _MONEY.search(text)), None)
        return money or next((each for each in options if str(each).casefold() in text), options[0])

    def _number(self, schema: Mapping[str, Any], kind: str) -> float:
        least, most = schema.get("minimum", 0), schema.get("maximum", 1)
        return int(least) if kind == "integer" else round(least + 0.7 * (max(most, least) - least), 2)

    def _string(self, schema: Mapping[str, Any], name: str) -> str:
        if schema.get("format") in _SAMPLES:
            return _SAMPLES[schema["format"]]
        text = self._title() if name.casefold() in _TITLES else self._letter()
        text = text[: int(schema.get("maxLength", len(text)))]
        return text.ljust(int(schema.get("minLength", 0)), ".")

    def _title(self) -> str:
        return re.sub(r"\s+", " ", f"Re: {self._about}")[:120]

    def _letter(self) -> str:
        if _HAN.search(self._everything):
            wish = (
                f"\n\n(\u5df2\u6309\u60a8\u7684\u610f\u89c1\u4fee\u6539\uff1a{self._wish})"
                if self._wish
                else ""
            )
            return (
                f"\u60a8\u597d\uff1a\n\n\u611f\u8c22\u6765\u4fe1\uff0c\u5173\u4e8e\u201c{self._about}\u201d\uff0c"
                f"\u6211\u4eec\u5df2\u5728\u5904\u7406\uff0c\u660e\u5929\u7ed9\u60a8\u7b54\u590d\u3002{wish}"
            )
        greeting = f"Hello {self._to.capitalize()}," if self._to else "Hello,"
        asked = f' You wrote: "{self._asked[:160]}"' if self._asked else ""
        promise = "We have checked your payment and will send it back within five days."
        if not _MONEY.search(self._everything):
            promise = "We looked into it, and you will have an answer by tomorrow noon."
        wish = f"\n\n(Changed as you asked: {self._wish[:200]})" if self._wish else ""
        thanks = f"thank you for writing about {self._about}.{asked}"
        return f"{greeting}\n\n{thanks}\n\n{promise}\n\nKind regards{wish}"
