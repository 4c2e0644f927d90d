"""PROTOCOL.md 2.3 to 2.5, Down: what a new incarnation says, handles, leases."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.protocol import courier
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.hubstate import HubState
from openclaw_ray.core.protocol.messages import Bound, Consumed, Join, StopAsk, Stopped
from openclaw_ray.core.protocol.records import Actor
from openclaw_ray.core.protocol.registry import Registry
from rules.asking import key_of, root_of
from rules.hand import Hand, without
from rules.turn import Turn


def family(hand: Hand, children: int) -> tuple[Turn, list[Turn]]:
    """A parent that waits for children, whose turns have begun."""
    parent = hand.start("parent")
    found = [parent.child(f"c{i}") for i in range(children)]
    parent.pause()
    return parent, found


def test_completions_stay_in_the_journal_until_they_are_consumed() -> None:
    """2.3: they are said anew by a new incarnation."""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.crash_registry()  # before the push
        hand.adopt()
        hand.poll()
        return hand.ends()

    assert schedule() == ["r"]
    with without(Crew, "say_again", lambda self: None):
        assert schedule() == []


def test_a_completion_said_anew_is_handed_on_once() -> None:
    """2.3: it was heard already, and not yet consumed, when the registry died."""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.poll()
        hand.crash_registry()
        hand.adopt()
        hand.poll()
        return hand.ends()

    assert schedule() == ["r"]
    with without(Courier, "first_heard", lambda self, run: True):
        assert schedule() == ["r", "r"]


def test_a_stop_report_stays_in_the_journal_until_it_is_got() -> None:
    """2.3"""

    def schedule() -> tuple[int, int]:
        hand = Hand()
        hand.admit("r")
        hand.courier("driver").post(StopAsk("stop", key_of("r")))
        hand.lose("driver")  # and the report that rode in the answer with it
        hand.crash_registry()
        hand.adopt()
        hand.step("driver")
        hand.poll()
        if reports := hand.messages(Stopped):
            hand.clock.advance(courier.ACK_AFTER)
            hand.step("driver")
        return len(reports), len(hand.registry.s.marks)

    assert schedule() == (1, 0)
    with without(Crew, "say_again", lambda self: None):
        assert schedule() == (0, 1)


def test_the_numbers_of_a_new_incarnation_begin_anew() -> None:
    """2.3: else its first messages would be taken for those seen long ago."""

    def schedule() -> list[str]:
        hand = Hand(actors=3)
        a, b, c = (hand.start(run) for run in "abc")
        a.settle()
        c.settle()
        hand.poll()
        hand.say("driver", Consumed("driver", ("a", "c")))
        hand.crash_registry()
        hand.adopt()
        b.settle()
        hand.poll()
        return hand.ends()

    def always_first(self: Registry, journal: Any) -> int:
        self.s.incarnation = 1
        return 1

    assert schedule() == ["a", "c", "b"]
    with without(Registry, "_next_incarnation", always_first):
        assert schedule() == ["a", "c"]


def test_bound_names_run_activation_and_actor() -> None:
    """2.4"""
    hand = Hand(actors=2)
    parent, [child] = family(hand, 1)
    child.started()
    hand.notify()
    assert hand.messages(Bound, parent.activation) == [Bound("c0", "s-c0.1", child.actor, f"handle of {child.actor}")]


def test_a_handle_travels_once_per_requester() -> None:
    """2.4"""

    def schedule() -> list[object]:
        hand = Hand(actors=1)
        for run in ("a", "b"):
            hand.start(run).started()
            hand.turns[run].settle()
        hand.poll()
        return [m.handle for m in hand.messages(Bound)]

    def always(self: Birth, receiver: str, actor: Actor) -> object:
        return actor.handle

    assert schedule() == ["handle of session-1-1", None]
    with without(Birth, "handle_for", always):
        assert schedule() == ["handle of session-1-1"] * 2


def test_after_a_re_activation_bound_comes_again() -> None:
    """2.4: the older handle is stale."""

    def schedule() -> list[str]:
        hand = Hand(actors=3)
        child = hand.start("child")
        child.started()
        grandchild = child.child("grandchild")
        child.settle(yielded=True)
        grandchild.settle()
        hand.begin("child").started()
        hand.poll()
        return [m.activation for m in hand.messages(Bound) if m.run == "child"]

    assert schedule() == ["s-child.1", "s-child.2"]
    with without(Birth, "tell_bound", lambda self, run: None):
        assert schedule() == []


@pytest.mark.parametrize(("on_lost", "ends"), [("stop", "cancelled"), ("keep", "succeeded")])
def test_the_registry_alone_decides_about_a_silent_client(on_lost: str, ends: str) -> None:
    """2.5: the hub only tells who is silent."""

    def schedule() -> str:
        hand = Hand(actors=1, drivers=())
        hand.say("guest", Join("guest", root_of("guest"), "w", leased=True, on_lost=on_lost))
        turn = hand.start("r", "guest")
        hand.hub.touch("guest", 0.0)
        assert hand.hub.silent(16.0, 15.0) == ["guest"]
        hand.do(hand.registry.client_silent("guest"))
        turn.settle()
        return hand.state("r")

    assert schedule() == ends
    with without(Clients, "silent", lambda self, client: self._leave(client, "client_gone")):
        assert schedule() == "cancelled"


def test_the_starter_of_an_owned_runtime_needs_no_lease() -> None:
    """2.5: Ray ends everything with it."""

    def schedule() -> bool:
        hand = Hand(actors=1)
        hand.start("r")
        hand.do(hand.registry.client_silent("driver"))
        return "driver" in hand.registry.s.clients

    assert schedule()
    with without(Clients, "silent", lambda self, client: self._leave(client, "client_gone")):
        assert not schedule()


def test_a_poll_is_a_sign_of_life() -> None:
    """2.5"""

    def schedule() -> list[str]:
        hub = HubState()
        for second in range(0, 40, 5):
            hub.touch("polls", float(second))
        hub.expect("polls", 0.0)
        return hub.silent(45.0, 15.0)

    assert schedule() == []
    with without(HubState, "touch", lambda self, client, now: None):
        assert schedule() == ["polls"]
