"""PROTOCOL.md 4.4, End: who hears of it, and how."""

from __future__ import annotations

from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Bye, Completed, DeliverTo, Notify, Start
from rules.hand import Hand, without
from rules.turn import Turn


def parent_and_child() -> tuple[Hand, Turn, Turn]:
    hand = Hand(actors=3)
    parent = hand.start("parent")
    return hand, parent, parent.child("child")


# ------------------------------------------------------------------ 4.4 who hears, and how


def test_a_requester_with_a_running_turn_is_called_by_the_child_itself() -> None:
    """4.4 a: the verdict names its actor and activation."""

    def schedule() -> tuple[tuple[str, str] | None, int]:
        hand, parent, child = parent_and_child()
        deliver = child.settle().deliver
        told = None if deliver is None else (deliver.actor, deliver.activation)
        assert told is None or told == (parent.actor, parent.activation)
        return told, len(hand.sent(Notify))

    assert schedule() == (("session-1-3", "s-parent.1"), 0)
    with without(Ending, "_by_child", lambda self, run, owner, caller: None):
        assert schedule() == (None, 0), "nobody tells the parent"


def test_the_key_of_an_announce_names_child_and_run() -> None:
    """4.4"""
    _, _, child = parent_and_child()
    deliver = child.settle().deliver
    assert isinstance(deliver, DeliverTo)
    assert deliver.completion.key == "announce:v1:agent:w:subagent:child:child"


def test_a_complete_batch_starts_the_wake_in_the_step_of_its_last_end() -> None:
    """4.4 b"""

    def schedule() -> list[str]:
        hand, parent, child = parent_and_child()
        parent.settle(yielded=True)
        child.settle()
        return [start.spec.kind for start in hand.sent(Start)]

    assert schedule() == ["wake"]
    with without(Ending, "maybe_go_on", lambda self, run: None):
        assert schedule() == []


def test_a_client_hears_by_its_downlink() -> None:
    """4.4 c"""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.poll()
        return hand.ends()

    assert schedule() == ["r"]
    with without(Ending, "route", lambda self, run, caller=None: None):
        assert schedule() == []


def test_when_the_requester_is_gone_for_good_its_own_requester_hears_and_the_completion_says_so() -> None:
    """4.4 d"""

    def schedule() -> list[tuple[str, bool]]:
        hand, parent, child = parent_and_child()
        parent.fail()
        child.settle()
        hand.poll()
        return [(m.run, m.completion.fallback) for m in hand.messages(Completed)]

    assert schedule() == [("parent", False), ("child", True)]
    with without(Ending, "_parent_ended", lambda self, run, parent, target: self.forget_delivery(run)):
        assert schedule() == [("parent", False)]


def test_what_is_told_to_a_plain_function_that_died_goes_to_its_requester() -> None:
    """4.4 d: it would begin from its first line again."""

    def schedule() -> tuple[str, list[str], list[str]]:
        hand, parent, child = parent_and_child()
        hand.kill(parent.actor)
        child.settle()
        hand.crash_registry()
        hand.adopt()
        hand.poll()
        session = hand.registry.s.sessions.get(parent.spec.session_key)
        return hand.run("child").delivery.value, list(session.pending if session else ()), hand.ends()

    assert schedule() == ("pending", [], ["parent", "child"])
    with without(Ending, "_parent_ended", lambda self, run, parent, target: None):
        assert schedule()[2] == ["parent"]


def test_a_delivery_is_pending_from_the_step_of_the_end_on() -> None:
    """4.4: so that a registry that dies then knows whom it owes."""
    hand, parent, child = parent_and_child()
    child.settle()
    hand.crash_registry()
    assert hand.run("child").delivery is DeliveryState.PENDING
    assert list(hand.registry.s.sessions[parent.spec.session_key].pending) == ["child"]


def test_a_client_that_leaves_has_its_completions_discarded_and_leaves_nothing_behind() -> None:
    """4.4: nobody is left to tell."""
    hand = Hand(actors=3)
    hand.start("ended").settle()
    parent = hand.start("parent")
    child = parent.child("child")
    hand.say("driver", Bye("driver"))
    parent.settle()
    child.settle()
    assert hand.run("ended").delivery is DeliveryState.DISCARDED
    assert [hand.state(run) for run in ("ended", "parent", "child")] == ["succeeded", "cancelled", "cancelled"]
    left = hand.registry.s.snapshot()
    assert [left[what] for what in ("runs", "sessions", "queued", "slots", "bound")] == [0] * 5
    assert not hand.registry.s.marks
