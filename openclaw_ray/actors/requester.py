"""What a requester does with its children: ask, hear, take large values, consume, stop (PROTOCOL.md 2.4, 4.3, 4.5,
6.2).

One for each driver, and one for each turn of a session. It listens to the process's courier.

1. A spawn mints its ids and goes with the next step; its receipt is a future.
2. A completion comes by the downlink or by the child's own ``deliver``; the first counts. A large value is taken from
   the actor that holds it before the program hears of the end, and `Took` frees that actor.
3. A stop is asked of the registry; with the mark's number in hand it goes down the handles of bound children, too.
4. A child that was steered goes on as another run. For the program it stays the child that it asked for: what is waited
   for, joined or consumed by any of its run ids is one and the same end, that of the newest run.
5. A child with a thread is admitted when its conversation is bound: its receipt comes by the downlink.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.asking import later
from openclaw_ray.actors.courier_thread import STOPPING, CourierThread
from openclaw_ray.actors.payload import pack
from openclaw_ray.actors.sends import Sends
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.core.errors import NotControlled, RuntimeClosed, RuntimeUnavailable
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import mint_child, normalise_agent_id
from openclaw_ray.core.lifecycle import Cause, ResultStatus
from openclaw_ray.core.protocol.messages import (
    BINDING,
    VALUE_LIMIT,
    Admit,
    Admitted,
    Bound,
    Completed,
    Consumed,
    DownMessage,
    Payload,
    Replied,
    StopAsk,
    Stopped,
    Took,
    Verdict,
)
from openclaw_ray.core.results import Completion, ErrorInfo, Receipt, StopReport
from openclaw_ray.core.session_facts import ChildAsk

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import AttachedFile

__all__ = ["Requester"]

_NAMELESS = "unknown"
_FILES_INLINE = VALUE_LIMIT - 4096  # bytes of attachments that are journaled, with an input that leaves them room


class Requester:
    """The children of one driver's root or of one session's turn.

    Args:
        courier: of this process.
        key: session key that hears of the children.
        receiver: downlink that it hears on: the client's id, or the turn's activation.
        activation: the turn's activation, empty for a client.
        agent_id: own agent, the default target.
    """

    def __init__(self, courier: CourierThread, key: str, receiver: str, activation: str, agent_id: str) -> None:
        self.courier = courier
        self.key = key
        self.receiver = receiver
        self.activation = activation
        self.agent_id = agent_id
        self.modules: tuple[str, ...] = ()
        self.state_dir = ""
        """Where the runtime keeps its state; empty if this process need not know."""
        self._ids = RandomIds()
        self._lock = threading.Lock()
        self._ends: dict[str, Future[Completion]] = {}
        self._born: dict[str, Receipt] = {}
        self._bound: dict[str, Bound] = {}
        self._stops: dict[str, Future[StopReport]] = {}
        self._marks: dict[str, tuple[str, str]] = {}
        self._over: RuntimeClosed | None = None
        self._taken: dict[str, Any] = {}
        self._first: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._left = False
        self._stopping_all = 0
        self._maps: set[str] = set()
        self._binding: dict[str, Future[Receipt]] = {}
        self.sends = Sends(courier, receiver)
        self.on_end: Callable[[str, Future[Completion]], None] | None = None

    # ------------------------------------------------------------------ spawn

    def spawn(
        self,
        requests: Sequence[SpawnRequest],
        *,
        lane: str = "",
        lane_width: int = 0,
        key: str | None = None,
        transcripts: str = "all",
    ) -> list[Future[Receipt]]:
        """Ask for children (1). What cannot be pickled fails its own future."""
        asked: list[tuple[Admit, Future[Receipt]]] = []
        futures: list[Future[Receipt]] = []
        for request in requests:
            future: Future[Receipt] = Future()
            futures.append(future)
            if self._stopping_all:
                future.set_result(STOPPING)
                continue
            agent = normalise_agent_id(request.agent_id or self.agent_id) or _NAMELESS
            session_id = self._ids.session_id()
            ask = request.ask
            try:
                payload = self._pack(request.input) if request.has_input else None
                if request.files:
                    ask = self._with_files(request, agent, session_id, future)
                    payload = self._pack_files(payload, request.files)
            except Exception as error:  # noqa: BLE001 - the caller's own object: whatever it raises is the answer
                future.set_exception(error)
                continue
            admit = Admit(
                self._ids.run_id(),
                mint_child(agent, self._ids.uuid()) if key is None else key,
                session_id,
                request.route,
                self.key,
                request.task,
                self.activation,
                request.agent_id,
                payload,
                request.label,
                request.timeout,
                request.expects,
                lane,
                lane_width,
                request.index,
                transcripts,
                request.task_name,
                request.item,
                request.cleanup,
                ask,
                request.send,
                sender=request.sender,
            )
            if request.route == "send":
                if request.send is not None and request.send.wait:
                    self.sends.open(admit.run)
            elif request.expects or request.route != "ask":  # else nothing will come
                with self._lock:
                    self._ends[admit.run] = Future()
            future.add_done_callback(partial(self._receipt_came, admit.run))
            asked.append((admit, self._opened(admit.run, future) if request.binds else future))
        if asked:
            self.courier.admit(asked)
        return futures

    def _opened(self, run: str, program: Future[Receipt]) -> Future[Receipt]:
        """The receipt of a step for a child with a thread; it may say that the ``program``'s is still to come (5)."""
        came: Future[Receipt] = Future()
        with self._lock:
            self._binding[run] = program

        def first(done: Future[Receipt]) -> None:
            if done.exception() is not None or done.result().status != BINDING:
                self._decided(run, done.exception() or done.result())

        came.add_done_callback(first)
        return came

    def _decided(self, run: str, answer: Receipt | BaseException) -> None:
        with self._lock:
            future = self._binding.pop(run, None)
        if future is None or future.done():
            return
        if isinstance(answer, Receipt):
            future.set_result(answer)
        else:
            future.set_exception(answer)

    def steer(self, run: str, message: str) -> Future[Receipt]:
        """Interrupt a run below this session and have it go on with ``message``, as another run (4)."""
        future: Future[Receipt] = Future()
        admit = Admit(self._ids.run_id(), "", "", "steer", self.key, message, self.activation, steers=run)
        future.add_done_callback(partial(self._steered, run))
        self.courier.admit([(admit, future)])
        return future

    def _steered(self, run: str, future: Future[Receipt]) -> None:
        with self._lock:
            if future.exception() is None and (receipt := future.result()).accepted:
                first = self._first.get(run, run)
                if first in self._ends:
                    self._first[receipt.run_id] = first

    def _with_files(self, request: SpawnRequest, agent: str, session_id: str, future: Future[Receipt]) -> ChildAsk:
        """The ask of a child with attachments, whose snapshot is on disk until it is refused (PROTOCOL.md 3.6)."""
        from openclaw_ray.actors.attached_files import take_snapshot
        from openclaw_ray.core.attachments import attached, relative_dir

        told = attached(request.files, relative_dir(agent, session_id), request.mount_path)
        folder = take_snapshot(self._files_dir(), agent, session_id, request.files)
        if folder is not None:
            future.add_done_callback(partial(_undo, folder))
        return replace(request.ask or ChildAsk(), attachments=told)

    def _pack_files(self, payload: Payload | None, files: tuple[AttachedFile, ...]) -> Payload:
        """The files with the input: many bytes by reference, so that who finds the snapshot does without them, and this
        process may be gone by then."""
        from openclaw_ray.core.attachments import WithFiles

        size = sum(len(file.content) for file in files if isinstance(file.content, bytes))
        packed = self._pack(WithFiles(payload, files if size <= _FILES_INLINE else self._put(files)))
        return replace(packed, size=packed.size or size) if packed.data is None else packed

    def _put(self, files: tuple[AttachedFile, ...]) -> Any:
        import ray

        return ray.put(files)

    def _files_dir(self) -> str:
        """Where snapshots go; empty for nowhere."""
        return self.state_dir

    def _pack(self, value: Any) -> Payload:
        return pack(value, self.modules)

    def _receipt_came(self, run_id: str, future: Future[Receipt]) -> None:
        with self._lock:
            receipt = None if future.exception() is not None else future.result()
            if receipt is not None and receipt.accepted and not receipt.told:
                if run_id in self._ends:
                    self._born[receipt.run_id] = receipt
            else:
                self._ends.pop(run_id, None)  # there is no such run: nothing will come
                self.sends.refused(run_id)

    # ------------------------------------------------------------------ named maps

    def enter_map(self, map_id: str) -> bool:
        """A map of that name begins here; False if one is at work."""
        with self._lock:
            if map_id in self._maps:
                return False
            self._maps.add(map_id)
            return True

    def leave_map(self, map_id: str) -> None:
        """It is over."""
        with self._lock:
            self._maps.discard(map_id)

    # ------------------------------------------------------------------ ends

    def completion(self, run_id: str) -> Future[Completion]:
        """The future of a child's end."""
        with self._lock:
            run_id = self._first.get(run_id, run_id)
            end = self._ends.get(run_id)
            if end is None:
                end = self._ends[run_id] = Future()
                if self._over is not None:
                    end.set_exception(self._over)
        return end

    def expected(self, run_id: str) -> Future[Completion] | None:
        """The future of a child's end if no program has been given it; `None` for others' runs."""
        with self._lock:
            return self._ends.get(self._first.get(run_id, run_id))

    def consume_later(self, run_id: str) -> None:
        """Nobody waits for this end any more: it is consumed when it comes, and does not stay in memory."""
        end = self.expected(run_id)
        if end is not None:
            end.add_done_callback(lambda done: None if done.exception() else self.consume((run_id,)))

    def read(self, completed: Completed) -> Completion:
        """An end that is not ours, or was consumed before: with its value, if that was journaled."""
        if completed.held:
            why = "it is larger than 64 KB, and was handed out to its requester alone"
            return _without_value(completed.completion, why, Cause.VALUE_LOST)
        return self._value(completed)

    def children(self) -> list[Receipt]:
        """Accepted children whose ends no program has been given yet, in order of birth."""
        with self._lock:
            return [self._born[run] for run in self._born if run in self._ends]

    def adopt(self, completed: Completed) -> None:
        """A completion that the turn starts with: of a child of an earlier turn."""
        done = completed.completion
        with self._lock:
            self._born.setdefault(
                completed.run, Receipt("accepted", completed.run, done.child_session_key, done.agent_id)
            )
        self.ended(completed)

    def ended(self, completed: Completed) -> None:
        """A child has ended: take what is large, then tell the program (2)."""
        if completed.held:
            self._take(completed)
            return
        self._tell(completed, self._value(completed))

    def _value(self, completed: Completed) -> Completion:
        done = completed.completion
        if completed.value is None:
            return done
        try:
            value = pickle.loads(completed.value)
        except Exception as error:  # noqa: BLE001 - a class that this process cannot import, or a broken __setstate__
            return _without_value(done, f"the returned value cannot be unpickled here: {error!r}", Cause.UNPICKLABLE)
        return replace(done, result=replace(done.result, value=value))

    def _take(self, completed: Completed) -> None:
        from ray.exceptions import ActorUnavailableError

        try:
            if completed.actor == "pool":
                ref = self.courier.handle("pool").value.remote(completed.run)
            else:
                ref = self.courier.handle(completed.actor, completed.handle).take.remote(completed.run)
        except ValueError as error:
            self._tell(completed, _without_value(completed.completion, str(error), Cause.VALUE_LOST))
            return

        def came(taken: Future[Any]) -> None:
            done = completed.completion
            error = taken.exception()
            if isinstance(error, ActorUnavailableError):
                later(self._take, completed)
                return
            if error is not None and completed.actor != "pool":
                later(self._take, replace(completed, actor="pool"))  # the pool may have taken it meanwhile
                return
            if error is not None:
                done = _without_value(done, f"the process that held it is gone: {error}", Cause.VALUE_LOST)
            else:
                done = replace(done, result=replace(done.result, value=taken.result()))
            with self._lock:
                if self._left:
                    return  # the turn is over: the value stays where it was
                if error is None:
                    self._taken[completed.run] = done.result.value
                self.courier.post(Took(completed.run))  # before `leave` can say that it is here
            self._tell(completed, done)

        def follow(taken: Future[Any]) -> None:
            if taken.exception() is not None:
                came(taken)
            else:  # the pool gives the reference, not the value
                taken.result()[0].future().add_done_callback(came)

        ref.future().add_done_callback(follow if completed.actor == "pool" else came)

    def _tell(self, completed: Completed, done: Completion) -> None:
        with self._lock:
            self._bound.pop(completed.run, None)
            first = next((run for run in done.replaces if run in self._ends), completed.run)
            asked_by_new_id = None
            if first != completed.run:
                asked_by_new_id = self._ends.pop(completed.run, None)
                self._first[completed.run] = first
                self._newest[first] = completed.run
            future = self._ends.setdefault(first, Future())
        if asked_by_new_id is not None and not asked_by_new_id.done():
            asked_by_new_id.set_result(done)
        if not future.done():
            future.set_result(done)
            if self.on_end is not None:
                self.on_end(completed.run, future)

    def consume(self, run_ids: Sequence[str]) -> None:
        """These ends were given to the program."""
        with self._lock:
            named = (self._first.get(run, run) for run in run_ids)
            firsts = [run for run in named if self._ends.pop(run, None) is not None]
            runs = tuple(self._newest.pop(run, run) for run in firsts)
            for run in (*firsts, *runs):
                self._born.pop(run, None)
                self._taken.pop(run, None)
            if self._first and firsts:
                self._first = {run: first for run, first in self._first.items() if first in self._ends}
        if runs:
            self.courier.post(Consumed(self.receiver, runs))

    def leave(self) -> dict[str, Any]:
        """The turn is over: the large values that it took and its program was not given, by run."""
        with self._lock:
            self._left = True
            return dict(self._taken)

    def dismiss(self, run_ids: Sequence[str]) -> None:
        """Nobody wants these ends: stop the runs that go on, and consume each end unseen when it comes.

        Not before: what has not ended cannot be consumed, and would be kept for us for ever.
        """
        for run_id in run_ids:
            end = self.completion(run_id)
            if not end.done():
                self.stop(run=run_id)
            end.add_done_callback(lambda _, run=run_id: self.consume((run,)))  # type: ignore[misc]

    # ------------------------------------------------------------------ stop

    def stop(self, key: str = "", run: str = "", scope: str = "tree") -> Future[StopReport]:
        """Stop a subtree, or less as ``scope`` says (`StopAsk`); the future gives the report (3). A turn may stop what
        is below its own session."""
        stop = self._ids.uuid()
        by = self.key if self.activation else ""
        future: Future[StopReport] = Future()
        with self._lock:
            self._stops[stop] = future
            self._marks[stop] = (key, run)
            over = self._over
        if over is not None:
            future.set_exception(over)
            return future
        if key != self.key or scope != "tree":
            self.courier.post(StopAsk(stop, key, run, by, scope))
            return future
        # our own root, or everything below this turn: nothing that is still to be sent may be born after the mark
        with self._lock:
            self._stopping_all += 1
        future.add_done_callback(self._all_stopped)
        self.courier.drop_unsent(self.activation, StopAsk(stop, key, run, by))
        return future

    def _all_stopped(self, _: Future[StopReport]) -> None:
        with self._lock:
            self._stopping_all -= 1

    def cascade(self, mark: int, reason: str = "stopped", *, key: str = "", run: str = "") -> None:
        """Tell bound children: all of them, or those of one session key or run (PROTOCOL.md 6.2)."""
        with self._lock:
            bound = list(self._bound.values())
            born = dict(self._born)
        for child in bound:
            receipt = born.get(child.run)
            if run and child.run != run:
                continue
            if key and key != self.key and (receipt is None or receipt.session_key != key):
                continue
            try:
                handle = self.courier.handle(child.actor)
            except ValueError:
                continue  # gone already: the registry hears of its death by itself
            if child.born and mark and child.born >= abs(mark):
                continue  # a later run, which the mark does not bind
            handle.stop.remote(child.run, child.activation, reason, mark)

    # ------------------------------------------------------------------ from the courier

    def hear_verdict(self, verdict: Verdict) -> None:
        """A stop was marked, or refused."""
        with self._lock:
            future = self._stops.get(verdict.run)
            target = self._marks.pop(verdict.run, None)
        if future is None or target is None:
            return
        if verdict.word == "marked":
            self.cascade(verdict.mark, key=target[0], run=target[1])
        else:
            with self._lock:
                self._stops.pop(verdict.run, None)
            future.set_exception(NotControlled(self.key, target[0] or target[1]))

    def hear(self, message: DownMessage) -> bool:
        """A downlink message; False if it is not for a requester."""
        match message:
            case Completed():
                self.ended(message)
            case Replied():
                self.sends.hear(message)
            case Admitted():
                self._decided(message.run, message.receipt)
            case Bound():
                if message.handle is not None:
                    self.courier.handle(message.actor, message.handle)
                with self._lock:
                    end = self._ends.get(self._first.get(message.run, message.run))
                    if end is not None and not end.done():
                        self._bound[message.run] = message
            case Stopped():
                with self._lock:
                    future = self._stops.pop(message.stop, None)
                if future is not None and not future.done():
                    future.set_result(message.report)
            case _:
                return False
        return True

    def fail(self, error: Exception) -> None:
        """What programs wait for fails: nothing more will come, or nothing came for too long.

        In the second case a driver may ask again: the ends that come later are kept for it. (A turn is over with it.)
        """
        with self._lock:
            waiting: list[Future[Any]] = [*self._ends.values(), *self._stops.values(), *self._binding.values()]
            self._binding.clear()
            if isinstance(error, RuntimeClosed):
                self._over = error
            if isinstance(error, RuntimeUnavailable) and not self.activation:
                self._ends = {run: end if end.done() else Future() for run, end in self._ends.items()}
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        self.sends.fail(error)


def _undo(folder: Path, future: Future[Receipt]) -> None:
    """A child was not made: its attachments go, too. One of which nothing was heard may have been."""
    if future.exception() is None and not future.result().accepted:
        from openclaw_ray.store.attachments import discard

        discard(folder)


def _without_value(done: Completion, text: str, cause: Cause) -> Completion:
    """The end with its value lost: the outcome stands, but a program must not take `None` for the value."""
    kind = "ValueLost" if cause is Cause.VALUE_LOST else "UnpicklableValue"
    error = ErrorInfo(kind, text, cause=cause.value)
    return replace(done, result=replace(done.result, status=ResultStatus.ERROR, error=error))
