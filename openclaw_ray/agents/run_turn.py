"""One turn from its start to its outcome, in the thread that calls.

Cancelling, from any thread, any number of times:

1. The port's ``on_cancel``, or `TurnRunner.cancel`, tells the turn its reason; the first one stays.
2. A plain agent sees it where it waits (`SyncTurn` raises `Cancelled`) or asks (`check`).
3. An async agent's task is cancelled once, by ``call_soon_threadsafe``: a second time would break into its
   clean-up.
4. What the agent makes of it is its own affair: it may still return, and that outcome is reported; the
   registry judges. One that goes on for ever is ended with its process (PROTOCOL.md 6.6).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents._turn_base import TurnBase
from openclaw_ray.agents.agent_class import turn_method
from openclaw_ray.agents.info import agent_info, is_async
from openclaw_ray.agents.outcome import control_flow, failed, outcome_of_exception, outcome_of_return
from openclaw_ray.agents.port import TurnPort
from openclaw_ray.agents.state import dump_state
from openclaw_ray.agents.sync_turn import SyncTurn
from openclaw_ray.agents.text import said
from openclaw_ray.agents.traces import agent_traceback
from openclaw_ray.agents.turn import Turn
from openclaw_ray.agents.turn_loop import TurnLoop
from openclaw_ray.core.errors import TurnYielded
from openclaw_ray.core.lifecycle import Cause, RunKind, RunState
from openclaw_ray.core.protocol.messages import Outcome, Spec
from openclaw_ray.core.results import Completion

if TYPE_CHECKING:
    from openclaw_ray.agents.tools.tool import Tool

__all__ = ["Ended", "TurnRunner"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended; the fields of `Settled` that the agent decides.

    Attributes:
        outcome: as this process saw it.
        held: the returned object, if its pickle is too large to travel (``outcome.held`` bytes); else `None`.
        state: JSON of ``turn.state`` to commit; `None` if unchanged, or if the turn failed.
        yielded: it ended by ``turn.yield_()``.
        follow_up: it asks for a further turn when its children have settled (PROTOCOL.md 5.3).
        runtime: seconds.
        waits_for, acknowledgment: of the yield.
    """

    outcome: Outcome
    held: Any
    state: bytes | None
    yielded: bool
    follow_up: bool
    runtime: float
    waits_for: str = ""
    acknowledgment: str = ""


class TurnRunner:
    """Runs the turns of a process, one after the other.

    Args:
        loop: where async agents run; left as they leave it, `hygiene.check` tidies it.
        catalog: gives the tools of an agent that lists these.
    """

    def __init__(
        self,
        loop: TurnLoop | None = None,
        catalog: Callable[[tuple[Any, ...]], Mapping[str, Tool]] | None = None,
    ) -> None:
        self.loop = TurnLoop() if loop is None else loop
        self._catalog = catalog or _catalog
        self._turn: TurnBase | None = None

    def run(
        self,
        spec: Spec,
        agent: Any,
        port: TurnPort,
        *,
        input: Any = None,
        completions: Iterable[Completion] = (),
        attachments: Sequence[str] = (),
    ) -> Ended:
        """Run one turn. Never raises for anything that the agent does.

        Args:
            agent: an agent function or an `Agent` class, loaded for this activation.
            input: the decoded input of ``spec``.
            completions: those of ``spec`` with their values; they count as consumed by this turn.
            attachments: paths of the session's files.
        """
        began = time.monotonic()
        info = agent_info(agent)
        ends = tuple(completions)
        if isinstance(agent, type):
            method = turn_method(agent, spec.kind == RunKind.RESUME)
            call, outcome = _construct(agent, method)
            waits = is_async(getattr(agent, method))
        else:
            call, outcome, waits = agent, None, is_async(agent)
        stop = _TaskCancel()
        kind = Turn if waits else SyncTurn
        tools = partial(self._catalog, info.tools)
        turn = kind(
            spec, port, input=input, completions=ends, on_cancel=stop, catalog=tools, attachments=attachments
        )
        if ends and outcome is None:  # an agent that cannot be constructed has heard of nothing
            port.consume([done.run_id for done in ends])
        held, state, end = None, None, None
        self._turn = turn
        try:
            if outcome is None:
                turn.check()
                outcome, held = outcome_of_return(self._call(call, turn, stop))
        except BaseException as exc:  # noqa: BLE001 - whatever an agent raises is an outcome
            outcome = outcome_of_exception(exc, turn._cancelled)
            end = control_flow(exc)
        finally:
            self._turn = None
        turn._end()
        if outcome.state is RunState.SUCCEEDED:
            try:
                state = dump_state(turn.state, spec.state)
            except Exception as exc:  # noqa: BLE001 - a dict that a thread of its still changes, for one
                outcome, held, end = failed(type(exc).__name__, str(exc), Cause.RAISED), None, None
        lasted = time.monotonic() - began
        if isinstance(end, TurnYielded):
            return Ended(
                outcome,
                held,
                state,
                True,
                outcome.state is RunState.SUCCEEDED,
                lasted,
                end.wait_for,
                end.acknowledgment,
            )
        follow_up = outcome.state is RunState.SUCCEEDED and info.follow_up
        return Ended(outcome, held, state, False, follow_up, lasted)

    def cancel(self, reason: str) -> None:
        """Have the running turn end, if one runs; from any thread.

        Args:
            reason: ``stopped`` or ``timeout``.
        """
        turn = self._turn
        if turn is not None:
            turn._cancel(reason)

    def _call(self, call: Callable[[Any], Any], turn: TurnBase, stop: _TaskCancel) -> Any:
        # context variables that an agent sets are not the next one's
        returned = contextvars.copy_context().run(call, turn)
        if inspect.isawaitable(returned):
            return self.loop.run(returned, stop.started)
        return returned


class _TaskCancel:
    """Cancels the turn's task once, whether it is asked before or after the task is there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def __call__(self, reason: str) -> None:
        with self._lock:
            asked, self._asked = self._asked, True
            if asked or self._task is None:
                return
            loop, task = self._task
        with contextlib.suppress(RuntimeError):  # the loop is closed: the turn was over
            loop.call_soon_threadsafe(task.cancel)

    def started(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        with self._lock:
            self._task = (loop, task)
            if self._asked:
                task.cancel()


def _construct(agent: type, method: str) -> tuple[Callable[[Any], Any], Outcome | None]:
    try:
        made: Callable[[Any], Any] = getattr(agent(), method)
    except BaseException as exc:  # noqa: BLE001 - so is what its class raises
        message = f"{agent.__name__}() raised {type(exc).__name__}: {said(exc, 2_000)}"
        return agent, failed(type(exc).__name__, message, Cause.START_FAILED, agent_traceback(exc))
    return made, None


def _catalog(tools: tuple[Any, ...]) -> Mapping[str, Tool]:
    from openclaw_ray.agents.tools.catalog import catalog  # most turns never look at their tools

    return catalog(tools)
