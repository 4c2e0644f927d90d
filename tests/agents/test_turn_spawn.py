"""What a turn sees, spawns and says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from fake_port import FakePort, make_completion
from turn_drive import Drive

from openclaw_ray.core.attachments import AttachedFile, AttachmentLimits
from openclaw_ray.core.branching import FORK_MOST_BYTES
from openclaw_ray.core.errors import (
    InvalidItem,
    NothingPending,
    SpawnError,
    SpawnForbidden,
    TaskTooLarge,
    ToolInputError,
)
from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.results import Receipt, Result, Usage
from openclaw_ray.core.session_facts import ChildAsk


def test_a_turn_shows_its_task_and_session(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        assert turn.kind is RunKind.TASK
        assert (turn.text, turn.input, turn.run_id, turn.index) == ("do it", {"a": 1}, "run-0", 3)
        assert (turn.completions, turn.state) == ((), {})
        assert [(event.kind, event.text) for event in turn.events] == [("task", "do it")]
        session = turn.session
        assert (session.key, session.session_id) == ("agent:worker:subagent:0", "session")
        assert (session.agent_id, session.depth, session.role) == ("worker", 2, "leaf")
        assert (session.label, session.requester_key) == ("L", "agent:main:main")
        assert session.attachments == ()
        assert session.cwd

    drive.ok(body, input={"a": 1}, depth=2, label="L", index=3)


def test_completions_given_to_a_turn_are_consumed_by_it(drive: Drive, port: FakePort) -> None:
    ends = [make_completion(f"run-{number}", Result(text=str(number))) for number in (1, 2)]

    async def body(turn: Any) -> None:
        assert list(turn.completions) == ends
        assert [event.completion for event in turn.events if event.kind is RunKind.COMPLETION] == ends

    drive.ok(body, port, completions=ends, kind="wake", text="children are done")
    assert port.consumed == ["run-1", "run-2"]


@pytest.mark.parametrize(
    ("kind", "ends", "seen"),
    [
        ("task", 0, [("task", "text")]),
        ("message", 0, [("message", "text")]),
        ("message", 1, [("completion", "1"), ("message", "text")]),
        ("wake", 2, [("completion", "1"), ("completion", "2"), ("wake", "text")]),
        ("completion", 2, [("completion", "1"), ("completion", "2")]),
        ("resume", 0, [("resume", "text")]),
        ("resume", 1, [("completion", "1"), ("resume", "text")]),
    ],
)
def test_a_turn_shows_all_that_it_was_started_with(
    drive: Drive, kind: str, ends: int, seen: list[tuple[str, str]]
) -> None:
    done = [make_completion(f"run-{number}", Result(text=str(number))) for number in range(1, ends + 1)]

    async def body(turn: Any) -> None:
        assert turn.kind is RunKind(kind)
        assert [(event.kind, event.text) for event in turn.events] == seen
        assert turn.completions == tuple(done)
        assert [event.completion for event in turn.events][:ends] == done

    drive.ok(body, completions=done, kind=kind, text="text")


def test_a_spawn_gives_the_receipt_of_what_was_asked(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        receipt = await turn.spawn(
            task="count",
            agent_id="counter",
            input=[1, 2],
            label="  C ",
            run_timeout_seconds=5,
            expects_completion_message=False,
        )
        assert (receipt.accepted, receipt.run_id) == (True, "run-1")

    drive.ok(body, port)
    (request,) = port.requests
    assert (request.task, request.agent_id, request.input, request.has_input) == (
        "count",
        "counter",
        [1, 2],
        True,
    )
    assert (request.label, request.timeout, request.expects) == ("C", 5, False)
    assert (request.route, request.index) == ("spawn", None)


def test_a_spawn_waits_for_a_receipt_that_comes_later(drive: Drive, port: FakePort) -> None:
    port.hold = True

    def courier() -> None:
        assert port.asked.wait(10)
        port.answer_held()

    port.thread(courier)

    async def body(turn: Any) -> str:
        return (await turn.spawn("x")).run_id

    assert drive.ok(body, port).outcome.text == "run-1"


def test_agent_is_another_name_for_agent_id(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("x", agent="docs")
        with pytest.raises(TypeError, match="two names"):
            await turn.spawn("x", agent="docs", agent_id="other")

    drive.ok(body, port)
    assert port.requests[0].agent_id == "docs"


@pytest.mark.parametrize(("status", "error"), [("forbidden", SpawnForbidden), ("error", SpawnError)])
def test_a_refused_spawn_raises_with_its_receipt(
    drive: Drive, port: FakePort, status: str, error: type[SpawnError | SpawnForbidden]
) -> None:
    port.answer = lambda request: Receipt(status, error="maxSpawnDepth reached", limit="maxSpawnDepth")

    async def body(turn: Any) -> None:
        with pytest.raises(error, match="maxSpawnDepth reached") as caught:
            await turn.spawn("x")
        assert caught.value.receipt.limit == "maxSpawnDepth"

    drive.ok(body, port)


def test_a_spawn_parameter_that_is_not_known_is_named(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(TypeError, match="'threads'"):
            await turn.spawn("x", threads=True)
        with pytest.raises(TypeError, match="'taskName'"):
            await turn.spawn("x", taskName="a")

    drive.ok(body, port)
    assert port.requests == []


@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"thread": True}, "thread"),
        ({"mode": "session"}, "mode"),
        ({"task_name": "all"}, "taskName"),
        ({"label": "x" * 513}, "label"),
        ({"cwd": "tmp"}, "cwd"),
        ({"cwd": "/no/such/folder"}, "cwd"),
        ({"cwd": "/dev/null"}, "cwd"),
        ({"context": "fork", "agent_id": "other"}, "context"),
    ],
)
def test_a_spawn_that_cannot_be_as_asked_raises_before_anything_is_asked(
    drive: Drive, port: FakePort, params: dict[str, Any], limit: str
) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(SpawnError) as caught:
            await turn.spawn("x", **params)
        assert (caught.value.receipt.status, caught.value.receipt.limit) == ("error", limit)

    drive.ok(body, port)
    assert port.requests == []


def test_attachments_that_are_not_enabled_are_forbidden(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(SpawnForbidden, match=r"attachments\.enabled"):
            await turn.spawn("x", attachments=[{"name": "a", "content": "b"}])

    drive.ok(body, port)
    assert port.requests == []


def test_a_plain_spawn_asks_for_nothing_more(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("x")
        await turn.spawn("x", label="l", cleanup="keep", context="isolated", sandbox="inherit")

    drive.ok(body, port)
    assert [(request.ask, request.files) for request in port.requests] == [(None, ()), (None, ())]


def test_what_a_child_is_to_be_goes_along(drive: Drive, port: FakePort, tmp_path: Path) -> None:
    asked = ChildAsk(str(tmp_path), "a/b", "low", sandbox_required=True, context="fork", light_context=True)

    async def body(turn: Any) -> None:
        await turn.spawn(
            "x", cwd=str(tmp_path), model="a/b", thinking="low", sandbox="require", context="fork", light_context=True
        )

    drive.ok(body, port)
    assert [request.ask for request in port.requests] == [asked]


def test_a_conversation_that_is_too_long_is_not_branched(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        port.transcript_size = FORK_MOST_BYTES
        await turn.spawn("x", context="fork")
        port.transcript_size += 1
        await turn.spawn("x", context="fork")
        result = await turn.call("sessions_spawn", task="x", context="fork")
        assert result["context"] == "isolated"
        assert str(FORK_MOST_BYTES) in result["note"]

    drive.ok(body, port)
    assert [request.forks for request in port.requests] == [True, False, False]


def test_files_are_copies_made_at_the_call(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        given = [{"name": "a", "content": bytearray(b"one")}, {"name": "b", "content": "zwö"}]
        await turn.spawn("x", attachments=given, attach_as={"mountPath": "in"})
        given[0]["content"][:] = b"two"

    drive.ok(body, port, attachments=AttachmentLimits())
    [request] = port.requests
    assert request.files == (AttachedFile("a", b"one"), AttachedFile("b", "zwö".encode()))
    assert (request.ask, request.mount_path) == (None, "in")


@pytest.mark.parametrize("content", [7, None, ["b"], object()])
def test_content_of_another_sort_is_refused(drive: Drive, port: FakePort, content: Any) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="content"):
            await turn.spawn("x", attachments=[{"name": "a", "content": content}])

    drive.ok(body, port, attachments=AttachmentLimits())
    assert port.requests == []


def test_task_names_and_harmless_parameters_are_taken(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("x", task_name="part-1", mode="run", cleanup="keep", context="isolated", thread=False)

    drive.ok(body, port)
    assert (port.requests[0].task_name, port.requests[0].label) == ("part-1", None)


def test_a_parameter_of_another_type_is_a_value_error(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="thread") as caught:
            await turn.spawn("x", thread="yes")
        assert isinstance(caught.value, ValueError)

    drive.ok(body, port)
    assert port.requests == []


@pytest.mark.parametrize("task", ["", " \n", 7, None, b"x"])
def test_a_spawn_without_task_text_and_input_is_refused(drive: Drive, port: FakePort, task: Any) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(InvalidItem):
            await turn.spawn(task)

    drive.ok(body, port)
    assert port.requests == []


def test_an_input_stands_for_itself_where_there_is_no_task(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn(input=None)
        await turn.spawn(input={"rows": list(range(10_000))})

    drive.ok(body, port)
    assert port.requests[0].task == "None"
    assert port.requests[0].has_input
    assert len(port.requests[1].task) <= 200


def test_a_task_of_more_than_a_megabyte_is_refused_and_as_input_it_works(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(TaskTooLarge, match="input") as caught:
            await turn.spawn("é" * (1 << 20))
        assert (caught.value.size, caught.value.limit) == (2 << 20, 1 << 20)
        await turn.spawn("e" * (1 << 20))
        await turn.spawn(input="é" * (1 << 20))

    drive.ok(body, port)
    assert len(port.requests) == 2


def test_a_task_that_is_not_unicode_is_refused(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(InvalidItem, match="Unicode"):
            await turn.spawn("report-\udcff.txt")

    drive.ok(body, port)


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, "5", True])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(drive: Drive, port: FakePort, seconds: Any) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ValueError, match="run_timeout_seconds"):
            await turn.spawn("x", run_timeout_seconds=seconds)
        with pytest.raises(ValueError, match="timeout"):
            await turn.map("w", ["x"], timeout=seconds)

    drive.ok(body, port)
    assert port.requests == []


def test_progress_usage_and_rows_go_to_the_port(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        turn.progress("half" * 1000, done=1, total=2)
        turn.progress(done=2)
        turn.add_usage(input_tokens=5)
        turn.append("assistant", "note")
        with pytest.raises(ValueError, match="robot"):
            turn.append("robot", "note")
        assert await turn.history() == [{"role": "assistant", "text": "note", "at": 1.5}]
        assert await turn.history(limit=1, offset=1) == []

    drive.ok(body, port)
    assert [(len(text or ""), done, total) for text, done, total in port.progress_said] == [
        (1000, 1, 2),
        (0, 2, None),
    ]
    assert port.usages == [Usage(input_tokens=5)]


def test_a_yield_ends_the_turn(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("x")
        turn.state["at"] = 1
        turn.yield_("waiting")
        raise AssertionError("not reached")

    ended = drive(body, port)
    assert ended.yielded
    assert ended.follow_up
    assert (ended.outcome.state, ended.outcome.text) == (RunState.SUCCEEDED, "waiting")
    assert ended.state == b'{"at":1}'


def test_a_yield_without_children_is_an_error_and_the_turn_goes_on(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> str:
        with pytest.raises(NothingPending):
            turn.yield_()
        return "went on"

    ended = drive.ok(body, port)
    assert (ended.outcome.text, ended.yielded) == ("went on", False)


def test_a_yield_waits_for_children_of_earlier_turns_too(drive: Drive, port: FakePort) -> None:
    port.born("old")

    async def body(turn: Any) -> None:
        turn.yield_()

    ended = drive(body, port)
    assert ended.yielded
    assert ended.outcome.missing
