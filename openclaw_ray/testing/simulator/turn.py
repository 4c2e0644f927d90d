"""A scripted turn in a simulated session process, under the contract of the real one (PROTOCOL.md 4, 5, 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.batch import MESSAGE
from openclaw_ray.core.protocol.messages import (
    TAKEN,
    Cancel,
    CleanCheck,
    DownMessage,
    MapDone,
    Outcome,
    Paused,
    Progress,
    Resume,
    Resumed,
    Row,
    Settled,
    Spec,
    Started,
    Steered,
    TakeSteered,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.results import ErrorInfo, Usage
from openclaw_ray.testing.simulator.plans import (
    Ask,
    Die,
    Fail,
    Hang,
    Join,
    Map,
    Plan,
    Program,
    Say,
    Send,
    Spawn,
    Steer,
    Stop,
    Take,
    Tell,
    Use,
    Work,
    Yield,
)
from openclaw_ray.testing.simulator.script import Script, Steps

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.session import SessionProcess

__all__ = ["ScriptedTurn"]

_STARTED_AFTER = 0.005
"""Seconds after which a turn says that it runs (PROTOCOL.md 3.4)."""
_EVERY_CANCEL = 0.004
"""Most seconds from a cancel to the end of a program that heeds it."""


class _Raised(Exception):
    """A scripted agent failed."""


class _Yielded(Exception):
    """A scripted agent ended its turn by ``turn.yield_()``."""

    def __init__(self, message: bool) -> None:
        super().__init__(message)
        self.message = message


class ScriptedTurn(Script):
    """One activation's turn."""

    def __init__(self, process: SessionProcess, epoch: int, spec: Spec) -> None:
        super().__init__(process, spec.session_key, spec.activation, spec.activation)
        self.process = process
        self.epoch = epoch
        self.spec = spec
        self.plan: Plan = _plan_of(process.cluster.program, spec)
        self.cancelled = ""
        self._began = process.world.now
        self._waits = 0
        self._resumed = 0
        self._steers: dict[str, Steered] = {}
        self._asked: set[str] = set()
        self._rows: list[Row] = []
        self._row_seq = 0

    # ------------------------------------------------------------------ from start to outbox

    def begin(self) -> None:
        """Take in what the start carries, then run."""
        spec, plan = self.spec, self.plan
        self.process.after(_STARTED_AFTER, self._started)
        if spec.turn == 1:
            self.append("user", spec.task)
        for completed in spec.completions:
            self.process.courier.first_heard(completed.run)
            self.family.ended(completed)
        self.drive(self._program(plan))

    def _started(self) -> None:
        if not self.over:
            self.process.post(
                Started(self.spec.run, self.spec.activation, self.process.world.now - self._began)
            )

    def append(self, role: str, text: str) -> None:
        """A transcript row."""
        spec = self.spec
        at = self.process.world.clock.wall()
        self._rows.append(Row(spec.session_id, spec.number, self._row_seq, role, text, at))
        self._row_seq += 1

    def finished(self) -> None:
        """The program returned: nothing to do, `_program` has settled."""

    def _settle(self, outcome: Outcome, *, yielded: bool = False, waits_for: str = "") -> None:
        if self.over:
            return
        self.close()
        process, spec = self.process, self.spec
        if outcome.text is not None:
            self.append("assistant", outcome.text)
        kept = self.family.untold()
        process.activation.held.update(kept)
        if outcome.held:
            process.activation.held[spec.run] = f"value of {spec.run}"
        event = Settled(
            spec.run,
            spec.activation,
            outcome,
            b"{}" if spec.turn == 1 else None,
            tuple(self._rows),
            CleanCheck(("a thread",) if self.plan.unclean else ()),
            yielded,
            self.plan.follow_up,
            process.world.now - self._began,
            tuple(kept),
            waits_for,
        )
        if self.plan.unclean:
            process.cluster.monitor.left_unclean(process.name)
        process.turn_over(event)

    # ------------------------------------------------------------------ the program

    def _program(self, plan: Plan) -> Steps:
        spec = self.spec
        self.family.hand([c for c in self.family.children.values() if c.end is not None], tell=False)
        given = [self.family.children[c.run] for c in spec.completions]
        yield lambda: all(child.end is not None for child in given)
        self.family.hand(given, tell=False)
        if plan.slow and spec.turn == 1:
            yield plan.slow
            if self.cancelled:
                self._settle(Outcome(RunState.CANCELLED))
                return
        try:
            for op in plan.operations(spec.turn):
                yield from self._do(op)
        except _Raised:
            error = ErrorInfo("Exception", "scripted", cause="raised")
            self._settle(Outcome(RunState.FAILED, error=error))
        except _Yielded as end:
            self._settle(Outcome(RunState.SUCCEEDED), yielded=True, waits_for=MESSAGE if end.message else "")
        else:
            self._settle(Outcome(RunState.SUCCEEDED, self._text(), held=plan.held))

    def _text(self) -> str | None:
        """What it says; in a ping-pong, now and then what ends that."""
        said = f"text of {self.spec.activation}"
        if self.spec.source is None:
            return said
        dice = self.process.world.random.random()
        return said if dice < 0.6 else "REPLY_SKIP" if dice < 0.9 else None

    def _do(self, op: object) -> Steps:
        match op:
            case Work(seconds):
                yield seconds
            case Spawn(plans, timeout, expects, thread):
                yield from self.spawn(plans, timeout=timeout, expects=expects, thread=thread)
            case Join(until):
                yield from self._join(until)
            case Map():
                self._pause()
                yield from self.map(op)
                yield from self._resume()
                self.process.post(MapDone(self.spec.activation, f"{self.spec.activation}:map", "mapped"))
            case Yield(message):
                raise _Yielded(message)
            case Steer(child, number):
                yield from self.steer(child, number)
            case Send():
                yield from self._send(op)
            case Take(wait):
                yield from self._take(wait)
            case Stop(child, wait, _):
                yield from self._stop(child, wait)
            case Say(text):
                self.append("assistant", text)
                self.process.post(Progress(self.spec.run, self.spec.activation, text))
            case Use(tokens):
                self.process.cluster.monitor.used(self.spec.run, tokens)
                self.process.post(UsageAdded(self.spec.run, self.spec.activation, Usage(tokens, 0)))
            case Fail():
                raise _Raised
            case Hang():
                yield lambda: False
            case Die():
                self.process.kill("its own doing")
                yield lambda: False
            case Ask() | Tell():
                raise ValueError("a session does not ask")

    def _join(self, until: str) -> Steps:
        children = self.waiting_for()
        if not children:
            return
        need = len(children) if until == "all" else 1

        def satisfied() -> bool:
            return sum(child.end is not None for child in children) >= need

        if not satisfied():
            self._pause()
            yield satisfied
            yield from self._resume()
        ended = [child for child in children if child.end is not None]
        if until == "first":
            for child in children:
                if child.end is None:
                    self.family.stop(run=child.run, by=self.spec.session_key)
        self.family.hand(ended)

    def _send(self, op: Send) -> Steps:
        sent = yield from self.send(op)
        if not self.waits_for(sent):
            return
        until = self.process.world.now + op.wait
        self.process.after(op.wait + 1e-6, self.poke)
        if sent.reply is None:
            self._pause()
            yield lambda: sent.reply is not None or self.process.world.now >= until
            yield from self._resume()
        self.family.leave(sent)

    def _take(self, wait: float) -> Steps:
        """Take what has come, or comes within the time (`core.protocol.steered`)."""
        world = self.process.world
        until = world.now + wait
        if wait and not self._steers:
            self.process.after(wait + 1e-6, self.poke)
            yield lambda: bool(self._steers) or world.now >= until
        asked, self._steers = set(self._steers), {}
        self._asked |= asked
        for message in sorted(asked):
            self.process.post(TakeSteered(self.spec.run, self.spec.activation, message))
        yield lambda: not asked & self._asked

    def steer_verdict(self, verdict: Verdict) -> bool:
        """The registry's word on a message that was asked for; False if it is about something else."""
        if verdict.run not in self._asked:
            return False
        self._asked.discard(verdict.run)
        if verdict.word == TAKEN:
            self.process.cluster.monitor.talks.taken(verdict.run, self.spec.activation)
        self.poke()
        return True

    def _pause(self) -> None:
        self._waits += 1
        self.process.cluster.monitor.turn_waits(self.spec.activation)
        self.process.post(Paused(self.spec.run, self.spec.activation))

    def _resume(self) -> Steps:
        wait = self._waits
        self.process.post(Resume(self.spec.run, self.spec.activation, wait))
        yield lambda: self._resumed == wait
        self.process.cluster.monitor.turn_goes_on(self.spec.activation)

    def _stop(self, child: int, wait: bool) -> Steps:
        if child < len(self.spawned):
            runs = self.spawned if child < 0 else [self.spawned[child]]
            stops = [self.family.stop(run=c.run, by=self.spec.session_key) for c in runs]
            if wait:
                yield lambda: all(self.family.stopped(stop) for stop in stops)

    # ------------------------------------------------------------------ being told

    def hear(self, message: DownMessage) -> None:
        """A downlink message for this turn."""
        match message:
            case Cancel():
                if message.activation == self.spec.activation:
                    self.cancel(message.reason, message.mark)
            case Resumed():
                if message.activation == self.spec.activation:
                    self._resumed = max(self._resumed, message.wait)
                    self.poke()
            case Steered():
                if message.activation == self.spec.activation and message.message not in self._asked:
                    self._steers[message.message] = message
                    self.poke()
            case _:
                self.family.hear(message)

    def cancel(self, reason: str, mark: int) -> None:
        """End the turn; a stop goes on to the children."""
        if self.cancelled or self.over:
            return
        self.cancelled = reason
        self.family.drop_unsent()
        if reason == "stopped" and mark > 0:
            self.family.cascade(mark)
        if not self.plan.deaf:
            self.process.after(_EVERY_CANCEL * self.process.world.random.random(), self._ended_by_cancel)

    def _ended_by_cancel(self) -> None:
        state = RunState.TIMED_OUT if self.cancelled == "timeout" else RunState.CANCELLED
        self._settle(Outcome(state))


def _plan_of(program: Program, spec: Spec) -> Plan:
    """What a turn does. Of one that was steered before its first turn, the newest message is below its task; a turn of
    a ping-pong just answers, and one that was started for news just hears it."""
    word = (spec.task or "0").split()[-1]
    replies = spec.source is not None and spec.source.step != "message"
    return _ANSWERS if replies or not word.isdecimal() or int(word) not in program.plans else program.plans[int(word)]


_ANSWERS = Plan()
