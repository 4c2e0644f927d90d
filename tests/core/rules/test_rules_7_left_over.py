"""What is left over when a process or an answer is lost: pool and registry met anew, loans, starts, values, silence."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import (
    DropValue,
    Exit,
    Grow,
    HoldValue,
    Join,
    ReportAsk,
    Start,
    Stop,
    Took,
)
from openclaw_ray.core.protocol.records import Actor
from rules.asking import agent, root_of
from rules.hand import Hand, without

LARGE = 1_000_000


def idle_granted(hand: Hand) -> list[str]:
    """The actors that starts are on their way to."""
    return [start.actor for start in hand.sent(Start)]


# ------------------------------------------------------------------ 7.3 who owns what


def test_values_of_which_nobody_has_heard_are_dropped_when_pool_and_registry_meet() -> None:
    """7.3, 4.3: the word that it had taken one was lost with a registry; one that is still wanted stays."""

    def schedule() -> list[str]:
        hand = Hand(actors=2)
        hand.start("wanted").settle(held=LARGE)
        hand.start("consumed").settle(held=LARGE)
        hand.say("driver", Took("consumed"))
        hand.effects.clear()  # the pool died with what was said to it, or had taken it before
        hand.do(hand.registry.pool_met(hand.actors, ["wanted", "consumed", "of another time"]))
        return [drop.run for drop in hand.sent(DropValue)]

    def of_actors_alone(self: Crew, owned: object, values: object = ()) -> None:
        pool_met(self, owned)  # type: ignore[arg-type]

    pool_met = Crew.pool_met
    assert schedule() == ["consumed", "of another time"]
    with without(Crew, "pool_met", of_actors_alone):
        assert schedule() == []


def test_a_pool_that_owns_what_grows_is_not_asked_again() -> None:
    """7.1, 7.3: a second process of one name could not be created; a birth may take its time."""

    def schedule() -> tuple[list[str], list[str]]:
        hand = Hand(cpus=2)
        hand.admit_all(["a", "b"])
        [grow] = hand.take(Grow)
        hand.do(hand.registry.pool_met([grow.actors[0]]))
        again = [actor for asked in hand.sent(Grow) for actor in asked.actors]
        return again, [exit_.actor for exit_ in hand.sent(Exit)]

    assert schedule() == (["session-1-2"], [])


# ------------------------------------------------------------------ loans


def test_who_asks_for_a_loan_again_is_lent_the_same_process() -> None:
    """1.6: the answer was lost; a second one would stay lent for two minutes, and with it a place in the pool."""

    def schedule() -> tuple[bool, int]:
        hand = Hand(actors=3)
        first, effects = hand.registry.lend("starter")
        hand.do(effects)
        second, effects = hand.registry.lend("starter")
        hand.do(effects)
        return first is second, sum(a.state == "lent" for a in hand.registry.s.actors.values())

    def whoever_asks(self: Crew, who: str) -> Actor | None:
        return lend(self, f"{who} {len([a for a in self.s.actors.values() if a.state == 'lent'])}")

    lend = Crew.lend
    assert schedule() == (True, 1)
    with without(Crew, "lend", whoever_asks):
        assert schedule() == (False, 2)


def test_what_is_lent_is_granted_to_nobody_and_comes_back_by_itself() -> None:
    """7.6: code that is only tried must not meet a session; its borrower may have died."""
    hand = Hand(actors=1, pool_max=1, max_spawn_depth=1)
    lent, effects = hand.registry.lend("starter")
    hand.do(effects)
    assert lent is not None
    hand.admit("r")
    assert idle_granted(hand) == []
    hand.wait(125.0)
    assert lent.id in [exit_.actor for exit_ in hand.sent(Exit)]
    hand.grow()
    assert len(idle_granted(hand)) == 1


# ------------------------------------------------------------------ 10 a new start


def test_a_new_start_cancels_what_clients_left_before_it_buries_the_processes() -> None:
    """DESIGN.md 10: nothing under a client's root failed by itself; it was stopped with its client."""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=1)
        hand.start("r")
        hand.crash_registry()
        hand.do(hand.registry.open_boot("the next start"))
        outcome = hand.run("r").outcome
        assert outcome is not None
        assert outcome.error is not None
        return hand.state("r"), outcome.error.cause

    def processes_first(self: Clients, boot: str, crew: Crew, *more: Any) -> None:
        for actor in list(self.s.actors):
            crew.died(actor, "the runtime was started anew")
        open_boot(self, boot, crew, *more)

    open_boot = Clients.open_boot
    assert schedule() == ("cancelled", Cause.CLIENT_GONE)
    with without(Clients, "open_boot", processes_first):
        assert schedule() == ("failed", Cause.PROCESS_DIED)


