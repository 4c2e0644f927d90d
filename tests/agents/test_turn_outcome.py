"""What an agent returns or raises, as an outcome."""

from __future__ import annotations

import asyncio
import contextvars
import json
import pickle
import sys
import threading
from typing import Any

import pytest
from fake_port import FakePort, make_spec
from turn_drive import Drive, as_agent

from openclaw_ray.agents import Agent, SyncTurn, Turn, agent
from openclaw_ray.agents.outcome import outcome_of_return
from openclaw_ray.agents.run_turn import TurnRunner
from openclaw_ray.agents.traces import TRACEBACK_LIMIT
from openclaw_ray.core.lifecycle import ResultStatus, RunState
from openclaw_ray.core.protocol.messages import TEXT_LIMIT, VALUE_LIMIT
from openclaw_ray.core.results import ErrorInfo, Result


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


# ---------------------------------------------------------------------- returned


def test_a_string_is_text() -> None:
    outcome, held = outcome_of_return("hello")
    assert (outcome.state, outcome.text, outcome.missing, outcome.value) == (
        "succeeded",
        "hello",
        False,
        None,
    )
    assert held is None


def test_none_is_no_output() -> None:
    outcome, _ = outcome_of_return(None)
    assert (outcome.state, outcome.text, outcome.missing) == ("succeeded", None, True)


def test_an_empty_text_is_an_output() -> None:
    assert not outcome_of_return("")[0].missing


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
def test_a_long_text_is_cut_between_characters(character: str) -> None:
    outcome, _ = outcome_of_return(character * TEXT_LIMIT + "end")
    assert outcome.text_truncated
    assert outcome.text is not None
    assert TEXT_LIMIT - 3 <= len(outcome.text.encode()) <= TEXT_LIMIT
    assert set(outcome.text) == {character}


