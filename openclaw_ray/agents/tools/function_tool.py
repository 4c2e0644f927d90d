"""A call of a tool that is a function of the user's: how it is run, and what becomes of its end (DESIGN.md 7).

1. The call is read; what is wrong with it is raised before anything has happened.
2. The function runs where it harms no one: one of the turn's own kind in the turn itself; a plain one of an async turn
   in a thread, an async one of a plain turn on a loop of its own; one with Ray options as a Ray task.
3. A stop or deadline ends the wait at once, cancels what is async, and kills a Ray task. A plain function sees it
   where it asks (``turn.check``); one that does not, costs the process its further use.
4. Its end is a row of the transcript: result, error, or that the turn ended first.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import math
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import asdict, dataclass, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from openclaw_ray.agents._waits import Call
from openclaw_ray.agents.port import ToolTask
from openclaw_ray.agents.text import clean, said, short_repr
from openclaw_ray.agents.tools.decorator import ToolInfo, tool_info
from openclaw_ray.agents.tools.rows import note_call
from openclaw_ray.agents.tools.tool import Caller, Coro, Steps, Tool, Within
from openclaw_ray.agents.traces import agent_traceback
from openclaw_ray.agents.turn_loop import TurnLoop
from openclaw_ray.core.errors import Cancelled, ToolFailed, TurnYielded
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["FunctionTool", "function_tool", "in_thread", "plain_task", "result_of"]

_MESSAGE = 4_000  # characters
_SHOWN = 20_000


@dataclass(frozen=True)
class FunctionTool(Tool):
    """A tool whose parameters are those of a function."""

    info: ToolInfo | None = None

    def describe(self) -> dict[str, Any]:
        """See `Tool.describe`."""
        assert self.info is not None
        return {"name": self.name, "description": self.about, "parameters": self.info.signature.schema()}

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """See `Tool.read`."""
        assert self.info is not None
        return self.info.signature.read(given)


def function_tool(function: Callable[..., Any]) -> FunctionTool:
    """The tool of a function that `tool` has marked.

    Raises:
        TypeError: it has not.
    """
    info = tool_info(function)
    return FunctionTool(info.name, info.signature.about, (), partial(_steps, function, info), info=info)


def _steps(function: Callable[..., Any], info: ToolInfo, caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = info.signature.read(given)
    try:
        returned = yield from _returned(function, info, caller, values)
    except Exception as error:
        failed = error if isinstance(error, ToolFailed) and error.tool == info.name else _failed(info.name, error)
        note_call(caller, info.name, given, "error", f"{failed.kind}: {failed.message}")
        if failed is error:
            raise
        raise failed from error
    except BaseException as end:
        note_call(caller, info.name, given, "yielded" if isinstance(end, TurnYielded) else "cancelled", "")
        raise
    result = result_of(info.name, returned)
    note_call(caller, info.name, given, result.status, result.fields)
    return result


def _returned(
    function: Callable[..., Any], info: ToolInfo, caller: Caller, values: dict[str, Any]
) -> Generator[Future[Any] | Within | Coro, Any, Any]:
    """Run the function, where it is to run (2)."""
    if info.ray is not None:
        task = caller.port.task(ToolTask(info.name, function, values, info.waits, dict(info.ray)))
        return (yield from _outcome(task))
    if info.signature.turn is not None:
        values = {info.signature.turn: _turn_as(caller.turn, info.waits), **values}
    if info.waits:
        work = function(**values)
        if _is_async_turn(caller.turn):
            done: Future[Any] = Future()
            yield Coro(_caught(work, done))
            return done.result()
        return _on_a_loop(work, caller.turn)
    if not _is_async_turn(caller.turn):
        return function(**values)
    return (yield from _outcome(in_thread(info.name, partial(function, **values))))


def _outcome(future: Future[Any]) -> Generator[Within, Any, Any]:
    """Wait for it, and see it here, so that an exception is this tool's own; what nobody waits for is cancelled."""
    try:
        yield Within((future,), math.inf)
        return future.result()
    finally:
        future.cancel()


