"""A session sees nothing of another's, by inheritance or by re-use of a process (PROTOCOL.md 7.6; SCENARIOS.md 45)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import agents
import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from openclaw_ray.testing.leaks import ProcessMark

    AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]

pytestmark = pytest.mark.ray

CONFIG = {
    "agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}}},
    "ray": {"pool": {"max": 3, "prewarm": 2}},
}


@pytest.fixture(scope="module")
def _few(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    with oc.Runtime.start(agents=agents.ALL, config=CONFIG) as runtime:
        yield runtime


@pytest.fixture
def few(_few: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """Three processes, so that each is used again at once."""
    with at_rest(_few) as runtime:
        yield runtime


@pytest.fixture
def marker() -> Iterator[str]:
    """A word that is nowhere else; the agent makes a folder of that name."""
    marker = f"marker-{uuid.uuid4().hex}"
    yield marker
    if os.path.isdir(f"/tmp/{marker}"):
        os.rmdir(f"/tmp/{marker}")


class Warnings:
    """Warning events of a runtime from now on."""

    def __init__(self, rt: oc.Runtime) -> None:
        self._rt = rt
        self._events = rt.events()
        self._seen: list[oc.Event] = []

    def of(self, agent: str) -> list[str]:
        """Texts of those about an agent that have been journaled up to now."""
        last = self._rt.spawn("last", "echo").run_id
        for event in self._events:
            if event.kind == "warning":
                self._seen.append(event)
            if event.run_id == last and event.state == "succeeded":
                return [event.text or "" for event in self._seen if event.agent_id == agent]
        raise AssertionError("the events have ended")


# ---------------------------------------------------------------------- the marker


def test_a_default_child_sees_nothing_of_its_parents_context(few: oc.Runtime, marker: str) -> None:
    [result] = few.map("marking", [{"marker": marker}])
    answer = result.raise_for_status().value
    assert marker not in answer["child"]["seen"]
    assert marker not in str(few.history(answer["child_key"], limit=100))
    assert answer["child"]["umask"] == _umask()


def test_a_process_used_again_shows_nothing_of_who_had_it_before(few: oc.Runtime, marker: str) -> None:
    [result] = few.map("marking", [{"marker": marker}])
    used = result.raise_for_status().value["pid"]
    for _ in range(20):
        found = [each.raise_for_status().value for each in few.map("searching", range(4), width=3)]
        assert not [each for each in found if marker in each["seen"]]
        assert {each["umask"] for each in found} == {_umask()}
        if used in {each["pid"] for each in found}:
            return
    pytest.fail(f"process {used} was not used again")


def test_the_next_run_of_the_same_agent_begins_with_fresh_globals(few: oc.Runtime) -> None:
    counts = [result.raise_for_status().value for result in few.map("counting", range(12), width=2)]
    assert len({pid for pid, _ in counts}) < 12
    assert {count for _, count in counts} == {1}


def test_changing_an_input_afterwards_does_not_change_the_childs(few: oc.Runtime) -> None:
    given = {"a": [1]}
    receipt = few.spawn(agent_id="give_back", input=given)
    given["a"].append(2)
    assert few.result(receipt).value == {"a": [1]}


# ---------------------------------------------------------------------- leftovers


@pytest.mark.parametrize(
    ("agent", "culprit"),
    [
        ("leave_thread", "thread: left-behind"),
        ("leave_process", "child process: "),
        ("leave_task", "task: left-task"),
        ("leave_executor_task", "thread: asyncio_0"),
    ],
)
def test_what_an_agent_leaves_behind_retires_its_process_and_names_it(
    few: oc.Runtime, mark: ProcessMark, agent: str, culprit: str
) -> None:
    warnings = Warnings(few)
    [result] = few.map(agent, ["go"])
    pid = result.raise_for_status().value
    eventually(lambda: not _alive(pid), what="the process is gone")
    [warning] = warnings.of(agent)
    assert culprit in warning
    assert f"agent {agent!r}" in warning
    assert pid not in {each.value for each in few.map("who", range(6), width=3)}
    mark.assert_none(tools_only=True)
    assert sum(few.stats().retired.values()) > 0


@pytest.mark.long
def test_an_agent_that_leaves_something_each_time_is_named_to_the_user_once(
    few: oc.Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    warnings = Warnings(few)
    few.map("leave_thread_too", range(3))
    assert len(warnings.of("leave_thread_too")) == 3
    eventually(lambda: "leave_thread_too" in caplog.text)
    few.map("leave_thread_too", range(2))
    assert [record.message for record in caplog.records if "leave_thread_too" in record.message] == [
        "agent 'leave_thread_too' left its process unclean, which is not used again: thread: left-behind"
    ]


def test_threads_of_the_loop_are_no_leak(few: oc.Runtime) -> None:
    warnings = Warnings(few)
    [first] = few.map("use_threads", ["go"])
    assert first.ok
    assert warnings.of("use_threads") == []
    assert _alive(first.value)


def test_memory_that_an_agent_keeps_retires_its_process(few: oc.Runtime) -> None:
    warnings = Warnings(few)
    [result] = few.map("grow", [200])
    pid = result.raise_for_status().value
    eventually(lambda: not _alive(pid), what="the process is gone")
    assert "memory: grew by" in warnings.of("grow")[0]


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now
