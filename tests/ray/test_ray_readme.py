"""What README shows runs as it stands: each Python block as a program of its own (STYLE.md 12)."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.config import table

pytestmark = pytest.mark.ray

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
PRINTS = [
    ["ok RED", "ok GREEN", "ok BLUE"],
    ["eno owt eerht"],
    ["Ada Grace | Alan Edsger"],
    ["where?: looked left, looked right"],
    [
        "security: any risks? < read parser.py",
        "speed: what is slow? < read parser.py",
        "security: which line? < any risks? < read parser.py",
    ],
    [
        "two experts are at your service",
        "security: read parser.py",
        "security: any risks? < read parser.py",
    ],
    ["3 words, the first is Ray"],
    ["3; count is denied: inherited", "['read']"],
    ["11 calls took "],
    ["/tmp: 3 words in notes.md"],
    ["acme:work of the agent store"],
    ["RED", "GREEN"],
    ["RED GREEN BLUE"],
    ["[1, 2, 3, 4, 5, 6, 7, 8]"],
    ["2"],
    ["8 labels"],
    ["heard hello"],
    ["[['RED', 'GREEN'], ['BLUE']]"],
    ["found: two papers", "found: three papers"],
]
LIBRARIES = {
    "ray.data.": "pyarrow",
    "import tune": "tensorboardX",
    "import train": "tensorboardX",
    "import serve": "fastapi",
}
"""What an example needs of extra ``pipelines``, and a package that comes with it."""


def _needed(block: str) -> str:
    """The package of extra ``pipelines`` that an example needs; empty for most."""
    return next((package for words, package in LIBRARIES.items() if words in block), "")


def _runs(*, library: bool) -> list[object]:
    """The examples that use one of Ray's libraries, or the others, each with what it prints."""
    return [
        pytest.param(
            block,
            expected,
            marks=pytest.mark.skipif(
                library and find_spec(_needed(block)) is None, reason="needs pip install '.[pipelines]'"
            ),
        )
        for block, expected in zip(BLOCKS, PRINTS, strict=False)
        if bool(_needed(block)) is library
    ]


def test_all_examples_are_run_here() -> None:
    assert len(BLOCKS) == len(PRINTS)


@pytest.mark.parametrize(("block", "expected"), _runs(library=True))
def test_an_example_with_a_library_of_rays_prints_what_it_says_amid_that_librarys_own_words(
    block: str, expected: list[str], shared: oc.Runtime, tmp_path: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text(block)
    # they write their results into the home folder, in which Ray's token may be
    env = {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "HOME": str(tmp_path), "PYTHONWARNINGS": None}
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        env["RAY_AUTH_TOKEN_PATH"] = str(Path.home() / ".ray" / "auth_token")
    done = run_program(script, cwd=tmp_path, env=env)
    assert done.code == 0, done.errors
    assert set(expected) <= set(done.output.splitlines())
    assert "openclaw" not in done.errors


@pytest.mark.parametrize(("block", "expected"), _runs(library=False))
def test_an_example_of_the_readme_does_what_it_says(
    block: str, expected: list[str], shared: oc.Runtime, tmp_path: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text(block)
    done = run_program(script, cwd=tmp_path, env={"RAY_ADDRESS": ray.get_runtime_context().gcs_address})
    assert done.code == 0, done.errors
    lines = [line for line in done.output.splitlines() if "raylet" not in line]
    assert [line[: len(what)] for line, what in zip(lines, expected, strict=True)] == expected


def test_its_configuration_table_is_made_of_the_model() -> None:
    shown = README.read_text().split("<!-- configuration:")[1].split("-->\n")[1].split("<!--")[0]
    assert shown.splitlines() == [row for row in table().splitlines() if "†" not in row]
