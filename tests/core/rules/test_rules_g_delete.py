"""SPEC.md G3, Delete: what may go, in which state, and what stays."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray.core.events import Event
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.deleting import Deletion
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Archive, Consumed
from openclaw_ray.core.protocol.records import Session, thaw
from rules.asking import key_of, root_of
from rules.hand import Hand


def delete(hand: Hand, session: str, revision: int = 1, session_id: str = "") -> Deletion:
    word, effects = hand.registry.delete(key_of(session), session_id or f"s-{session}", revision)
    hand.do(effects)
    return word


def record(hand: Hand, session: str) -> Session:
    data = hand.journal.get("sessions", key_of(session))
    assert data is not None
    found: Session = thaw(Session, data)
    return found


def orders(hand: Hand) -> list[str]:
    """The sessions whose transcripts the hub was told to rename."""
    hand.push()
    return [row.session_id for row in hand.rows if isinstance(row, Archive)]


def ended(*, heard: bool = True) -> Hand:
    hand = Hand(actors=2)
    hand.start("a").settle()
    if heard:
        hand.say("driver", Consumed("driver", ("a",)))
    return hand


@pytest.mark.parametrize("heard", [True, False])
def test_an_ended_session_is_archived_and_its_transcript_renamed(heard: bool) -> None:
    hand = ended(heard=heard)
    assert delete(hand, "a") is Deletion.DELETED
    assert record(hand, "a").state == "archived"
    assert orders(hand) == ["s-a"]
    assert hand.state("a") == "succeeded"  # the records of its runs stay
    assert (key_of("a") in hand.registry.s.sessions) is not heard


def test_an_end_that_nobody_has_heard_of_is_still_delivered() -> None:
    hand = ended(heard=False)
    delete(hand, "a")
    hand.crash_registry()
    hand.adopt()
    hand.poll()
    assert hand.ends() == ["a"]
    hand.say("driver", Consumed("driver", ("a",)))
    assert key_of("a") not in hand.registry.s.sessions
    assert record(hand, "a").state == "archived"


def test_a_second_deletion_is_the_first_one() -> None:
    hand = ended()
    assert delete(hand, "a") is Deletion.DELETED
    assert delete(hand, "a") is Deletion.DELETED
    assert orders(hand) == ["s-a"]


def test_a_deletion_is_told_as_an_event() -> None:
    hand = ended()
    hand.push()
    delete(hand, "a")
    batch = hand.registry.take_batch()
    assert batch is not None
    [event] = [pickle.loads(data) for _, data in batch.events]
    assert isinstance(event, Event)
    assert (event.kind, event.session_key, event.state) == ("session", key_of("a"), "archived")


def test_what_has_not_ended_is_not_deleted() -> None:
    hand = Hand(actors=4)
    top = hand.start("top")
    assert delete(hand, "top") is Deletion.BUSY
    child = top.child("child")
    hand.stop("top")
    top.settle(state=RunState.CANCELLED)
    assert delete(hand, "top") is Deletion.BUSY  # its child still runs
    child.settle(state=RunState.CANCELLED)
    assert delete(hand, "top") is Deletion.DELETED
    assert orders(hand) == ["s-top"]  # the child's transcript stays


def test_a_session_that_has_changed_is_not_deleted() -> None:
    hand = ended()
    assert delete(hand, "a", revision=2) is Deletion.CHANGED
    assert delete(hand, "a", session_id="s-other") is Deletion.CHANGED
    assert record(hand, "a").state == "ended"
    assert orders(hand) == []


def test_main_sessions_and_roots_are_not_deleted() -> None:
    hand = Hand(actors=2)
    hand.ask("m")
    hand.begin("m").settle()
    assert delete(hand, "agent:w:main", session_id="w-main") is Deletion.MAIN
    assert delete(hand, root_of("driver"), session_id="driver", revision=0) is Deletion.ROOT
    assert delete(hand, "nobody") is Deletion.UNKNOWN
    assert orders(hand) == []


def test_a_commit_that_fails_deletes_nothing() -> None:
    hand = ended()
    hand.push()
    hand.journal.fail_next = 1
    with pytest.raises(JournalFault):
        delete(hand, "a")
    hand.crash_registry()
    assert record(hand, "a").state == "ended"
    assert orders(hand) == []


def test_the_order_to_rename_outlives_the_registry_and_comes_after_the_rows() -> None:
    hand = Hand(actors=2)
    turn = hand.start("a")
    turn.settle(rows=(turn.row("last words"),))
    hand.say("driver", Consumed("driver", ("a",)))
    delete(hand, "a")
    hand.crash_registry()  # before anything was pushed
    hand.adopt()
    hand.push()
    mine = [row for row in hand.rows if row.session_id == "s-a"]
    assert [getattr(row, "text", "renamed") for row in mine] == ["last words", "renamed"]


def test_the_key_is_free_again() -> None:
    hand = ended()
    delete(hand, "a")
    assert hand.admit("b", session_key=key_of("a"), session_id="s-b").accepted
    assert record(hand, "a").session_id == "s-b"
