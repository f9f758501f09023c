"""The commands: what is wrong is one sentence and exit 1, never a trace.

Not here: what the commands do (tests of their own).
"""

from pathlib import Path

import pytest

from bot.__main__ import main


# A policy file in another encoding is named, with the mend.
def test_a_policy_that_is_not_utf_8_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes("[kinds.rückfrage]".encode("utf-16"))
    assert main(["policy", "check", str(file)]) == 1
    said = capsys.readouterr().err
    assert said == f"{file} is not UTF-8: save it as such\n"
