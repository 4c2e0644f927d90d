"""A runtime of threads in this process, with what commands use of the real one; as a program, them on it.

Sessions are calls in threads; a stop makes ``turn.check`` raise and what is queued end as cancelled.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from types import SimpleNamespace
from typing import Any

import stand_ins

from openclaw_ray.agents.info import agent_info
from openclaw_ray.core.errors import AskTimeout, UnknownAgent
from openclaw_ray.core.events import Event
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import ErrorInfo, Result, StopReport

ROOT = "agent:main:driver:fake"


class FakeCancelled(BaseException):
    """What `turn.check` raises after a stop."""


class FakeTurn:
    """The part of a turn that the built-in agents use."""

    def __init__(self, runtime: FakeRuntime, key: str, item: object) -> None:
        self._runtime = runtime
        self._key = key
        self.input = item
        self.text = item if isinstance(item, str) else repr(item)

    def check(self) -> None:
        if self._runtime.stopped.is_set():
            raise FakeCancelled

    def progress(self, text: str | None = None, done: float | None = None, total: float | None = None) -> None:
        self._runtime.emit("progress", session_key=self._key, agent_id=_agent_of(self._key), text=text, total=total)

    def map(self, agent_id: str, items: Iterable[object], width: int | None = None) -> list[Result[Any]]:
        return list(self._runtime.imap(agent_id, items, width=width, requester=self._key))


class FakeRuntime:
    """See the module. ``closed`` has an entry for each close, True by force; ``ended`` says what ended."""

    def __init__(self, agents: Iterable[Any]) -> None:
        self.agents: dict[str, Callable[[Any], Any]] = {agent_info(a).id: a for a in agents}
        self.root_key = ROOT
        self.stopped = threading.Event()
        self.closed: list[bool] = []
        self.calls: list[dict[str, Any]] = []
        self.ended: list[str] = []
        self.stops: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.started = 0
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._number = itertools.count(1)
        self._seq = itertools.count(1)

    def imap(
        self,
        agent_id: str,
        items: Iterable[object],
        *,
        width: int | None = None,
        timeout: float | None = None,
        retries: int = 0,
        map_id: str | None = None,
        failed_only: bool = False,
        requester: str = ROOT,
    ) -> Iterator[Result[Any]]:
        if agent_id not in self.agents:
            raise UnknownAgent(agent_id, tuple(self.agents))
        options = {"map_id": map_id, "failed_only": failed_only} if map_id is not None else {}
        self.calls.append({"agent_id": agent_id, "width": width, "timeout": timeout, "retries": retries, **options})
        window = threading.Semaphore(4 * (width or 4))
        futures: queue.SimpleQueue[Future[Result[Any]] | BaseException | None] = queue.SimpleQueue()
        pool = ThreadPoolExecutor(width or 4)

        def feed() -> None:
            try:
                for item in items:
                    window.acquire()
                    futures.put(pool.submit(self._run, agent_id, item, requester))
                futures.put(None)
            except Exception as error:  # noqa: BLE001 - raised where the results are taken
                futures.put(error)

        threading.Thread(target=feed, daemon=True).start()
        try:
            while (future := futures.get()) is not None:
                if isinstance(future, BaseException):
                    raise future
                yield future.result()
                window.release()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self.ended.append(f"map {agent_id}")

    def map(self, agent_id: str, items: Iterable[object], width: int | None = None) -> list[Result[Any]]:
        return list(self.imap(agent_id, items, width=width))

    def ask(self, to: str, text: str, timeout: float | None = None) -> Result[Any]:
        self.calls.append({"ask": to, "text": text, "timeout": timeout})
        key = f"agent:{to}:main"
        asked = ThreadPoolExecutor(1).submit(self._run, to, text, ROOT, key)
        try:
            return asked.result(timeout).raise_for_status()
        except FutureTimeout:
            raise AskTimeout(key, self.rows[-1]["runId"], timeout or 0.0) from None

    def runs(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        assert list(filters) == ["root"]
        return self.rows[::-1][offset : offset + limit]

    def stop(self, key: str) -> StopReport:
        self.stops.append(key)
        self.stopped.set()
        return StopReport(key, 0, 0, 0, 0)

    def events(self) -> Iterator[Event]:
        while (event := self._events.get()) is not None:
            yield event

    def stats(self) -> object:
        return SimpleNamespace(
            sessions_started=self.started,
            warm_activations=self.started,
            cold_activations=0,
            peak_memory_bytes=10**8,
        )

    def close(self, *, force: bool = False) -> None:
        self.stopped.set()
        self.closed.append(force)
        self.ended.append("runtime")
        self._events.put(None)

    def emit(self, kind: str, **fields: Any) -> None:
        self._events.put(Event(seq=next(self._seq), at=time.time(), kind=kind, **fields))

    def _run(self, agent_id: str, item: object, requester: str, key: str | None = None) -> Result[Any]:
        number = next(self._number)
        run_id = f"run-{number}"
        key = key or f"agent:{agent_id}:subagent:{number}"
        row: dict[str, Any] = {"runId": run_id, "sessionKey": key, "agentId": agent_id, "requesterKey": requester}
        row["state"] = "running"
        self.rows.append(row)
        self.started += 1
        ids = {"run_id": run_id, "session_key": key}
        about = {"agent_id": agent_id, "requester_key": requester, **ids}
        self.emit("run", state="running", **about)
        result = self._outcome(agent_id, FakeTurn(self, key, item), ids)
        row["state"] = "succeeded" if result.ok else "failed"
        if result.error is not None:
            row["error"] = result.error.to_json()
        self.emit("run", state=row["state"], **about)
        return result

    def _outcome(self, agent_id: str, turn: FakeTurn, ids: dict[str, str]) -> Result[Any]:
        try:
            turn.check()
            value = self.agents[agent_id](turn)
        except FakeCancelled:
            return Result(ResultStatus.CANCELLED, error=ErrorInfo("stopped", "stopped", cause="stopped"), **ids)
        except Exception as error:  # noqa: BLE001 - an outcome
            text = f"{type(error).__name__}: {error}"
            return Result(ResultStatus.ERROR, error=ErrorInfo(type(error).__name__, str(error), traceback=text), **ids)
        text = value if isinstance(value, str) else None
        return Result(text=text, value=None if text is not None else value, runtime_ms=1, **ids)


def _agent_of(key: str) -> str:
    return key.split(":")[1]


def main() -> None:
    """``python fake_runtime.py map …``: the command line on this runtime, in a process that can be killed."""
    stand_ins.install()
    from openclaw_ray.cli import opening
    from openclaw_ray.cli.main import run

    opening.start_runtime = lambda agents, place, **_: FakeRuntime(agents)  # type: ignore[assignment]
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