def test_the_same_start_again_is_a_restart_and_closes_nothing() -> None:
    """DESIGN.md 10, PROTOCOL.md 7.5"""
    hand = Hand()
    hand.do(hand.registry.open_boot("this start"))
    hand.do(hand.registry.register([agent("w")], "b1", b"code"))
    hand.say("late", Join("late", root_of("late"), "w"))
    hand.admit("r", by="late")
    hand.grow()
    hand.crash_registry()
    hand.do(hand.registry.open_boot("this start"))
    assert hand.state("r") == "running"


# ------------------------------------------------------------------ 6 a stop that nobody heard


def test_a_stop_that_was_lost_is_said_again_when_the_actor_reports() -> None:
    """6.3, 6.4: its start is lost as well; only an actor that is known to refuse it makes the run over."""

    def schedule() -> tuple[int, str]:
        hand = Hand(actors=1)
        hand.admit("r")
        hand.stop("r")
        hand.effects.clear()  # neither start nor stop has arrived
        hand.wait(2.1)
        for ask in hand.take(ReportAsk):
            hand.report(ask.actor)
        stops = hand.take(Stop, "r")
        for stop in stops:
            hand.actors[stop.actor].stop(stop.activation, stop.reason, stop.mark)
        hand.wait(0.5)
        for ask in hand.take(ReportAsk):
            hand.report(ask.actor)
        return len(stops), hand.state("r")

    assert schedule() == (1, "cancelled")
    with without(Crew, "_stop_again", lambda self, run: None):
        assert schedule() == (0, "running")


# ------------------------------------------------------------------ 1.6 one that only waits


def test_a_client_that_only_waits_hears_that_it_was_given_up() -> None:
    """1.6, 2.5: it has nothing to say, so without a step of its own it would wait for ever."""

    def schedule() -> str:
        hand = Hand(actors=1)
        hand.say("waits", Join("waits", root_of("waits"), "w"))
        hand.do(hand.registry.client_silent("waits"))
        courier = hand.courier("waits")
        courier.poke()
        return hand.step("waits").word if courier.next_step() is not None else "nothing is sent"

    assert schedule() == "stale"
    with without(Courier, "poke", lambda self: None):
        assert schedule() == "nothing is sent"


def test_a_poke_puts_off_no_acknowledgement() -> None:
    """2.2: what is to be confirmed by a certain time goes out by then."""
    hand = Hand(actors=1)
    hand.start("r").settle()
    hand.poll()
    courier = hand.courier("driver")
    due = courier.wait_until()
    assert due is not None
    hand.clock.advance(0.001)
    courier.poke()
    assert courier.wait_until() == due


# ------------------------------------------------------------------ 4.3 values that a turn took for nobody


@pytest.mark.parametrize("heard", [True, False])
def test_values_that_a_turn_took_and_gave_to_nobody_are_taken_from_its_process(heard: bool) -> None:
    """4.3: its courier had taken it, the turn yielded; the process is not free before the pool has it."""

    def schedule() -> tuple[list[tuple[str, str]], bool]:
        hand = Hand(actors=3)
        parent = hand.start("parent")
        child, _ = parent.child("child"), parent.child("other")
        child.settle(held=LARGE)
        parent.say(Took("child"))
        hand.effects.clear()
        parent.settle(yielded=True, keeps=("child",) if heard else ())
        asked = [(hold.actor, hold.run) for hold in hand.sent(HoldValue)]
        return asked, hand.registry.s.actors[parent.actor].state == "idle"

    asked, free = schedule()
    if not heard:
        assert (asked, free) == ([], True)
        return
    assert ([run for _, run in asked], free) == (["child"], False)
    with without(Ending, "_keep_values", lambda self, run, actor, children: None):
        assert schedule() == ([], True)
