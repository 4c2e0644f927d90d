"""Messages with mode ``steer`` over whole turns: taken by the turn that runs, or a turn after it (SPEC.md B2)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually, run_turn

GO = threading.Event()
LOOKED = threading.Event()


@pytest.fixture(autouse=True)
def shut() -> Iterator[None]:
    GO.clear()
    LOOKED.clear()
    yield
    GO.set()


@oc.agent(id="main")
async def works(turn: oc.Turn) -> str:
    """Takes what comes until it is told to stop; a message that starts a turn of its is answered."""
    if turn.text != "work":
        return f"after: {turn.text}"
    taken: list[str] = []
    while "stop" not in taken:
        taken += [event.text for event in await turn.messages(timeout=30)]
    return " ".join(taken)


@oc.agent
def deaf(turn: oc.SyncTurn) -> str:
    """Never looks."""
    from test_local_steered import GO

    if turn.text == "work":
        assert GO.wait(30)
    return f"had {turn.text}"


@oc.agent
def looks_once(turn: oc.SyncTurn) -> Any:
    """Looks at one point, and only there."""
    from test_local_steered import GO, LOOKED

    if turn.text != "work":
        return f"after: {turn.text}"
    LOOKED.set()
    assert GO.wait(30)
    found = turn.messages()
    assert turn.messages() == []
    return [(event.kind.value, event.text, event.source and event.source.session_key) for event in found]


@oc.agent
def sends(turn: oc.SyncTurn) -> dict[str, Any]:
    result = turn.call("sessions_send", sessionKey="agent:looks_once:main", message="from a session", mode="steer",
                       timeoutSeconds=30)  # fmt: skip
    return dict(result.fields)


ALL: dict[str, Any] = {"tools": {"sessions": {"visibility": "all"}}}


def in_turn(rt: LocalRuntime, key: str) -> None:
    eventually(lambda: any(row["state"] in ("running", "paused") for row in rt.runs(session=key)))


def test_a_running_turn_takes_messages_as_they_come_each_once_in_order() -> None:
    with LocalRuntime(agents=[works]) as rt:
        done: list[Any] = []
        asking = threading.Thread(target=lambda: done.append(rt.ask("main", "work", timeout=60)))
        asking.start()
        in_turn(rt, "agent:main:main")
        sent = [rt.send("main", text, 30, mode="steer") for text in ("one", "two", "stop")]
        asking.join(60)
        assert done[0].text == "one two stop"
        for each in sent:
            assert (each.status, each.steered, each.ended, each.reply) == ("accepted", True, "steered", None)
        assert rt.ask("main", "next", timeout=30).text == "after: next"
        users = [row["text"] for row in rt.history("agent:main:main") if row["role"] == "user"]
        assert users == ["work", "one", "two", "stop", "next"]
        assert_at_rest(rt)


def test_a_turn_that_never_looks_hears_it_after_its_turn() -> None:
    with LocalRuntime(agents=[deaf]) as rt:
        asking = threading.Thread(target=lambda: rt.ask("deaf", "work", timeout=60))
        asking.start()
        in_turn(rt, "agent:deaf:main")
        early = rt.send("deaf", "steer", 0, mode="steer")
        assert early.to_json()["targetDisposition"] == "queued"
        GO.set()
        later = rt.result(early.receipt, timeout=30)
        asking.join(60)
        assert later.text == "had steer"
        users = [row["text"] for row in rt.history("agent:deaf:main") if row["role"] == "user"]
        assert users == ["work", "steer"]


def test_a_session_steers_another_and_is_told_so_at_once() -> None:
    with LocalRuntime(agents=[looks_once, sends], config=ALL) as rt:
        done: list[Any] = []
        asking = threading.Thread(target=lambda: done.append(rt.ask("looks_once", "work", timeout=60).value))
        asking.start()
        assert LOOKED.wait(30)
        sender = threading.Thread(target=lambda: done.append(rt.ask("sends", "go", timeout=60).value))
        sender.start()
        records = rt._local.core.s
        session = records.sessions["agent:looks_once:main"]
        eventually(lambda: session.waiting)
        process = rt._local.sessions[records.runs[session.run].actor]
        assert process.turn is not None
        process.turn.steers.came().result(30)
        GO.set()
        asking.join(60)
        sender.join(60)
        taken, fields = sorted(done, key=lambda one: isinstance(one, dict))
        assert taken == [("message", "from a session", "agent:sends:main")]
        assert fields["status"] == "accepted"
        assert (fields["targetDisposition"], fields["ended"]) == ("steered", "steered")
        assert fields["delivery"] == {"status": "skipped", "mode": "announce"}
        [row] = [row for row in rt.history("agent:looks_once:main") if row["text"] == "from a session"]
        assert row["provenance"]["sourceSessionKey"] == "agent:sends:main"
        assert_at_rest(rt)


def test_without_a_turn_it_is_a_turn() -> None:
    with LocalRuntime(agents=[works]) as rt:
        sent = rt.send("main", "hello", 30, mode="steer")
        assert (sent.status, sent.reply, sent.steered) == ("ok", "after: hello", False)


def test_a_stop_ends_the_wait_for_messages() -> None:
    with LocalRuntime(agents=[works]) as rt:
        asking = rt.spawn("work", "main")
        in_turn(rt, asking.session_key)
        report = rt.stop(asking.session_key)
        assert (report.stopped, report.forced) == (1, 0)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", True])
def test_a_time_that_is_none_is_refused(timeout: Any) -> None:
    @oc.agent
    def waits(turn: oc.SyncTurn) -> None:
        turn.messages(timeout)

    result = run_turn(waits, "go").result
    assert result.error is not None
    assert "timeout is a number of seconds" in result.error.message


def test_one_turn_alone_finds_those_of_the_test() -> None:
    @oc.agent
    async def collects(turn: oc.Turn) -> list[str]:
        first = [event.text for event in await turn.messages()]
        return [*first, *(event.text for event in await turn.messages())]

    ran = run_turn(collects, "go", steered=["a", "b"])
    assert ran.result.value == ["a", "b"]
    assert [row["text"] for row in ran.rows] == ["a", "b"]
