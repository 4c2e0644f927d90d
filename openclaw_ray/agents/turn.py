"""`Turn`: the turn of an agent that is a coroutine function."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_ray.agents._asking import MISSING, isolated
from openclaw_ray.agents._joining import Until
from openclaw_ray.agents._turn_base import TurnBase, plain_rows
from openclaw_ray.agents._waits import AsyncWait, Deadline, nothing
from openclaw_ray.agents.sending import SEND_SECONDS, send_request, send_steps
from openclaw_ray.agents.tools.calling import ToolCalls
from openclaw_ray.agents.within import Coro, Within
from openclaw_ray.core.branching import too_large
from openclaw_ray.core.mapping import OnError
from openclaw_ray.core.results import Completion, Receipt, Result
from openclaw_ray.core.tool_results import ToolResult

if TYPE_CHECKING:
    from openclaw_ray.agents.audience import AsyncAudience
    from openclaw_ray.agents.limit import AsyncLimit
    from openclaw_ray.agents.session_view import TurnEvent
    from openclaw_ray.agents.turn_auth import TurnAuth
    from openclaw_ray.core.auth import AuthAsk, AuthOutcome
    from openclaw_ray.core.message import MessageMode
    from openclaw_ray.core.policy import ToolView
    from openclaw_ray.core.prompts import Prompt
    from openclaw_ray.core.sent import Sent

__all__ = ["Turn"]

T = TypeVar("T")


class Turn(TurnBase, ToolCalls[Awaitable[ToolResult]]):
    """A turn whose calls are awaited. A stop or deadline cancels the agent's task (`asyncio.CancelledError`).

    Calls may run side by side (`asyncio.gather`), and may be given up by the agent itself
    (`asyncio.timeout`): a join that is given up leaves its children alone, a map stops its own.
    """

    async def spawn(
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
        """Ask for a child session; returns as soon as it is admitted, before it runs (SPEC.md B1).

        Args:
            task: what to do, at most 1 MB of UTF-8. If empty, a short repr of the input stands for it.
            agent_id: which agent; this session's own if not given. ``agent`` is another name for it.
            input: any Python object that can be pickled, or an ``ObjectRef``; the child's ``turn.input``.
            label: display title, at most 512 characters.
            run_timeout_seconds: from the first start to the deadline; 0 is none, the default is configured.
            expects_completion_message: False if nobody is to be told of its end; then it cannot be joined.
            task_name: a handle: a-z, then a-z, 0-9, _ and -, at most 64 characters.
            params: the other parameters of ``sessions_spawn``, by their snake_case names.
                ``cwd``, ``model``, ``thinking``, ``context``, ``light_context``, ``sandbox``, ``cleanup``, ``mode``;
                with ``tools={"allow": […], "deny": […]}`` the child and all below it have no more tools than that;
                ``attachments=[{"name": …, "content": text | bytes | ObjectRef}]`` are copied now, a reference is not.

        Raises:
            SpawnForbidden: a policy refused it; ``receipt`` names limit, value and configuration path.
            SpawnError: it cannot be done as asked; so is what this runtime does not do yet.
            ToolInputError: a parameter is of another type.
            InvalidItem: an empty task and no input.
            TaskTooLarge: pass the data as input.
            Cancelled: the turn is to end.
        """
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
        if request.forks and too_large(await self._result_of(self._port.transcript_bytes())):
            request = isolated(request)
        return self._admitted(request, await self._result_of(self._port.spawn([request])[0]))

    async def join(
        self,
        receipts: Receipt | Iterable[Receipt] | None = None,
        until: Until | str = Until.ALL,
        timeout: float | None = None,
    ) -> list[Completion]:
        """Wait for children and consume their ends; no further turn is started for them.

        The slot is free while it waits; it goes on after this turn has one again (PROTOCOL.md 5.4).

        Args:
            receipts: of whom; all children whose ends were not consumed yet if not given.
            until: ``all``, or ``first``: the first to settle is returned alone, the others are stopped, and
                their ends are consumed unseen, when they come.
            timeout: seconds to wait here; the children's own timeouts are another matter.

        Returns:
            Completions in order of birth; empty if there are no children.

        Raises:
            JoinTimeout: names the session keys of those not settled. Nothing was consumed or stopped.
            Cancelled: the turn is to end.
        """
        deadline = Deadline(timeout)
        joining = self._start_join(receipts, until)
        self.check()
        if not joining.satisfied:
            wait = AsyncWait()
            self._watch.open(wait, joining.ended)
            try:
                for run_id in joining.pending:
                    self._watch.follow(run_id)
                wait.drain()
                if not joining.satisfied and not deadline.passed:
                    async with self._paused():
                        await _wait_until(self.check, wait, deadline, lambda: joining.satisfied)
            finally:
                self._watch.close(wait)
        if not joining.satisfied:
            raise joining.timed_out(deadline.seconds or 0.0)
        return self._end_join(joining)

    async def map(
        self,
        agent_id: str,
        items: Iterable[Any],
        width: int | None = None,
        timeout: float | None = None,
        *,
        retries: int = 0,
        on_error: OnError | str = OnError.COLLECT,
    ) -> list[Result[Any]]:
        """Run one child per item and give their results in the order of the items (PROTOCOL.md 4.6).

        A refusal by ``maxChildrenPerAgent`` is waited out; any other one of the first item is raised, as by `spawn`.
        Whatever else goes wrong with an item is the result in its place, with ``text=None``: a later refusal, an
        empty or too large item, a run that failed, timed out or was lost.

        Args:
            agent_id: who runs the items.
            items: `str` items are task texts, others the child's ``turn.input``. Pulled as there is room.
            width: most children of this map at once; 8 if not given.
            timeout: each run's own timeout in seconds; 0 is none, not given is what is configured.
            retries: further runs of an item that failed, timed out or was lost.
            on_error: ``collect``, or ``raise``: the first item without success stops the others.

        Raises:
            SpawnForbidden, SpawnError: the first item is refused by a rule, and nothing was started.
            RunError: with ``on_error="raise"``.
            Cancelled: the turn is to end.
            Exception: what ``items`` raised; the children that run are stopped.
        """
        wait = AsyncWait()
        job = self._start_map(wait, agent_id, items, width, timeout, retries, on_error)
        self.check()
        self._watch.open(wait, job.ended_elsewhere)
        try:
            # nothing to wait for if there are no items, or none that can be asked for
            if not job.step():
                async with self._paused():
                    self.check()
                    while not job.step():
                        await wait.wait(job.patience)
                        self.check()
            return job.finish()
        except BaseException:
            if self._cancelled is None:
                job.abandon()
            raise
        finally:
            self._watch.close(wait)

    async def call(self, name: str, /, **params: Any) -> ToolResult:
        """Call a tool as a model would; a refusal is a result, see `ToolResult.status`.

        Args:
            name: which tool; `tools` has those there are.
            params: its parameters, camelCase or snake_case.

        Raises:
            UnknownTool: there is no such tool.
            ToolDenied: the session may not have it; names the rule and the configuration path.
            ToolInputError: a parameter is unknown, missing or of another type.
            ToolFailed: a tool of one's own has raised.
            TurnYielded: by ``sessions_yield``: the turn ends here.
            Cancelled: the turn is to end.
        """
        return await self._run(self._steps(name, params))

    async def send(
        self,
        to: str | None,
        message: str,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        timeout_seconds: float = SEND_SECONDS,
        mode: MessageMode | str | None = None,
    ) -> Sent:
        """Send a message to another session and wait for its reply, without a slot (SPEC.md B2).

        When the two of them go on after it (``maxPingPongTurns``), this session gets turns of kind ``message`` for
        that, after this one. What was not heard here, and how it ended, is an event of the next turn, once.

        Args:
            to: session key, ``main``, or session id; `None` if it is named otherwise.
            message: the text of a turn of its.
            label: of the session: a child's of this one, or the only one of that label in sight.
            agent_id: with a label, whose session; alone, that agent's main session, which is made if need be.
            timeout_seconds: how long to wait; 0 does not wait at all.
            mode: ``notify`` starts no turn, ``steer`` reaches the turn that runs if its program looks (`messages`), see
                `MessageMode`; ``followup`` if not given.

        Returns:
            ``ok`` with the reply, ``no_reply``, ``accepted`` if it has not come yet, ``queued`` for a notice, or how
            the turn ended otherwise.

        Raises:
            SpawnForbidden: a rule forbids it: visibility, agent-to-agent, the sandbox, the bound of the chain.
            SpawnError: there is no such session, or a wait that would close a circle. `InboxFull`: no room.
            ValueError: an argument cannot be as it is.
            Cancelled: the turn is to end.
        """
        request = send_request(
            to, message, label=label, agent_id=agent_id, timeout_seconds=timeout_seconds, mode=mode
        )
        return self._sent(await self._run(send_steps(self._port, request)))

    async def messages(self, timeout: float = 0.0) -> list[TurnEvent]:
        """Take the messages with mode ``steer`` that came while this turn runs, oldest first (SPEC.md B2).

        Each is the turn's from then on, a row of its transcript, and no turn of its own. What is not taken before the
        turn ends is a turn after it, as messages of other modes are.

        Args:
            timeout: seconds to wait for one if there is none, without a slot.

        Returns:
            Events of kind ``message`` with ``text`` and ``source``, a session's or nobody's.

        Raises:
            Cancelled: the turn is to end.
        """
        from openclaw_ray.agents.steered import message_steps

        return await self._run(message_steps(self._port, timeout))

    async def tool_view(self) -> ToolView:
        """What this session may call, and which rule decided; the turn keeps what its first look has found."""
        self.check()
        return self._tool_view or self._saw(await self._result_of(self._port.look("tools")))

    def limit(self, name: str, cost: float = 1, *, timeout: float | None = None) -> AsyncLimit:
        """Wait for a rate limit that sessions share: ``async with turn.limit("api") as limit: …``.

        Configured as ``ray.limits.<name>: {rate, per, burst, concurrent}``; one for the whole runtime, fair between
        the trees that wait. ``limit.back_off(seconds)`` slows all sessions down.

        Args:
            name: which limit.
            cost: tokens that it takes. More than the limit's ``burst`` waits for a full bucket and leaves it in debt.
            timeout: seconds to wait at most.

        Raises:
            UnknownLimit: there is no such limit.
            LimitHeldAbove: its places are all held by sessions that wait above this one.
            LimitTimeout: it was not let in within ``timeout``.
            Cancelled: the turn is to end.
        """
        from openclaw_ray.agents.limit import AsyncLimit

        return AsyncLimit(self._port, self._waited, name, cost, timeout)

    def audience(self) -> AsyncAudience:
        """Whose memory this session may see, for those who provide memory: ``await turn.audience().use()``.

        It is the owner's own, or one conversation's, as the root of the tree is; every session between must still be
        the one that was spawned (SPEC.md I3). Keep it, and ask ``use()`` before each operation: once a session above
        was reset or deleted it raises `AudienceDenied`, for good.
        """
        from openclaw_ray.agents.audience import AsyncAudience

        return AsyncAudience(self._port, self._result_of)

    async def history(self, limit: int = 20, offset: int = 0) -> list[dict[str, Any]]:
        """Rows of the session's transcript, newest last: dicts of ``role``, ``text`` and ``at``.

        ``at`` is in seconds since the epoch.

        Args:
            limit: most rows.
            offset: rows to skip, counted from the newest.
        """
        self.check()
        rows = await self._result_of(self._port.history(limit, offset))
        return plain_rows(rows)

    @property
    def auth(self) -> TurnAuth:
        """The credentials of this session's agent."""
        from openclaw_ray.agents.turn_auth import TurnAuth  # a turn that asks for none does not pay for it

        return TurnAuth(self._asks_auth)

    async def _asks_auth(self, request: AuthAsk | AuthOutcome) -> Any:
        self.check()
        return await self._result_of(self._port.auth(request))

    async def prompt(self) -> Prompt:
        """What a model would be given besides the transcript: system prompt, the agent's files, how the children stand.

        Nothing is read before this is called. The files are those of the agent's own workspace, whatever ``cwd`` is;
        with ``lightContext`` there are none. It speaks of those tools alone that the session may call.

        Raises:
            NoToolsLeft: allow lists are set, and they leave no tool.
        """
        self.check()
        await self.tool_view()
        children: list[Any] = await self._result_of(self._port.look("children"))
        return self._prompt_of(children, self.tools)

    # ------------------------------------------------------------------ waiting

    async def _run(self, steps: Generator[Future[Any] | Within | Coro, Any, T]) -> T:
        self.check()
        with contextlib.closing(steps):  # a wait that ends otherwise is told to the tool
            try:
                waited = next(steps)
                while True:
                    waited = steps.send(await self._waited(waited))
            except StopIteration as done:
                result: T = done.value
                return result

    async def _waited(self, waited: Future[Any] | Within | Coro) -> Any:
        if isinstance(waited, Coro):
            return await waited.work
        if not isinstance(waited, Within):
            return await self._result_of(waited)
        wait, deadline = AsyncWait(), Deadline(waited.seconds)
        self._watch.open(wait)
        try:
            for future in waited.futures:
                future.add_done_callback(lambda _: wait.put(nothing))
            async with self._paused() if waited.frees_slot else contextlib.nullcontext():
                await _wait_until(self.check, wait, deadline, lambda: waited.over)
        finally:
            self._watch.close(wait)
        return None

    async def _result_of(self, future: Future[T]) -> T:
        # not asyncio.wrap_future: giving up the wait would cancel what others wait for, too
        if not future.done():
            wait = AsyncWait()
            future.add_done_callback(lambda _: wait.put(nothing))
            await wait.wait(None)
        return future.result()

    @contextlib.asynccontextmanager
    async def _paused(self) -> AsyncIterator[None]:
        """Give the slot back inside; have one again before going on, unless the turn is to end."""
        self._port.pause()
        try:
            yield
        finally:
            if self._cancelled is None:
                await self._result_of(self._port.resume())


async def _wait_until(
    check: Callable[[], None], wait: AsyncWait, deadline: Deadline, satisfied: Callable[[], bool]
) -> None:
    while True:
        check()
        if satisfied() or deadline.passed:
            return
        await wait.wait(deadline.left())