def in_thread(name: str, call: Callable[[], Any]) -> Future[Any]:
    """Call it in a thread of its own, which is named so that the clean check can tell whose it is."""
    future: Future[Any] = Future()

    def work() -> None:
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - it belongs to who waits
            with contextlib.suppress(InvalidStateError):
                future.set_exception(error)
        else:
            with contextlib.suppress(InvalidStateError):
                future.set_result(value)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name=f"tool {name}", daemon=True).start()
    return future


def plain_task(task: ToolTask) -> Future[Any]:
    """What is to run as a Ray task, where there is no Ray: in a thread, its coroutine on a loop of its own."""

    def call() -> Any:
        returned = task.function(**task.values)
        return asyncio.run(returned) if task.waits else returned

    return in_thread(task.tool, call)


# --------------------------------------------------------------------------- both kinds of turn


def _is_async_turn(turn: Any) -> bool:
    from openclaw_ray.agents.turn import Turn

    return isinstance(turn, Turn)


def _turn_as(turn: Any, waits: bool) -> Any:
    """The turn as a function of that kind needs it: another one's methods over the very same turn."""
    from openclaw_ray.agents.sync_turn import SyncTurn
    from openclaw_ray.agents.turn import Turn

    kind: Any = Turn if waits else SyncTurn
    if isinstance(turn, kind):
        return turn
    other = object.__new__(kind)
    other.__dict__ = turn.__dict__
    return other


async def _caught(work: Coroutine[Any, Any, Any], done: Future[Any]) -> None:
    # a cancelled task is its turn's affair: it goes through
    try:
        done.set_result(await work)
    except (Exception, Cancelled, TurnYielded) as error:  # noqa: BLE001 - the tool's own
        done.set_exception(error)


class _Cancel:
    """A wait of the turn's (`agents._waits`) that, woken, cancels a task."""

    def __init__(self) -> None:
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self.asked = False

    def put(self, call: Call) -> None:
        self.asked = True
        if self._task is not None:
            loop, task = self._task
            with contextlib.suppress(RuntimeError):  # the loop is closed: it is over
                loop.call_soon_threadsafe(task.cancel)

    def drain(self) -> bool:
        return False

    def started(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self._task = (loop, task)
        if self.asked:
            task.cancel()


def _on_a_loop(work: Coroutine[Any, Any, Any], turn: Any) -> Any:
    """Await it in this thread; a stop of the turn cancels it."""
    loop, cancel = TurnLoop(), _Cancel()
    turn._watch.open(cancel)
    try:
        if turn._cancelled is not None:
            cancel.asked = True
        return loop.run(work, cancel.started)
    except asyncio.CancelledError:
        turn.check()
        raise RuntimeError("it was cancelled, and not by a stop of the turn") from None
    finally:
        turn._watch.close(cancel)
        loop.tidy()
        loop.close()


# --------------------------------------------------------------------------- ends


def _failed(tool: str, error: Exception) -> ToolFailed:
    return ToolFailed(tool, type(error).__name__, said(error, _MESSAGE), agent_traceback(error))


def result_of(tool: str, returned: Any) -> ToolResult:
    """What a function has returned, as a result (see `tool`)."""
    if isinstance(returned, ToolResult):
        return replace(returned, tool=tool)
    if returned is None:
        return ToolResult(tool)
    if isinstance(returned, str):
        return ToolResult(tool, {"text": clean(returned)}, value=returned)
    try:
        plain = json.loads(json.dumps(returned, default=_plain, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return ToolResult(tool, {"text": short_repr(returned, _SHOWN)}, value=returned)
    fields = plain if isinstance(returned, Mapping) else {"value": plain}
    return ToolResult(tool, fields, value=returned)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(type(value).__name__)
