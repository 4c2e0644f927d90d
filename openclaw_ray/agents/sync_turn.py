"""`SyncTurn`: the turn of an agent that is a plain function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_ray.agents._asking import MISSING, isolated
from openclaw_ray.agents._joining import Until
from openclaw_ray.agents._turn_base import TurnBase, plain_rows
from openclaw_ray.agents._waits import Deadline, SyncWait, nothing
from openclaw_ray.agents.sending import SEND_SECONDS, send_request, send_steps
from openclaw_ray.agents.tools.calling import ToolCalls
from openclaw_ray.agents.within import Coro, Within
from openclaw_ray.core.branching import too_large
from openclaw_ray.core.mapping import OnError
from openclaw_ray.core.results import Completion, Receipt, Result
from openclaw_ray.core.tool_results import ToolResult

if TYPE_CHECKING:
    from openclaw_ray.agents.audience import SyncAudience
    from openclaw_ray.agents.limit import SyncLimit
    from openclaw_ray.agents.session_view import TurnEvent
    from openclaw_ray.agents.turn_auth import SyncTurnAuth
    from openclaw_ray.core.auth import AuthAsk, AuthOutcome
    from openclaw_ray.core.message import MessageMode
    from openclaw_ray.core.policy import ToolView
    from openclaw_ray.core.prompts import Prompt
    from openclaw_ray.core.sent import Sent

__all__ = ["SyncTurn"]

T = TypeVar("T")


class SyncTurn(TurnBase, ToolCalls[ToolResult]):
    """A turn whose calls block the thread of the agent; the same names as in `Turn`, without ``await``.

    Every call that waits raises `Cancelled` as soon as a stop or deadline reaches the turn. Code that runs
    for long between such calls asks by `check`.
    """

    def spawn(
        self,
        task: str = "",
        *,
        agent_id: str | None = None,
        agent: str | None = None,
        input: Any = MISSING,
        label: str | None = None,
        run_timeout_seconds: float | None = None,
        expects_completion_message: bool = True,
        task_name: str | None = None,
        **params: Any,
    ) -> Receipt:
        """Ask for a child session; see `Turn.spawn`."""
        request = self._spawn_request(
            task,
            agent_id=agent_id,
            agent=agent,
            input=input,
            label=label,
            run_timeout_seconds=run_timeout_seconds,
            expects_completion_message=expects_completion_message,
            task_name=task_name,
            params=params,
        )
        self.check()
        if request.forks and too_large(self._result_of(self._port.transcript_bytes())):
            request = isolated(request)
        return self._admitted(request, self._result_of(self._port.spawn([request])[0]))

    def join(
        self,
        receipts: Receipt | Iterable[Receipt] | None = None,
        until: Until | str = Until.ALL,
        timeout: float | None = None,
    ) -> list[Completion]:
        """Wait for children and consume their ends; see `Turn.join`."""
        deadline = Deadline(timeout)
        joining = self._start_join(receipts, until)
        self.check()
        if not joining.satisfied:
            wait = SyncWait()
            self._watch.open(wait, joining.ended)
            try:
                for run_id in joining.pending:
                    self._watch.follow(run_id)
                wait.drain()
                if not joining.satisfied and not deadline.passed:
                    self._pause(lambda: _wait_until(self.check, wait, deadline, lambda: joining.satisfied))
            finally:
                self._watch.close(wait)
        if not joining.satisfied:
            raise joining.timed_out(deadline.seconds or 0.0)
        return self._end_join(joining)

    def map(
        self,
        agent_id: str,
        items: Iterable[Any],
        width: int | None = None,
        timeout: float | None = None,
        *,
        retries: int = 0,
        on_error: OnError | str = OnError.COLLECT,
    ) -> list[Result[Any]]:
        """Run one child per item and give their results in the order of the items; see `Turn.map`."""
        wait = SyncWait()
        job = self._start_map(wait, agent_id, items, width, timeout, retries, on_error)
        self.check()
        self._watch.open(wait, job.ended_elsewhere)

        def work() -> None:
            self.check()
            while not job.step():
                wait.wait(job.patience)
                self.check()

        try:
            # nothing to wait for if there are no items, or none that can be asked for
            if not job.step():
                self._pause(work)
            return job.finish()
        except BaseException:
            if self._cancelled is None:
                job.abandon()
            raise
        finally:
            self._watch.close(wait)

    def call(self, name: str, /, **params: Any) -> ToolResult:
        """Call a tool as a model would; see `Turn.call`."""
        return self._run(self._steps(name, params))

    def send(
        self,
        to: str | None,
        message: str,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        timeout_seconds: float = SEND_SECONDS,
        mode: MessageMode | str | None = None,
    ) -> Sent:
        """Send a message to another session; see `Turn.send`."""
        request = send_request(
            to, message, label=label, agent_id=agent_id, timeout_seconds=timeout_seconds, mode=mode
        )
        return self._sent(self._run(send_steps(self._port, request)))

    def messages(self, timeout: float = 0.0) -> list[TurnEvent]:
        """Take the messages with mode ``steer`` that came while this turn runs; see `Turn.messages`."""
        from openclaw_ray.agents.steered import message_steps

        return self._run(message_steps(self._port, timeout))

    def tool_view(self) -> ToolView:
        """What this session may call, and which rule decided; see `Turn.tool_view`."""
        return self._view_here()

    def limit(self, name: str, cost: float = 1, *, timeout: float | None = None) -> SyncLimit:
        """Wait for a rate limit that sessions share: ``with turn.limit("api"): …``; see `Turn.limit`."""
        from openclaw_ray.agents.limit import SyncLimit

        return SyncLimit(self._port, self._waited, name, cost, timeout)

    def audience(self) -> SyncAudience:
        """Whose memory this session may see; ``use()`` proves it before each operation. See `Turn.audience`."""
        from openclaw_ray.agents.audience import SyncAudience

        return SyncAudience(self._port, self._result_of)

    def history(self, limit: int = 20, offset: int = 0) -> list[dict[str, Any]]:
        """Rows of the session's transcript; see `Turn.history`."""
        self.check()
        rows = self._result_of(self._port.history(limit, offset))
        return plain_rows(rows)

    @property
    def auth(self) -> SyncTurnAuth:
        """The credentials of this session's agent."""
        from openclaw_ray.agents.turn_auth import SyncTurnAuth  # a turn that asks for none does not pay for it

        return SyncTurnAuth(self._asks_auth)

    def _asks_auth(self, request: AuthAsk | AuthOutcome) -> Any:
        self.check()
        return self._result_of(self._port.auth(request))

    def prompt(self) -> Prompt:
        """What a model would be given besides the transcript; see `Turn.prompt`."""
        self.check()
        self.tool_view()
        children: list[Any] = self._result_of(self._port.look("children"))
        return self._prompt_of(children, self.tools)

    # ------------------------------------------------------------------ waiting

    def _run(self, steps: Generator[Future[Any] | Within | Coro, Any, T]) -> T:
        self.check()
        with contextlib.closing(steps):  # a wait that ends otherwise is told to the tool
            try:
                waited = next(steps)
                while True:
                    waited = steps.send(self._waited(waited))
            except StopIteration as done:
                result: T = done.value
                return result

    def _waited(self, waited: Future[Any] | Within | Coro) -> Any:
        if isinstance(waited, Coro):
            raise TypeError("a plain turn awaits nothing")
        if not isinstance(waited, Within):
            return self._result_of(waited)
        wait, deadline = SyncWait(), Deadline(waited.seconds)
        self._watch.open(wait)
        try:
            for future in waited.futures:
                future.add_done_callback(lambda _: wait.put(nothing))
            pause: Callable[[Callable[[], None]], None] = self._pause if waited.frees_slot else lambda work: work()
            pause(lambda: _wait_until(self.check, wait, deadline, lambda: waited.over))
        finally:
            self._watch.close(wait)
        return None

    def _result_of(self, future: Future[T]) -> T:
        if not future.done():
            wait = SyncWait()
            self._watch.open(wait)
            try:
                self.check()
                future.add_done_callback(lambda _: wait.put(nothing))
                wait.wait(None)
            finally:
                self._watch.close(wait)
            if not future.done():
                self.check()
        return future.result()

    def _pause(self, work: Callable[[], None]) -> None:
        """Give the slot back while ``work`` waits; have one again after it, unless the turn is to end."""
        self._port.pause()
        try:
            work()
        finally:
            if self._cancelled is None:
                self._result_of(self._port.resume())


def _wait_until(check: Callable[[], None], wait: SyncWait, deadline: Deadline, satisfied: Callable[[], bool]) -> None:
    while True:
        check()
        if satisfied() or deadline.passed:
            return
        wait.wait(deadline.left())
