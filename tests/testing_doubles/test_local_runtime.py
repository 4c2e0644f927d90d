"""`LocalRuntime`: whole trees without Ray; what it has of its own beside what it shares with a real runtime."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.protocol.messages import Answer, Step
from openclaw_ray.testing import FakeClock, LocalRuntime, assert_at_rest, eventually
from openclaw_ray.testing.leaks import unheard_runs
from openclaw_ray.testing.local.memory import ProcessMemory

ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent(spawns=False)
def echo(turn: oc.SyncTurn) -> str:
    return f"echo: {turn.text}"


@oc.agent
async def sleeps(turn: oc.Turn) -> str:
    import asyncio

    turn.progress("asleep")
    await asyncio.sleep(3600)
    return "never"


@oc.agent
def asks(turn: oc.SyncTurn) -> str:
    turn.progress("asking")
    while True:
        turn.check()
        time.sleep(0.002)


@oc.agent
async def holds(turn: oc.Turn) -> str:
    """A tree of sleepers: its children by number."""
    await turn.map("sleeps", [str(n) for n in range(turn.input)])
    return "never"


@oc.agent
def deaf(turn: oc.SyncTurn) -> str:
    """Until the door is open, whatever it is told."""
    place, until = Path(turn.input), time.monotonic() + 20
    (place / "inside").touch()
    while not (place / "open").exists() and time.monotonic() < until:
        time.sleep(0.002)
    return "late"


@oc.agent
def narrow(turn: oc.SyncTurn) -> Any:
    return [result.value for result in turn.map("peak", [turn.input] * 4, width=4)]


@oc.agent(spawns=False)
def peak(turn: oc.SyncTurn) -> int:
    """How many of its kind are inside at once."""
    place = Path(turn.input)
    mine = place / turn.run_id
    mine.touch()
    time.sleep(0.01)
    inside = len(list(place.iterdir()))
    mine.unlink()
    return inside


AGENTS = [echo, sleeps, asks, holds, deaf, narrow, peak]


@contextlib.contextmanager
def runtime(**options: Any) -> Iterator[LocalRuntime]:
    with LocalRuntime(agents=AGENTS, config=options.pop("config", ANYBODY), **options) as rt:
        yield rt
        assert_at_rest(rt)


def running(rt: LocalRuntime, count: int = 1) -> None:
    eventually(lambda: len(rt.runs(state="running")) >= count, what=f"{count} running")


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("agent", ["sleeps", "asks"])
def test_a_run_timeout_fires_when_the_clock_is_moved(agent: str) -> None:
    clock = FakeClock()
    with runtime(clock=clock) as rt:
        receipt = rt.spawn("go", agent, run_timeout_seconds=3600)
        eventually(lambda: "progress" in rt.runs(session=receipt.session_key)[0])
        clock.advance(3599)
        assert rt.runs(session=receipt.session_key, state="running")
        clock.advance(1)
        result = rt.result(receipt, timeout=5)
        assert result.status is oc.ResultStatus.TIMEOUT
        assert result.runtime_ms == 3_600_000
        assert result.partial in ("asleep", "asking")


def test_on_the_machines_clock_a_run_timeout_takes_its_time() -> None:
    with runtime() as rt:
        began = time.monotonic()
        result = rt.result(rt.spawn("go", "sleeps", run_timeout_seconds=0.1), timeout=5)
        assert result.status is oc.ResultStatus.TIMEOUT
        assert 0.1 <= time.monotonic() - began < 2


def test_a_clock_that_cannot_be_watched_is_looked_at() -> None:
    class Odd:
        at = 0.0

        def wall(self) -> float:
            return self.at

        mono = wall

    clock = Odd()
    with runtime(clock=clock) as rt:
        receipt = rt.spawn("go", "sleeps", run_timeout_seconds=60)
        running(rt)
        clock.at = 70.0
        assert rt.result(receipt, timeout=5).status is oc.ResultStatus.TIMEOUT


def test_a_closed_runtime_is_not_told_of_a_moved_clock() -> None:
    clock = FakeClock()
    with runtime(clock=clock) as rt:
        assert rt.ask("echo", "x").text == "echo: x"
    clock.advance(1000)
    with pytest.raises(oc.RuntimeClosed):
        rt.stats()


def test_a_clock_tells_those_who_watch_it_until_they_leave() -> None:
    clock = FakeClock()
    seen: list[float] = []
    leave = clock.watch(lambda: seen.append(clock.mono()))
    clock.advance(2)
    leave()
    clock.advance(3)
    assert seen == [2]


# ---------------------------------------------------------------------- stopping


def test_a_stop_reaches_a_whole_tree() -> None:
    with runtime() as rt:
        receipt = rt.spawn("go", "holds", input=4)
        running(rt, 4)
        report = rt.stop(receipt.session_key, timeout=5)
        assert (report.stopped, report.forced, report.failed) == (5, 0, 0)
        assert rt.result(receipt).status is oc.ResultStatus.CANCELLED
        assert {row["state"] for row in rt.runs(requester=receipt.session_key)} == {"cancelled"}


def test_a_deaf_turn_is_let_go_of_and_the_report_says_that_its_thread_goes_on(tmp_path: Path) -> None:
    clock = FakeClock()
    with runtime(clock=clock) as rt:
        receipt = rt.spawn("go", "deaf", input=tmp_path)
        eventually((tmp_path / "inside").exists)
        reports: list[oc.StopReport] = []
        stopper = threading.Thread(target=lambda: reports.append(rt.stop(receipt.session_key, timeout=10)))
        stopper.start()

        def over() -> bool:
            clock.advance(1.0)
            return bool(reports)

        eventually(over)
        stopper.join()
        assert (reports[0].stopped, reports[0].forced, reports[0].failed) == (0, 0, 1)
        assert [row.outcome for row in reports[0].rows] == ["failed"]
        assert rt.still_running() == [receipt.session_key]
        assert rt.result(receipt).status is oc.ResultStatus.CANCELLED
        with pytest.raises(AssertionError, match="its thread still runs"):
            assert_at_rest(rt, timeout=0)
        assert rt.ask("echo", "the others go on").text == "echo: the others go on"
        (tmp_path / "open").touch()
        eventually(lambda: not rt.still_running())
        assert rt.result(receipt).text is None, "what it returned in the end does not count"


def test_closing_stops_what_runs_and_warns_of_what_is_deaf(tmp_path: Path) -> None:
    rt = LocalRuntime(agents=AGENTS, config=ANYBODY)
    heard = rt.spawn("go", "sleeps")
    receipt = rt.spawn("go", "deaf", input=tmp_path)
    eventually((tmp_path / "inside").exists)
    running(rt, 2)
    with pytest.warns(RuntimeWarning, match=rf"{receipt.session_key}; on a cluster .* turn.check\(\)") as warned:
        rt.close()
    assert heard.session_key not in str(warned[0].message)
    (tmp_path / "open").touch()
    eventually(lambda: not rt.still_running())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rt.close()


def test_closing_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with LocalRuntime(agents=AGENTS, config=ANYBODY) as rt:
        rt.map("echo", ["a", "b", "c"])
        rt.spawn("go", "sleeps")
        running(rt)
        assert set(threading.enumerate()) - before
    eventually(lambda: not set(threading.enumerate()) - before)


# ---------------------------------------------------------------------- limits and the surface of a runtime


def test_the_lane_of_a_session_is_as_wide_as_configured(tmp_path: Path) -> None:
    config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxConcurrent": 1}}}}
    with runtime(config=config) as rt:
        assert rt.result(rt.spawn("go", "narrow", input=tmp_path)).value == [1, 1, 1, 1]


def test_what_the_pool_cannot_hold_waits(tmp_path: Path) -> None:
    with runtime(config={**ANYBODY, "ray": {"pool": {"max": 2}}}) as rt:
        receipts = [rt.spawn("go", "sleeps") for _ in range(3)]
        eventually(lambda: len(rt.stats().waiting) == 1)
        assert "2 bound of ray.pool.max 2" in next(iter(rt.stats().waiting.values()))
        for receipt in receipts:
            rt.stop(receipt.session_key)


def test_an_agent_may_spawn_itself_only_unless_it_is_allowed_more() -> None:
    with runtime(config=None) as rt:
        result = rt.result(rt.spawn("go", "holds", input=1))
        assert result.error is not None
        assert result.error.type == "SpawnForbidden"
        assert not rt.runs(agent="sleeps")


def test_maps_streams_and_results_are_those_of_a_runtime() -> None:
    with runtime() as rt:
        assert isinstance(rt, oc.Runtime)
        stream = rt.imap("echo", (str(n) for n in range(10_000)), width=2)
        assert next(stream).text == "echo: 0"
        stream.close()  # type: ignore[attr-defined]
        receipt = rt.spawn("again", "echo")
        assert rt.result(receipt).text == "echo: again"
        assert rt.result(receipt).text == "echo: again", "as often as it is asked for"
        [row] = [row for row in rt.sessions() if row["key"] == receipt.session_key]
        assert row["status"] == "ended"
        with pytest.raises(oc.UnknownAgent):
            rt.map("nobody", ["x"])
        with pytest.raises(KeyError):
            rt.history("agent:echo:subagent:none")


def test_events_come_as_they_happen() -> None:
    with runtime() as rt:
        events = rt.events()
        receipt = rt.spawn("go", "echo")
        words = []
        for event in events:
            if event.run_id == receipt.run_id:
                words.append(event.state)
            if event.state == "succeeded":
                break
        assert words[-2:] == ["running", "succeeded"]


def test_a_spawn_on_behalf_of_another_session_is_bound_by_its_limits() -> None:
    with runtime() as rt:
        parent = rt.spawn("go", "asks")
        running(rt)
        children = [rt.spawn("go", "echo", requester=parent.session_key, input={"n": n}) for n in range(2)]
        assert [rt.result(child, timeout=5).ok for child in children] == [True, True]
        assert {row["depth"] for row in rt.runs(requester=parent.session_key)} == {2}
        rt.stop(parent.session_key)


def test_agents_can_be_added() -> None:
    @oc.agent
    def late(turn: oc.SyncTurn) -> str:
        return "late"

    with runtime() as rt:
        rt.register([late])
        assert rt.ask("late", "x").text == "late"

        @oc.agent(id="late")
        def other(turn: oc.SyncTurn) -> str:
            return "other"

        with pytest.raises(oc.DuplicateAgent):
            rt.register([other])


def test_large_inputs_and_values_come_whole() -> None:
    @oc.agent
    def doubles(turn: oc.SyncTurn) -> bytes:
        data: bytes = turn.input
        return data * 2

    @oc.agent
    def hands_on(turn: oc.SyncTurn) -> bytes:
        turn.spawn(agent_id="doubles", input=bytes(100_000))
        value: bytes = turn.join()[0].result.value
        return value

    with LocalRuntime(agents=[doubles, hands_on], config=ANYBODY) as rt:
        assert [result.value for result in rt.map("doubles", [bytes(200_000)])] == [bytes(400_000)]
        assert rt.ask("hands_on", "go").value == bytes(200_000)


def test_an_end_that_nobody_asked_for_is_found_if_looked_for() -> None:
    with runtime() as rt:
        receipt = rt.spawn("go", "echo")
        eventually(lambda: rt.runs(session=receipt.session_key, state="succeeded") != [])
        assert_at_rest(rt)
        assert unheard_runs(rt) == [receipt.run_id]
        assert_at_rest(rt, unheard=[receipt.run_id])
        with pytest.raises(AssertionError, match=f"run {receipt.run_id} of .*: ended, and its requester"):
            assert_at_rest(rt, timeout=0, unheard=[])
        assert rt.result(receipt).ok
        assert_at_rest(rt, unheard=[])


def test_transcripts_are_given_page_by_page() -> None:
    with runtime() as rt:
        for word in ("a", "b", "c"):
            rt.ask("echo", word)
        said = [row["text"] for row in rt.history("agent:echo:main")]
        assert said == ["a", "echo: a", "b", "echo: b", "c", "echo: c"]
        assert [row["text"] for row in rt.history("agent:echo:main", limit=2, offset=1)] == ["echo: b", "c"]
        assert rt.stats().sessions_started == 3


def test_what_it_cannot_answer_is_said() -> None:
    with LocalRuntime(agents=[echo]) as rt, pytest.raises(NotImplementedError, match="does not answer 'tomorrow'"):
        rt._query("tomorrow")


def test_a_fault_of_the_core_reaches_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalRuntime(agents=[echo]) as rt:
        assert rt.ask("echo", "x").ok
        whole = rt._local.step

        def broken(step: Step) -> Answer:
            if step.admits:
                raise ZeroDivisionError("in the core")
            return whole(step)

        monkeypatch.setattr(rt._local, "step", broken)
        with pytest.raises(ZeroDivisionError):
            rt.ask("echo", "y")


# ---------------------------------------------------------------------- what would break on a cluster


def test_an_agent_shares_nothing_with_the_test() -> None:
    seen: list[str] = []

    @oc.agent
    def leaks(turn: oc.SyncTurn) -> int:
        seen.append(turn.text)
        return len(seen)

    with LocalRuntime(agents=[leaks]) as rt:
        assert [rt.ask("leaks", "x").value for _ in range(2)] == [1, 1]
    assert seen == []


def test_inputs_are_copies_and_one_that_cannot_be_pickled_is_refused() -> None:
    @oc.agent
    def changes(turn: oc.SyncTurn) -> Any:
        turn.input.append(1)
        return turn.input

    given: list[int] = []
    with LocalRuntime(agents=[changes]) as rt:
        assert rt.result(rt.spawn("go", input=given)).value == [1]
        assert given == []
        with pytest.raises(TypeError, match="pickle"):
            rt.spawn("go", input=threading.Lock())


def test_an_agent_that_cannot_be_pickled_or_constructed_is_refused_before_anything_runs() -> None:
    lock = threading.Lock()

    @oc.agent
    def locked(turn: oc.SyncTurn) -> None:
        with lock:
            pass

    with pytest.raises(oc.AgentNotPicklable, match="lock"):
        LocalRuntime(agents=[locked])

    class Broken(oc.Agent):
        def __init__(self) -> None:
            raise RuntimeError("no database")

        def on_turn(self, turn: oc.SyncTurn) -> None: ...

    with pytest.raises(oc.AgentImportError, match="no database"):
        LocalRuntime(agents=[Broken])


def test_bad_configuration_is_refused_as_by_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(oc.ConfigError):
        LocalRuntime(agents=AGENTS, config={"agents": {"defaults": {"subagents": {"maxSpawnDepth": 99}}}})
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", os.devnull + "/none")
    with LocalRuntime(agents=[echo]) as rt:
        assert rt.ask("echo", "the environment is not read").ok


def test_it_is_made_by_its_constructor_and_stays_where_it_is() -> None:
    with pytest.raises(TypeError, match="LocalRuntime\\(agents="):
        LocalRuntime.start(agents=[echo])
    with pytest.raises(TypeError, match="nothing to connect to"):
        LocalRuntime.connect("name")
    with LocalRuntime(agents=[echo]) as rt:
        with pytest.raises(oc.PickleRefused):
            pickle.dumps(rt)
        with pytest.raises(NotImplementedError):
            _ = rt.state_dir


def test_a_session_is_deleted_once_it_has_ended() -> None:
    with LocalRuntime(agents=[echo]) as rt:
        receipt = rt.spawn("x", "echo")
        assert rt.result(receipt).ok
        rt.delete(receipt.session_key)
        row = rt.session(receipt.session_key)
        assert row is not None
        assert row["status"] == "archived"


def test_a_session_is_reset_under_its_key() -> None:
    with LocalRuntime(agents=[echo]) as rt:
        rt.ask("echo", "x")
        before = rt.session("agent:echo:main")
        assert rt.history("agent:echo:main") != []
        rt.reset("agent:echo:main")
        after = rt.session("agent:echo:main")
        assert before is not None
        assert after is not None
        assert (after["depth"], after["sessionId"] != before["sessionId"]) == (0, True)
        assert rt.history("agent:echo:main") == []
        assert rt.ask("echo", "y").text == "echo: y"


def test_an_ended_session_is_archived_when_the_clock_says_so() -> None:
    clock = FakeClock()
    with LocalRuntime(agents=[echo], clock=clock) as rt:
        receipt = rt.spawn("x", "echo")
        assert rt.result(receipt).ok
        for minutes, status in ((59, "ended"), (2, "archived")):
            eventually(lambda: "archiveAt" in (rt.session(receipt.session_key) or {}))
            clock.advance(minutes * 60)
            eventually(lambda s=status: (rt.session(receipt.session_key) or {})["status"] == s)


def test_a_map_with_a_name_runs_nothing_twice() -> None:
    with LocalRuntime(agents=[echo]) as rt:
        first = [result.run_id for result in rt.map("echo", ["a", "b"], map_id="nightly")]
        again = rt.map("echo", ["a", "b", "c"], map_id="nightly")
        assert [result.run_id for result in again][:2] == first
        assert [result.text for result in again] == ["echo: a", "echo: b", "echo: c"]
        assert rt.stats().sessions_started == 3


@oc.agent(id="maps_another")
def maps_another(turn: oc.SyncTurn) -> str:
    return " ".join(result.text or "" for result in turn.map("echo", ["a", "b"]))


def test_a_map_that_a_rule_refuses_fails_by_the_rule_not_by_what_is_made_of_its_results() -> None:
    with LocalRuntime(agents=[maps_another, echo]) as rt, pytest.raises(oc.RunFailed, match=r"'echo' is not allowed"):
        rt.ask("maps_another", "go", timeout=30)


@oc.agent
def waits_for_its_end(turn: oc.SyncTurn) -> None:
    while True:
        turn.check()
        time.sleep(0.005)


@pytest.mark.parametrize(("noticed", "status", "cause"), [(True, "error", "process_died"), (False, "lost", "orphaned")])
def test_a_crash_fails_its_run_and_one_that_nobody_noticed_loses_it(noticed: bool, status: str, cause: str) -> None:
    with LocalRuntime(agents=[waits_for_its_end]) as rt:
        receipt = rt.spawn("go")
        eventually(lambda: rt.runs(session=receipt.session_key, state="running"))
        rt.crash(receipt.session_key, noticed=noticed)
        if not noticed:
            assert [each["action"] for each in rt.maintain()] == ["end"]
            rt.maintain(apply=True)
        result = rt.result(receipt, timeout=20)
        assert (result.status, result.error and result.error.cause) == (status, cause)
        with pytest.raises(ValueError, match="no turn that could crash"):
            rt.crash(receipt.session_key)


def test_deliveries_by_hand_are_refused_with_the_reason() -> None:
    with LocalRuntime(agents=[waits_for_its_end]) as rt:
        receipt = rt.spawn("go")
        for change in (rt.redeliver, rt.dismiss):
            with pytest.raises(oc.UnknownRun, match="no run 'nobody'"):
                change("nobody")
            with pytest.raises(oc.DeliveryRefused, match="it has not ended"):
                change(receipt.run_id)
        rt.stop(receipt.session_key)


def test_a_session_can_be_made_while_another_one_is_in_its_memory() -> None:
    """The registry makes sessions under its lock, and who loads code in its memory asks the registry for it."""
    made = threading.Event()

    def make() -> None:
        ProcessMemory()
        made.set()

    with ProcessMemory().inside():
        threading.Thread(target=make, daemon=True).start()
        assert made.wait(10.0)
