"""A turn in a session process, driven by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.messages import (
    Answer,
    CleanCheck,
    Consumed,
    Event,
    Outcome,
    Paused,
    Resume,
    Resumed,
    Row,
    Settled,
    Spec,
    Started,
    Verdict,
)
from openclaw_ray.core.results import ErrorInfo, Receipt
from rules.asking import admit

if TYPE_CHECKING:
    from rules.hand import Hand

__all__ = ["Turn"]


@dataclass
class Turn:
    """One activation's turn on one actor."""

    hand: Hand
    actor: str
    spec: Spec
    waits: int = 0
    asked: bool = False
    """It has asked to go on from its present wait."""

    @property
    def run(self) -> str:
        """Its run."""
        return self.spec.run

    @property
    def activation(self) -> str:
        """Its activation."""
        return self.spec.activation

    # ------------------------------------------------------------------ up

    def say(self, *events: Event) -> Answer:
        """Events, in one step of its process."""
        return self.hand.say(self.actor, *events)

    def started(self, elapsed: float = 0.005, *, heard: bool = True) -> Answer:
        """It has lasted 5 ms."""
        return self.say(Started(self.run, self.activation, elapsed, heard))

    def spawn(self, child: str, **options: Any) -> Receipt:
        """Ask for one child."""
        return self.spawn_all([child], **options)[0]

    def spawn_all(self, children: list[str], **options: Any) -> tuple[Receipt, ...]:
        """Ask for children, in as many steps as that takes."""
        for child in children:
            asked = admit(child, self.spec.session_key, activation=self.activation, **options)
            self.hand.courier(self.actor).admit(asked, child)
        return self.hand.receipts(self.actor, len(children))

    def child(self, run: str, **options: Any) -> Turn:
        """Spawn a child and begin its turn."""
        receipt = self.spawn(run, **options)
        assert receipt.accepted, receipt.error
        return self.hand.begin(run)

    def pause(self) -> Answer:
        """It waits for children."""
        self.waits += 1
        self.asked = False
        return self.say(Paused(self.run, self.activation))

    def resume(self) -> Answer:
        """Its wait is over; it asks for its slot."""
        self.asked = True
        return self.say(Resume(self.run, self.activation, self.waits))

    @property
    def goes_on(self) -> bool:
        """True once the slot for its present wait has come."""
        self.hand.notify()
        return any(m.wait == self.waits for m in self.hand.messages(Resumed, self.activation))

    def consume(self, *children: str) -> Answer:
        """Completions were returned to its program."""
        return self.say(Consumed(self.activation, children))

    def hears(self) -> list[str]:
        """The children whose completions have come."""
        self.hand.notify()
        return self.hand.ends(self.activation)

    # ------------------------------------------------------------------ end

    def ending(
        self,
        text: str = "done",
        *,
        state: RunState = RunState.SUCCEEDED,
        unclean: tuple[str, ...] = (),
        held: int = 0,
        **more: Any,
    ) -> Settled:
        """What it would settle with."""
        error = None if state is RunState.SUCCEEDED else ErrorInfo("Error", text, cause="raised")
        outcome = Outcome(state, text, held=held, error=error)
        return Settled(self.run, self.activation, outcome, clean=CleanCheck(unclean), **more)

    def end(self, text: str = "done", **more: Any) -> None:
        """It ends; the outcome is in the outbox and with the courier, and nothing has been sent."""
        event = self.ending(text, **more)
        actor = self.hand.actors[self.actor]
        if event.outcome.held:
            actor.held[self.run] = "value"
        actor.settled(event)
        self.hand.courier(self.actor).post(event)

    def settle(self, text: str = "done", **more: Any) -> Verdict:
        """It ends, and the verdict comes."""
        self.end(text, **more)
        return self.send_end()

    def send_end(self) -> Verdict:
        """The step with its end (again); the verdict comes."""
        answer = self.hand.step(self.actor)
        [verdict] = [v for v in answer.verdicts if v.run == self.run]
        if self.actor in self.hand.actors:
            self.hand.actors[self.actor].verdict(self.run)
        return verdict

    def fail(self, why: str = "it raised") -> Verdict:
        """Its agent raises."""
        return self.settle(why, state=RunState.FAILED)

    def row(self, text: str, seq: int = 0) -> Row:
        """A transcript row of it."""
        return Row(self.spec.session_id, self.spec.number, seq, "assistant", text, self.hand.clock.wall())
