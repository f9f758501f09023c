"""Compares what is drawn with the golden files; STET_GOLDEN=write writes them anew.

The views drawn are in `samples`.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, object], None]:
    """Hold a drawing to its golden file."""

    def compare(name: str, drawn: object) -> None:
        path = GOLDEN / f"{name}.json"
        text = json.dumps(drawn, ensure_ascii=False, indent=1) + "\n"
        if os.environ.get("STET_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, f"{path.name} differs; STET_GOLDEN=write accepts it"

    return compare
