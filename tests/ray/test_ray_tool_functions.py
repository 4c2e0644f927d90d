"""Tools on a cluster: as Ray tasks with resources of their own, and commands that end with their session."""

from __future__ import annotations

from pathlib import Path

import pytest
import tool_agents
from support.runtimes import Gate

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module", autouse=True)
def _registered(shared: oc.Runtime) -> None:
    shared.register(tool_agents.ALL)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_tool_runs_as_a_task_with_its_own_resources(rt: oc.Runtime) -> None:
    found = rt.ask("measurer", "x", timeout=60).raise_for_status().value
    assert found["pid"] != found["own"]
    assert (found["n"], found["later"], found["cpus"]) == (2, 3, 0.25)
    assert found["error"][1].endswith("-1 and -1")
    rows = [row["text"] for row in rt.history("agent:measurer:main") if row["role"] == "tool"]
    assert ['"tool": "measure"' in row for row in rows] == [True, True, False]


def test_a_stop_kills_the_task_of_a_tool(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("x", "measurer", input=str(gate))
    eventually(lambda: gate.lines("task"), what="the task runs")
    [pid] = map(int, gate.lines("task"))
    report = rt.stop(receipt.session_key)
    assert (report.stopped, report.forced) == (1, 0)
    eventually(lambda: not alive(pid), what="the task has ended")


def test_a_process_that_ran_commands_is_clean_and_used_again(rt: oc.Runtime) -> None:
    own = set()
    for text in ("echo one", "sleep 600 & echo two", "setsid sleep 600 >/dev/null 2>&1 & echo three"):
        done = rt.spawn("x", "shell", input={"command": text})
        value = rt.result(done, timeout=60).raise_for_status().value
        assert value["status"] == "completed", value
        own.add(value["own"])
    assert len(own) == 1


def test_a_stop_ends_all_processes_of_a_command(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("x", "grower", input=[str(gate), 100])
    eventually(lambda: len(gate.lines("all")) == 9, what="the tree has grown")
    report = rt.stop(receipt.session_key)
    assert (report.stopped, report.forced) == (1, 0)
    eventually(lambda: not any(alive(int(pid)) for pid in gate.lines("all")), what="all have ended")


def test_a_command_that_forks_beyond_its_bound_is_ended_and_its_session_goes_on(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("x", "grower", input=[str(gate), 6])
    text = rt.result(receipt, timeout=60).raise_for_status().text
    assert text is not None
    assert "the limit is 6" in text
    eventually(lambda: not any(alive(int(pid)) for pid in gate.lines("all")), what="all have ended")
