"""A `TurnPort` without a runtime: everything that a courier would do, done by the test, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from openclaw_ray.agents.port import SpawnRequest, ToolTask
from openclaw_ray.agents.tools.function_tool import plain_task
from openclaw_ray.core.auth import AuthAsk, AuthOutcome
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.policy import ToolView
from openclaw_ray.core.protocol.messages import Row, Spec
from openclaw_ray.core.results import Completion, Receipt, Result, StopReport, Usage
from openclaw_ray.core.sent import Sent

__all__ = ["FakePort", "make_completion", "make_spec"]


def make_spec(**changes: Any) -> Spec:
    """A first turn of a task."""
    fields: dict[str, Any] = {
        "run": "run-0",
        "activation": "session.1",
        "number": 1,
        "session_key": "agent:worker:subagent:0",
        "session_id": "session",
        "agent_id": "worker",
        "bundle": "bundle",
        "kind": "task",
        "turn": 1,
        "text": "do it",
        "requester": "agent:main:main",
    }
    return Spec(**{**fields, **changes})


def make_completion(run_id: str, result: Result[Any]) -> Completion:
    """The end of a child as its requester hears it."""
    key = f"agent:child:subagent:{run_id}"
    return Completion(f"announce:v1:{key}:{run_id}", result, key, "sid", run_id, "child", None, "done", "")


def _names(kin: Any) -> tuple[str, str]:
    return kin.facts.run_id, kin.facts.session_key


class FakePort:
    """A port that logs what it is asked, and answers as the test says.

    Attributes:
        log: what was asked, in order.
        answer: gives the receipt of a request; accepted if it is `None`.
        run: gives the result of an accepted request at once; `None` leaves it to `settle`.
        hold: keep receipts back until `answer_held`.
        hold_resume: keep slots back until `grant`.
        on_pause: called, each on a thread of its own, when the turn pauses the first, second, … time.
        views: what `look` finds, by name.
        replies: to messages, by run id, when the test says so.
        stop_settles: stopped runs end at once, cancelled.
        reports: what stops of runs report; those of others stay open.
        steers: what steers of runs are answered; those of others are accepted.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.requests: list[SpawnRequest] = []
        self.answer: Callable[[SpawnRequest], Receipt | None] = lambda request: None
        self.run: Callable[[SpawnRequest], Result[Any] | None] = lambda request: None
        self.hold = False
        self.hold_resume = False
        self.stop_settles = True
        self.on_pause: list[Callable[[], Any]] = []
        self.consumed: list[str] = []
        self.stopped: list[str] = []
        self.progress_said: list[tuple[Any, ...]] = []
        self.usages: list[Usage] = []
        self.rows: list[Row] = []
        self.transcript_size = 0
        self.reports: dict[str, StopReport] = {}
        self.steers: dict[str, Receipt] = {}
        self.views: dict[str, list[Any]] = {}
        self.summaries: list[str] = []
        self.replies: dict[str, Future[Sent]] = {}
        self.pauses = self.resumes = 0
        self.paused = threading.Event()
        self.held: list[tuple[int, SpawnRequest, Future[Receipt]]] = []
        self.asked = threading.Event()
        self._resuming: list[Future[None]] = []
        self._lock = threading.RLock()
        self._futures: dict[str, Future[Completion]] = {}
        self._born: list[Receipt] = []
        self._reason: str | None = None
        self._callbacks: list[Callable[[str], None]] = []
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------------ what a turn asks

    def spawn(self, requests: Sequence[SpawnRequest]) -> list[Future[Receipt]]:
        futures = []
        for request in requests:
            future: Future[Receipt] = Future()
            futures.append(future)
            with self._lock:
                self.requests.append(request)
                self.log.append("spawn")
                self.held.append((len(self.requests), request, future))
        if not self.hold:
            self.answer_held()
        self.asked.set()
        return futures

    def completion(self, run_id: str) -> Future[Completion]:
        with self._lock:
            return self._futures.setdefault(run_id, Future())

    def reply(self, send: str) -> Future[Sent]:
        return self.replies.setdefault(send, Future())

    def leave_send(self, send: str) -> bool:
        heard = self.replies[send].done()
        self.log.append(f"{'heard' if heard else 'left'} {send}")
        return heard

    def steered(self) -> Future[None]:
        return Future()

    def take_steered(self) -> list[Future[Any]]:
        return []

    def children(self) -> list[Receipt]:
        with self._lock:
            return [receipt for receipt in self._born if receipt.run_id not in self.consumed]

    def consume(self, run_ids: Sequence[str]) -> None:
        with self._lock:
            self.consumed.extend(run_ids)
            self.log.extend(f"consume {run_id}" for run_id in run_ids)

    def steer(self, run_id: str, message: str) -> Future[Receipt]:
        self.log.append(f"steer {run_id}: {message}")
        future: Future[Receipt] = Future()
        future.set_result(self.steers.get(run_id, Receipt("accepted", f"{run_id}+")))
        return future

    def pause(self) -> None:
        self.pauses += 1
        self.log.append("pause")
        self.paused.set()
        if self.on_pause:
            self.thread(self.on_pause.pop(0))

    def resume(self) -> Future[None]:
        self.resumes += 1
        self.log.append("resume")
        future: Future[None] = Future()
        self._resuming.append(future)
        if not self.hold_resume:
            self.grant()
        self.asked.set()
        return future

    def stop(self, run_ids: Sequence[str]) -> list[Future[StopReport]]:
        self.stopped.extend(run_ids)
        self.log.extend(f"stop {run_id}" for run_id in run_ids)
        if self.stop_settles:
            for run_id in run_ids:
                self.settle(run_id, status=ResultStatus.CANCELLED)
        futures: list[Future[StopReport]] = [Future() for _ in run_ids]
        for run_id, future in zip(run_ids, futures, strict=True):
            if (report := self.reports.get(run_id)) is not None:
                future.set_result(report)
        return futures

    def map_done(self, summary: str) -> None:
        self.summaries.append(summary)
        self.log.append("map_done")

    def progress(self, text: str | None, done: float | None, total: float | None) -> None:
        self.progress_said.append((text, done, total))

    def add_usage(self, usage: Usage) -> None:
        self.usages.append(usage)

    def blocked(self, tool: str, rule: str) -> None:
        self.log.append(f"blocked {tool} {rule}")

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        future: Future[list[Row]] = Future()
        if not self.hold:
            end = len(self.rows) - offset
            future.set_result(self.rows[max(0, end - limit) : end])
        self.asked.set()
        return future

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        future: Future[list[Any]] = Future()
        if what == "tools" and what not in self.views:  # every call begins with it; most tests are about other things
            future.set_result([ToolView("agent:worker:subagent:0", "worker", 0, "main")])
            return future
        self.log.append(f"look {what} {target}".rstrip())
        if not self.hold:
            view = self.views[what]
            future.set_result([each for each in view if what != "kin" or target in _names(each)][:limit])
        self.asked.set()
        return future

    def task(self, task: ToolTask) -> Future[Any]:
        self.log.append(f"task {task.tool} {dict(task.options)}")
        return plain_task(task)

    def auth(self, request: AuthAsk | AuthOutcome) -> Future[Any]:
        future: Future[Any] = Future()
        self.log.append(repr(request))
        future.set_result(None)
        return future

    def transcript_bytes(self) -> Future[int]:
        future: Future[int] = Future()
        future.set_result(self.transcript_size)
        return future

    def append(self, role: str, text: str) -> None:
        self.rows.append(Row("session", 1, len(self.rows), role, text, 1.5))

    @property
    def cancelled(self) -> str | None:
        return self._reason

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        with self._lock:
            self._callbacks.append(callback)
            reason = self._reason
        if reason is not None:
            callback(reason)

    # ------------------------------------------------------------------ what a test does

    def born(self, *run_ids: str) -> list[Receipt]:
        """Children of earlier turns."""
        receipts = [Receipt("accepted", run_id, f"key-{run_id}", "child") for run_id in run_ids]
        self._born.extend(receipts)
        return receipts

    def answer_held(self) -> None:
        """Answer all spawns that were not answered yet."""
        with self._lock:
            held, self.held = self.held, []
        for number, request, future in held:
            run_id = f"run-{number}"
            receipt = self.answer(request) or Receipt("accepted", run_id, f"key-{run_id}", request.agent_id or "")
            if receipt.accepted:
                with self._lock:
                    self._born.append(receipt)
                result = self.run(request)
                if result is not None:
                    self.settle(run_id, result=result)
            future.set_result(receipt)

    def settle(
        self,
        run_id: str,
        text: str = "done",
        status: ResultStatus = ResultStatus.OK,
        result: Result[Any] | None = None,
    ) -> None:
        """End a run; a second end is ignored, as the registry would."""
        with self._lock:
            future = self._futures.setdefault(run_id, Future())
            if future.done():
                return
        if result is None:
            result = Result(status=status, text=text, run_id=run_id)
        future.set_result(make_completion(run_id, result))

    def grant(self) -> None:
        """Give slots to those who asked."""
        waiting, self._resuming = self._resuming, []
        for future in waiting:
            future.set_result(None)

    def cancel(self, reason: str = "stopped") -> None:
        """A stop or deadline reaches the turn."""
        with self._lock:
            self._reason = reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(reason)

    def thread(self, call: Callable[[], Any]) -> None:
        """Do something on a thread of its own, as the courier would."""
        thread = threading.Thread(target=call)
        self._threads.append(thread)
        thread.start()

    def join_threads(self) -> None:
        """Wait for those threads."""
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
