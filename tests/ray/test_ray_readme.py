"""What README shows runs as it stands: each Python block as a program of its own (STYLE.md 12)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.programs import run_program

pytestmark = pytest.mark.ray

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
PRINTS = [["ok RED", "ok GREEN", "ok BLUE"], ["eno owt eerht"]]


def test_all_examples_are_run_here() -> None:
    assert len(BLOCKS) == len(PRINTS)


@pytest.mark.parametrize(("block", "expected"), list(zip(BLOCKS, PRINTS, strict=False)))
def test_an_example_of_the_readme_does_what_it_says(block: str, expected: list[str], tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block)
    done = run_program(script, cwd=tmp_path)
    assert done.code == 0, done.errors
    lines = [line for line in done.output.splitlines() if "raylet" not in line]
    assert [line[: len(what)] for line, what in zip(lines, expected, strict=True)] == expected
