"""The examples in the docstrings run, nothing imports Ray, and a test of an agent takes less than a second."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import openclaw_ray.testing as doubles


def _example(name: str) -> str:
    """The indented blocks after the lines of a docstring that end with ``::``."""
    lines = (inspect.getdoc(getattr(doubles, name)) or "").splitlines()
    blocks: list[str] = []
    inside = False
    for line in lines:
        if inside and line and not line.startswith(" "):
            inside = False
        if inside:
            blocks.append(line)
        elif line.endswith("::"):
            inside = True
    return textwrap.dedent("\n".join(blocks))


_END = """
import sys
assert "ray" not in sys.modules, "Ray was imported"
print("through")
"""


@pytest.mark.parametrize("name", ["run_turn", "LocalRuntime", "Conversations"])
def test_the_example_of_a_docstring_runs_without_ray(name: str, tmp_path: Path) -> None:
    code = _example(name)
    assert "assert" in code
    file = tmp_path / "example.py"
    file.write_text(code + _END)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("through\n", "")


_TIMED = """
import sys, time
import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, run_turn

@oc.agent
async def lead(turn: oc.Turn) -> str:
    await turn.spawn("find", agent_id="finder")
    return (await turn.join())[0].text

@oc.agent
def finder(turn: oc.SyncTurn) -> str:
    return "found"

def a_turn():
    assert run_turn(lead, children={"finder": "found"}).result.text == "found"

def a_tree():
    config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    with LocalRuntime(agents=[lead, finder], config=config) as rt:
        assert rt.ask("lead", "go").text == "found"

times = []
for test in (a_turn, a_tree):
    began = time.process_time()
    test()
    times.append(time.process_time() - began)
assert "ray" not in sys.modules, "Ray was imported"
print(*times)
"""


def test_an_agent_test_takes_less_than_a_second_and_no_ray(tmp_path: Path) -> None:
    # of its own processor time, imports included: that others are at work on the machine is no fault of it
    file = tmp_path / "timed.py"
    file.write_text(_TIMED)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=True)
    turn, tree = map(float, done.stdout.split())
    assert turn < 1.0
    assert tree < 1.0


def test_every_public_name_is_there() -> None:
    assert sorted(doubles.__all__) == doubles.__all__
    assert all(getattr(doubles, name) is not None for name in doubles.__all__)
    assert callable(doubles.eventually)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = doubles.nothing