def test_a_text_of_the_limit_is_not_cut() -> None:
    outcome, _ = outcome_of_return("é" * (TEXT_LIMIT // 2))
    assert (outcome.text_truncated, len(outcome.text or "")) == (False, TEXT_LIMIT // 2)


def test_a_text_that_is_not_unicode_is_made_so() -> None:
    text = outcome_of_return("a\udcffb")[0].text
    assert text == "a?b"


def test_a_subclass_of_str_travels_as_plain_text() -> None:
    class Name(str):
        __slots__ = ()

    assert type(outcome_of_return(Name("x"))[0].text) is str


@pytest.mark.parametrize("value", [{"a": [1, 2, None]}, [1.5], 7, True, ["é"]])
def test_another_object_is_the_value_with_its_json_as_text(value: Any) -> None:
    outcome, held = outcome_of_return(value)
    assert pickle.loads(outcome.value or b"") == value
    assert json.loads(outcome.text or "") == value
    assert (outcome.missing, outcome.held, held) == (False, 0, None)


def test_an_object_without_json_has_its_repr_as_text() -> None:
    outcome, _ = outcome_of_return({1, 2})
    assert outcome.text == "{1, 2}"
    assert pickle.loads(outcome.value or b"") == {1, 2}
    assert "Point" in (outcome_of_return(Point(3))[0].text or "")


def test_the_text_for_a_value_is_bounded() -> None:
    assert len(outcome_of_return(list(range(5000)))[0].text or "") == 2_000
    large = outcome_of_return(list(range(100_000)))[0].text or ""
    assert 0 < len(large) <= 2_000
    assert large.startswith("[0, 1, 2")


def test_a_large_value_stays_with_the_caller() -> None:
    value = bytes(VALUE_LIMIT)
    outcome, held = outcome_of_return(value)
    assert held is value
    assert outcome.value is None
    assert outcome.held > VALUE_LIMIT


def test_a_large_array_is_counted_without_a_copy() -> None:
    class Buffer:
        def __init__(self, data: bytearray) -> None:
            self.data = data

        def __reduce_ex__(self, protocol: Any) -> Any:
            return bytearray, (pickle.PickleBuffer(self.data),)

    outcome, held = outcome_of_return(Buffer(bytearray(1 << 20)))
    assert isinstance(held, Buffer)
    assert 1 << 20 < outcome.held < (1 << 20) + 500
    small, held = outcome_of_return(Buffer(bytearray(b"abc")))
    assert pickle.loads(small.value or b"") == b"abc"


@pytest.mark.parametrize("make", [threading.Lock, lambda: sys._getframe(), lambda: (n for n in ())])
def test_an_unpicklable_value_fails_and_names_its_type(make: Any) -> None:
    value = make()
    outcome, held = outcome_of_return(value)
    assert (outcome.state, held) == (RunState.FAILED, None)
    assert outcome.error is not None
    assert outcome.error.cause == "unpicklable"
    assert type(value).__qualname__ in outcome.error.message
    assert "cannot" in outcome.error.message


def test_a_result_counts_as_it_is() -> None:
    error = ErrorInfo("Nope", "it did not work")
    outcome, _ = outcome_of_return(Result(status=ResultStatus.ERROR, text="half", value=[1], error=error))
    assert (outcome.state, outcome.text, outcome.error) == (RunState.FAILED, "half", error)
    assert pickle.loads(outcome.value or b"") == [1]


@pytest.mark.parametrize(
    ("status", "state"),
    [("ok", "succeeded"), ("error", "failed"), ("timeout", "timed_out"), ("cancelled", "cancelled")],
)
def test_a_result_keeps_its_status_and_has_an_error_if_it_is_not_ok(status: str, state: str) -> None:
    outcome, _ = outcome_of_return(Result(status=ResultStatus(status), text="t", text_truncated=True))
    assert (outcome.state, outcome.text_truncated) == (state, True)
    assert (outcome.error is None) == (status == "ok")


def test_an_empty_result_is_no_output() -> None:
    assert outcome_of_return(Result())[0].missing
    assert not outcome_of_return(Result(value=0))[0].missing


def test_a_result_with_an_unknown_status_is_a_failure() -> None:
    outcome, _ = outcome_of_return(Result(status="great"))  # type: ignore[arg-type]
    assert outcome.error is not None
    assert "great" in outcome.error.message


# ---------------------------------------------------------------------- raised


def test_an_exception_is_a_failure_with_the_agents_own_frames(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        raise KeyError("missing")

    outcome = drive(body).outcome
    assert outcome.state is RunState.FAILED
    error = outcome.error
    assert error is not None
    assert (error.type, error.message, error.cause) == ("KeyError", "'missing'", "raised")
    assert error.traceback is not None
    assert 'raise KeyError("missing")' in error.traceback
    assert "run_turn.py" not in error.traceback
    assert "turn_loop.py" not in error.traceback


def test_an_exception_without_text_has_its_type_as_message(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        raise ValueError

    error = drive(body).outcome.error
    assert error is not None
    assert error.message == "ValueError"


def test_an_exception_whose_text_raises_is_a_failure_like_others(drive: Drive) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    async def body(turn: Any) -> None:
        raise Rude

    error = drive(body).outcome.error
    assert error is not None
    assert (error.type, error.message) == ("Rude", "<Rude, whose str() raised RuntimeError>")
    assert error.traceback


@pytest.mark.parametrize(("code", "said"), [(3, "sys.exit(3)"), (None, "sys.exit(0)"), ("bye", "sys.exit(bye)")])
def test_a_sys_exit_is_an_outcome_with_its_code(drive: Drive, code: Any, said: str) -> None:
    async def body(turn: Any) -> None:
        sys.exit(code)

    error = drive(body).outcome.error
    assert error is not None
    assert (error.type, error.cause) == ("SystemExit", "exited")
    assert said in error.message


def test_a_keyboard_interrupt_is_an_outcome(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        raise KeyboardInterrupt

    error = drive(body).outcome.error
    assert error is not None
    assert (error.type, error.cause) == ("KeyboardInterrupt", "exited")


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, GeneratorExit])
def test_no_kind_of_exception_gets_out(drive: Drive, kind: type[BaseException]) -> None:
    async def body(turn: Any) -> None:
        raise kind("x")

    error = drive(body).outcome.error
    assert error is not None
    assert error.type == kind.__name__


def test_a_long_message_and_a_long_traceback_are_bounded(drive: Drive) -> None:
    def ping(depth: int) -> None:
        pong(depth)

    def pong(depth: int) -> None:
        ping(depth + 1)

    async def deep(turn: Any) -> None:
        ping(0)

    async def wordy(turn: Any) -> None:
        raise ValueError("x" * 10_000_000)

    for body in (deep, wordy):
        error = drive(body).outcome.error
        assert error is not None
        assert len(error.message) <= 4_000
        assert error.traceback is not None
        assert len(error.traceback) <= TRACEBACK_LIMIT


def test_a_failing_task_that_takes_the_loop_down_is_an_outcome(runner: TurnRunner) -> None:
    @agent
    async def parent(turn: Turn) -> None:
        async def child() -> None:
            sys.exit(4)

        task = asyncio.create_task(child())
        await asyncio.Event().wait()
        await task

    error = runner.run(make_spec(), parent, FakePort()).outcome.error
    assert error is not None
    assert "sys.exit(4)" in error.message

    @agent
    async def fine(turn: Turn) -> str:
        return "next"

    assert runner.loop.tidy() == []
    assert runner.run(make_spec(), fine, FakePort()).outcome.text == "next"


# ---------------------------------------------------------------------- the turn around it


def test_state_is_committed_with_the_outcome_and_comes_back(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        turn.state["seen"] = turn.state.get("seen", 0) + 1

    first = drive.ok(body)
    assert first.state == b'{"seen":1}'
    assert drive.ok(body, state=first.state).state == b'{"seen":2}'


def test_state_that_did_not_change_is_not_committed(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        return None

    assert drive.ok(body).state is None
    assert drive.ok(body, state=b'{"a":1}').state is None


def test_state_of_a_turn_that_failed_is_not_committed(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        turn.state["a"] = 1
        raise ValueError

    assert drive(body).state is None


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ({"big": "x" * 70_000}, "StateTooLarge", "70010 bytes"),
        ({"ok": 1, "bad": {1, 2}}, "TypeError", "turn.state['bad']"),
        ({"nan": float("nan")}, "TypeError", "turn.state['nan']"),
        ({1: 2}, "TypeError", "the key 1"),
        ([1], "TypeError", "list"),
    ],
)
def test_a_state_that_cannot_be_kept_fails_the_turn(drive: Drive, state: Any, kind: str, said: str) -> None:
    async def body(turn: Any) -> str:
        turn.state = state
        return "fine otherwise"

    ended = drive(body)
    error = ended.outcome.error
    assert error is not None
    assert (ended.outcome.state, error.type, ended.state) == (RunState.FAILED, kind, None)
    assert said in error.message


def test_only_those_who_ask_get_a_follow_up(runner: TurnRunner) -> None:
    async def body(turn: Any) -> str:
        if turn.text == "fail":
            raise ValueError
        return "x"

    class Reviewer(Agent):
        def on_turn(self, turn: SyncTurn) -> str:
            return "x"

    plain, asking = as_agent("sync", body), as_agent("sync", body, follow_up=True)
    assert not runner.run(make_spec(), plain, FakePort()).follow_up
    assert runner.run(make_spec(), asking, FakePort()).follow_up
    assert runner.run(make_spec(), Reviewer, FakePort()).follow_up
    assert not runner.run(make_spec(text="fail"), asking, FakePort()).follow_up


def test_a_class_is_made_for_each_turn_and_may_be_async(runner: TurnRunner) -> None:
    made = []

    class Reviewer(Agent):
        def __init__(self) -> None:
            made.append(self)

        async def on_turn(self, turn: Turn) -> str:
            assert isinstance(turn, Turn)
            await asyncio.sleep(0)
            return turn.text

    for _ in range(2):
        assert runner.run(make_spec(), Reviewer, FakePort()).outcome.text == "do it"
    assert len(set(map(id, made))) == 2


@pytest.mark.parametrize("raised", [ValueError("no config"), SystemExit(1)])
def test_a_class_that_cannot_be_made_is_a_failed_start(runner: TurnRunner, raised: BaseException) -> None:
    class Broken(Agent):
        def __init__(self) -> None:
            raise raised

        def on_turn(self, turn: SyncTurn) -> None:
            raise AssertionError("not reached")

    error = runner.run(make_spec(), Broken, FakePort()).outcome.error
    assert error is not None
    assert error.cause == "start_failed"
    assert error.message.startswith("Broken() raised")


def test_a_class_without_on_turn_is_a_failure(runner: TurnRunner) -> None:
    class Empty(Agent):
        pass

    error = runner.run(make_spec(), Empty, FakePort()).outcome.error
    assert error is not None
    assert "Empty has no on_turn" in error.message


def test_context_variables_of_one_turn_are_not_seen_by_the_next(drive: Drive) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def body(turn: Any) -> str:
        seen = variable.get()
        variable.set("set")
        return seen

    assert drive.ok(body).outcome.text == "unset"
    assert drive.ok(body).outcome.text == "unset"


def test_a_plain_function_may_hand_back_a_coroutine(runner: TurnRunner) -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    @agent
    def wrapped(turn: Any) -> Any:
        return work()

    assert runner.run(make_spec(), wrapped, FakePort()).outcome.text == "done"


def test_the_runtime_is_measured_in_seconds(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        return None

    assert 0 <= drive.ok(body).runtime < 5
