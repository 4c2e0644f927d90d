"""`AsyncRuntime`: `Runtime` for programs with a running loop (servers, notebooks, async Ray actors) (DESIGN.md 7).

1. What has a future (spawn, result, ask, stop, maps, events) waits in the loop, however many wait; lists and figures
   go to a few threads.
2. A task that is cancelled while it waits leaves no thread behind. A spawn whose receipt nobody gets is stopped; an
   ask ends the waiting, as its timeout does, and its end is then taken unseen; a map stops what is un-ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from openclaw_ray.agents._asking import MISSING, accepted
from openclaw_ray.agents.sending import SEND_SECONDS, send_request
from openclaw_ray.core.errors import AskTimeout, JoinTimeout, PickleRefused, RuntimeClosed
from openclaw_ray.core.events import Event
from openclaw_ray.core.mapping import OnError
from openclaw_ray.core.message import MessageMode
from openclaw_ray.core.results import Receipt, Result
from openclaw_ray.core.sent import Sent, accepted_message, noticed
from openclaw_ray.runtime.async_map import AsyncMap, Steps, feed_of
from openclaw_ray.runtime.async_operating import AsyncOperating
from openclaw_ray.runtime.awaiting import Awaiting, in_own_thread
from openclaw_ray.runtime.looking import QUERY_WITHIN
from openclaw_ray.runtime.root_map import RootMap, root_steps
from openclaw_ray.runtime.runtime import Runtime
from openclaw_ray.runtime.stopped import answered

if TYPE_CHECKING:
    from openclaw_ray.channels import Channel
    from openclaw_ray.config import Config
    from openclaw_ray.core.policy import Sender
    from openclaw_ray.runtime.service import DownReport

__all__ = ["AsyncRuntime", "Opening"]

T = TypeVar("T")

_AGAIN_AFTER = 0.1


class Opening:
    """An `AsyncRuntime` on its way: ``await`` it, or enter it with ``async with``.

    Given up before it is there, it is closed as soon as it is.
    """

    def __init__(self, call: Callable[[], Runtime]) -> None:
        self._call = call
        self._opened: AsyncRuntime | None = None

    def __await__(self) -> Generator[Any, None, AsyncRuntime]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncRuntime:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> AsyncRuntime:
        awaiting = Awaiting()
        future = in_own_thread(self._call, "openclaw-opening")
        try:
            return AsyncRuntime(await awaiting.outcome(future), awaiting)
        except asyncio.CancelledError:
            future.add_done_callback(_close_it)
            raise
        except BaseException:
            awaiting.close()
            raise


class AsyncRuntime(AsyncOperating):
    """One client of a runtime, awaitable; the same names as `Runtime`. Made by `start` or `connect`.

    Its methods may be used from any loop of the process, one after the other or at once.
    """

    def __init__(self, runtime: Runtime, awaiting: Awaiting | None = None) -> None:
        self._sync = runtime
        self._waits = awaiting or Awaiting()

    # ------------------------------------------------------------------ opening

    @classmethod
    def start(
        cls,
        config: Config | str | Path | Mapping[str, Any] | None = None,
        agents: Iterable[Any] = (),
        name: str | None = None,
        state_dir: str | Path | None = None,
        if_exists: Literal["error", "connect"] = "error",
        recover: bool = False,
        runtime_env: dict[str, Any] | None = None,
        *,
        app_dir: str | Path | None = None,
        on_client_lost: Literal["stop", "keep"] = "stop",
        service: bool = False,
        channel: Channel | None = None,
    ) -> Opening:
        """Start a runtime; ``rt = await AsyncRuntime.start(…)`` or ``async with AsyncRuntime.start(…) as rt``.

        See `Runtime.start`.
        """
        known = list(agents)
        return Opening(
            lambda: Runtime.start(
                config,
                known,
                name,
                state_dir,
                if_exists,
                recover,
                runtime_env,
                app_dir=app_dir,
                on_client_lost=on_client_lost,
                service=service,
                channel=channel,
            )
        )

    @classmethod
    def connect(cls, name: str, *, on_client_lost: Literal["stop", "keep"] = "stop") -> Opening:
        """Join a live runtime; awaited or entered as `start`. See `Runtime.connect`."""
        return Opening(lambda: Runtime.connect(name, on_client_lost=on_client_lost))

    async def register(self, agents: Iterable[Any], *, app_dir: str | Path | None = None) -> None:
        """Add agents to the runtime; see `Runtime.register`."""
        known = list(agents)
        await self._in_thread(lambda: self._sync.register(known, app_dir=app_dir))

    @staticmethod
    async def down(name: str, *, keep: bool = False, force: bool = False) -> DownReport:
        """End a runtime that was started as a service; see `Runtime.down`."""
        return await asyncio.to_thread(lambda: Runtime.down(name, keep=keep, force=force))

    # ------------------------------------------------------------------ facts

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self._sync.name

    @property
    def root_key(self) -> str:
        """Session key of this client's own root."""
        return self._sync.root_key

    @property
    def ray_address(self) -> str:
        """Address of the Ray that it is in."""
        return self._sync.ray_address

    @property
    def state_dir(self) -> Path:
        """Where the runtime keeps its state; for a connected client this asks the registry, and blocks a moment."""
        return self._sync.state_dir

    @property
    def recovered(self) -> dict[str, int]:
        """See `Runtime.recovered`."""
        return self._sync.recovered

    # ------------------------------------------------------------------ work

    async def spawn(
        self,
        task: str = "",
        agent_id: str | None = None,
        *,
        requester: str | None = None,
        agent: str | None = None,
        input: Any = MISSING,
        label: str | None = None,
        run_timeout_seconds: float | None = None,
        expects_completion_message: bool = True,
        task_name: str | None = None,
        **params: Any,
    ) -> Receipt:
        """Start a child session; see `Runtime.spawn`."""
        asked = self._sync._spawning(
            task,
            agent_id,
            requester=requester,
            agent=agent,
            input=input,
            label=label,
            run_timeout_seconds=run_timeout_seconds,
            expects_completion_message=expects_completion_message,
            task_name=task_name,
            params=params,
            caller=self._sync._client.requester.agent_id,
        )
        try:
            return accepted(await self._waits.outcome(asked))
        except asyncio.CancelledError:
            asked.add_done_callback(self._take_back)
            raise

    async def result(self, receipt: Receipt, timeout: float | None = None) -> Result[Any]:
        """Wait for the end of a run, and give its outcome; see `Runtime.result`."""
        sync = self._sync
        sync._open()
        end = sync._client.requester.expected(receipt.run_id)
        if end is None:
            return await self._result_of_other(receipt, timeout)
        try:
            done = await self._waits.outcome(end, timeout)
        except TimeoutError:
            raise JoinTimeout(timeout or 0.0, (receipt.session_key,)) from None
        sync._client.requester.consume((receipt.run_id,))
        return done.result

    async def _result_of_other(self, receipt: Receipt, timeout: float | None) -> Result[Any]:
        sync = self._sync
        ended = await self._in_thread(sync._query, "ended", receipt.run_id, *sync._bound)
        if ended is None:
            try:
                ended = await self._waits.outcome(sync._others.join(receipt.run_id), timeout)
            except TimeoutError:
                raise JoinTimeout(timeout or 0.0, (receipt.session_key,)) from None
            finally:
                sync._others.leave(receipt.run_id)
        return sync._client.requester.read(ended).result

    async def ask(
        self,
        to: str,
        text: str,
        timeout: float | None = None,
        *,
        sender: Sender | Mapping[str, Any] | None = None,
    ) -> Result[Any]:
        """Send a message, and wait until the tree that it started has settled; see `Runtime.ask`."""
        key, asked = self._sync._asking(to, text, sender=sender)
        requester = self._sync._client.requester
        try:
            receipt = accepted(await self._waits.outcome(asked))
            if receipt.told:
                result = await self._result_of_other(receipt, timeout)
                return result if result.ok else await self._in_thread(answered, self._sync, result)
            end = requester.completion(receipt.run_id)
            done = await self._waits.outcome(end, timeout)
        except (TimeoutError, JoinTimeout):
            raise AskTimeout(key, receipt.run_id, timeout or 0.0) from None
        except asyncio.CancelledError:
            asked.add_done_callback(self._hear_unseen)
            raise
        requester.consume((receipt.run_id,))
        return done.result if done.result.ok else await self._in_thread(answered, self._sync, done.result)

    async def send(
        self,
        to: str | None,
        message: str,
        timeout_seconds: float = SEND_SECONDS,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        mode: MessageMode | str | None = None,
        requester: str | None = None,
        sender: Sender | Mapping[str, Any] | None = None,
    ) -> Sent:
        """Send a message and wait for the reply; see `Runtime.send`."""
        request = send_request(
            to,
            message,
            label=label,
            agent_id=agent_id,
            timeout_seconds=timeout_seconds,
            mode=mode,
            sender=sender,
        )
        asked = self._sync._sending(request, requester)
        try:
            receipt = accepted(await self._waits.outcome(asked))
        except asyncio.CancelledError:
            asked.add_done_callback(self._sync._leave_unheard)
            raise
        if request.notice:
            return noticed(receipt)
        if request.seconds <= 0 or receipt.told:
            return accepted_message(receipt)
        sends = self._sync._client.requester.sends
        reply = sends.reply(receipt.run_id)
        heard = False
        try:
            with contextlib.suppress(TimeoutError):
                await self._waits.outcome(reply, request.seconds)
        finally:
            heard = sends.leave(receipt.run_id)
        if not heard:
            return accepted_message(receipt)
        return await self._in_thread(self._sync._with_result, reply.result())

    async def map(
        self,
        agent_id: str,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        width: int | None = None,
        timeout: float | None = None,
        on_error: OnError | str = OnError.COLLECT,
        retries: int = 0,
        transcripts: Literal["all", "failed", "none"] = "all",
        map_id: str | None = None,
        failed_only: bool = False,
    ) -> list[Result[Any]]:
        """One session per item; results in the order of the items. See `imap`."""
        results = self.imap(
            agent_id,
            items,
            width=width,
            timeout=timeout,
            on_error=on_error,
            retries=retries,
            transcripts=transcripts,
            map_id=map_id,
            failed_only=failed_only,
        )
        return [result async for result in results]

    def imap(
        self,
        agent_id: str,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        width: int | None = None,
        timeout: float | None = None,
        on_error: OnError | str = OnError.COLLECT,
        retries: int = 0,
        transcripts: Literal["all", "failed", "none"] = "all",
        map_id: str | None = None,
        failed_only: bool = False,
        ordered: bool = True,
    ) -> AsyncMap:
        """One session per item, results as an async stream; see `Runtime.imap`.

        ``items`` may be an async iterable; a plain one is pulled in the loop, and must not block. Leaving the stream
        early (``break``, an exception, a cancelled task, ``aclose``) stops what is un-ended.

        Raises:
            UnknownAgent: when the first result is asked for; nothing was started.
        """
        sync = self._sync
        sync._open()
        options = sync._map_options(width, timeout, on_error, retries, transcripts, map_id, failed_only, ordered)
        source, feed = feed_of(items)

        async def begin() -> tuple[RootMap, Steps]:
            agent = sync._known_agent(agent_id, await self._in_thread(sync._query, "agents"))
            named = sync._named(agent, map_id, failed_only)
            if named is not None:
                await self._in_thread(named.begin)
            return root_steps(sync._client.requester, agent, source, named=named, **options)

        return AsyncMap(begin, feed)

    # ------------------------------------------------------------------ looking

    async def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """Events as they are journaled, from now on or from above number ``after``, until the runtime closes."""
        import ray
        from ray.exceptions import RayError

        try:
            seq: int = await self._in_thread(self._sync._query, "last_event") if after is None else after
            while not self._sync._closed:
                try:
                    events = await self._events_after(seq, 1.0)
                except (RayError, ValueError):
                    if self._sync._closed or not ray.is_initialized():
                        return
                    await asyncio.sleep(_AGAIN_AFTER)
                    continue
                for event in events:
                    seq = event.seq
                    yield event
        except RuntimeClosed:
            return

    async def _events_after(self, seq: int, wait: float) -> list[Event]:
        hub = await self._in_thread(self._sync._hub)
        reference = hub.events.remote(seq, wait)
        held, events = await self._waits.outcome(reference.future(), QUERY_WITHIN)
        return await self._in_thread(self._sync._read_events, seq, held, events)

    # ------------------------------------------------------------------ closing

    async def close(self, *, force: bool = False) -> None:
        """End what this client started; see `Runtime.close`. A cancelled wait does not keep it from ending."""
        closing = in_own_thread(lambda: self._sync.close(force=force), "openclaw-closing")
        closing.add_done_callback(lambda _: self._waits.close())
        await self._waits.outcome(closing)

    async def __aenter__(self) -> AsyncRuntime:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __reduce__(self) -> Any:
        raise PickleRefused("AsyncRuntime", f"use Runtime.connect({self.name!r}) in the other process")

    # ------------------------------------------------------------------ inside

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        self._sync._open()
        return await self._waits.in_thread(call, *args)

    def _take_back(self, asked: Future[Receipt]) -> None:
        """Nobody knows of this child: end it."""
        if asked.exception() is None and (receipt := asked.result()).accepted:
            self._sync._client.requester.dismiss((receipt.run_id,))

    def _hear_unseen(self, asked: Future[Receipt]) -> None:
        """Nobody waits for this answer any more: it is not to be kept for us for ever."""
        if asked.exception() is None and (receipt := asked.result()).accepted:
            requester = self._sync._client.requester
            end = requester.completion(receipt.run_id)
            end.add_done_callback(lambda _: requester.consume((receipt.run_id,)))


def _close_it(opening: Future[Runtime]) -> None:
    if opening.exception() is None:
        in_own_thread(opening.result().close, "openclaw-closing")
