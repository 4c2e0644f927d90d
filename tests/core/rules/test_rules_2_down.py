"""PROTOCOL.md 2.1 and 2.2, Down: what the registry says later, numbered and repeated until got."""

from __future__ import annotations

from itertools import islice
from typing import Any

from openclaw_ray.core.protocol import courier
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.hubstate import HubState
from openclaw_ray.core.protocol.messages import Bound, Consumed, Got, Notify
from rules.hand import Hand, without
from rules.turn import Turn


def family(hand: Hand, children: int) -> tuple[Turn, list[Turn]]:
    """A parent that waits for children, whose turns have begun."""
    parent = hand.start("parent")
    found = [parent.child(f"c{i}") for i in range(children)]
    parent.pause()
    return parent, found


def test_one_message_is_in_flight_per_receiver_and_what_gathers_goes_with_the_next() -> None:
    """2.1"""

    def schedule() -> tuple[list[int], list[str]]:
        hand = Hand(actors=4)
        parent, children = family(hand, 3)
        for child in children:
            child.started()
        sizes = [len(notify.messages) for notify in hand.sent(Notify)]
        hand.notify()
        hand.clock.advance(courier.ACK_AFTER)
        hand.step(parent.actor)  # `Got`; the rest rides in its answer
        return sizes, [m.run for m in hand.messages(Bound, parent.activation)]

    assert schedule() == ([1], ["c0", "c1", "c2"])
    with without(Down, "_may_send", staticmethod(lambda found: True)):
        assert schedule() == ([1, 2, 3], ["c0", "c1", "c2"])


def test_a_client_that_steps_hears_in_the_answer_and_one_that_polls_by_the_hub() -> None:
    """2.1"""
    hand = Hand(actors=2)
    a, b = hand.start("a"), hand.start("b")
    a.settle()
    hand.admit("c")
    assert hand.ends() == ["a"], "it rode in the answer to the driver's own step"
    b.settle()
    hand.poll()
    assert hand.ends() == ["a", "b"]
    assert hand.poll() == []


def test_a_message_that_is_lost_comes_again() -> None:
    """2.2"""

    def schedule() -> list[str]:
        hand = Hand(actors=2)
        parent, [child] = family(hand, 1)
        child.started()
        hand.take(Notify)  # lost
        hand.wait(1.5)
        hand.notify()
        return [m.run for m in hand.messages(Bound, parent.activation)]

    assert schedule() == ["c0"]
    with without(Down, "due", lambda self, now: None):
        assert schedule() == []


def test_a_message_that_an_answer_carried_and_that_was_lost_with_it_comes_by_the_hub() -> None:
    """2.2"""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        turn.settle()
        hand.courier("driver").post(Consumed("driver", ()))
        hand.lose("driver")
        hand.wait(1.5)
        hand.poll()
        return hand.ends()

    assert schedule() == ["r"]
    with without(Down, "due", lambda self, now: None):
        assert schedule() == []


def test_a_message_seen_before_is_dropped() -> None:
    """2.2"""

    def schedule() -> int:
        hand = Hand(actors=2)
        parent, [child] = family(hand, 1)
        child.started()
        [notify] = hand.take(Notify)
        hand.hear(notify)
        hand.hear(notify)
        return len(hand.messages(Bound, parent.activation))

    assert schedule() == 1
    with without(courier._Counter, "first_time", lambda self, number: True):
        assert schedule() == 2


def test_what_was_got_is_not_said_again() -> None:
    """2.2"""

    def schedule() -> int:
        hand = Hand(actors=2)
        parent, [child] = family(hand, 1)
        child.started()
        hand.notify()
        hand.clock.advance(courier.ACK_AFTER)
        hand.step(parent.actor)
        hand.wait(5)
        return len(hand.take(Notify))

    assert schedule() == 0
    with without(Down, "got", lambda self, event: []):
        assert schedule() > 2


def test_a_receipt_of_an_older_incarnation_confirms_nothing() -> None:
    """2.2: its numbers are not those of now."""

    def schedule() -> list[str]:
        hand = Hand(actors=2)
        turn = hand.start("r")
        stale = Got("driver", hand.registry.s.incarnation, 5)
        hand.crash_registry()
        hand.adopt()
        turn.settle()
        hand.courier("driver").post(stale)
        hand.lose("driver")
        hand.wait(1.5)
        hand.poll()
        return hand.ends()

    def any_incarnation(self: Down, event: Got) -> Any:
        return got(self, Got(event.receiver, self.s.incarnation, event.upto, event.runs))

    got = Down.got
    assert schedule() == ["r"]
    with without(Down, "got", any_incarnation):
        assert schedule() == []


def test_the_answer_to_a_poll_is_no_acknowledgement() -> None:
    """2.2: a left-over poll once swallowed completions."""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.push()
        hand.hub.take("driver", *hand.courier("driver").cursor("driver"))  # answered to a poll that nobody reads
        hand.poll()
        return hand.ends()

    def swallow(self: HubState, client: str, incarnation: int, cursor: int) -> list[Any]:
        queue = self._queues.get(client)
        taken = list(islice(queue.messages, 512)) if queue else []
        if queue:
            queue.messages.clear()
        return taken

    assert schedule() == ["r"]
    with without(HubState, "take", swallow):
        assert schedule() == []
