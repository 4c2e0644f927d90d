"""SPEC.md G3, delete and reset: what may be cleared, in which state, and what stays."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray.core.events import Event
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.cleanup import Cleanup, CleanupWord
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Archive, Consumed
from openclaw_ray.core.protocol.records import Session, thaw
from rules.asking import admit, key_of, root_of
from rules.hand import Hand, without


def delete(hand: Hand, session: str, revision: int = 1, session_id: str = "") -> CleanupWord:
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
    assert delete(hand, "a") is CleanupWord.DONE
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
    assert delete(hand, "a") is CleanupWord.DONE
    assert delete(hand, "a") is CleanupWord.DONE
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
    assert delete(hand, "top") is CleanupWord.BUSY
    child = top.child("child")
    hand.stop("top")
    top.settle(state=RunState.CANCELLED)
    assert delete(hand, "top") is CleanupWord.BUSY  # its child still runs
    child.settle(state=RunState.CANCELLED)
    assert delete(hand, "top") is CleanupWord.DONE
    assert orders(hand) == ["s-top"]  # the child's transcript stays


def test_a_session_that_has_changed_is_not_deleted() -> None:
    hand = ended()
    assert delete(hand, "a", revision=2) is CleanupWord.CHANGED
    assert delete(hand, "a", session_id="s-other") is CleanupWord.CHANGED
    assert record(hand, "a").state == "ended"
    assert orders(hand) == []


def test_main_sessions_and_roots_are_not_deleted() -> None:
    hand = Hand(actors=2)
    hand.ask("m")
    hand.begin("m").settle()
    assert delete(hand, "agent:w:main", session_id="w-main") is CleanupWord.MAIN
    assert delete(hand, root_of("driver"), session_id="driver", revision=0) is CleanupWord.ROOT
    assert delete(hand, "nobody") is CleanupWord.UNKNOWN
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


def test_a_deletion_waits_for_a_grandchild_whose_parent_has_ended() -> None:
    hand = Hand(actors=4, stop_grace_seconds=1.0)
    top = hand.start("top")
    child = top.child("child", timeout=5.0)
    grandchild = child.child("grandchild")
    hand.wait(6.0)
    child.settle(state=RunState.CANCELLED)
    top.consume("child")
    top.fail()
    assert delete(hand, "top") is CleanupWord.BUSY
    grandchild.settle()
    assert delete(hand, "top") is CleanupWord.DONE


# ------------------------------------------------------------------ reset

MAIN = "agent:w:main"


def reset(hand: Hand, session: str, session_id: str, revision: int, new: str) -> CleanupWord:
    word, effects = hand.registry.reset(key_of(session), session_id, revision, new)
    hand.do(effects)
    return word


def main() -> Hand:
    """A main session that has answered once, and keeps state."""
    hand = Hand(actors=6)
    hand.ask("m")
    turn = hand.begin("m")
    hand.registry.s.sessions[MAIN].state_json = b'{"n": 1}'
    turn.settle(rows=(turn.row("first"),))
    hand.say("driver", Consumed("driver", ("m",)))
    return hand


def test_a_main_session_begins_anew_under_its_key() -> None:
    hand = main()
    before = record(hand, MAIN)
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.DONE
    after = record(hand, MAIN)
    assert (after.session_id, after.state_json, after.number) == ("new", None, 2)
    assert (after.key, after.depth, after.root, after.role) == (before.key, 0, before.root, before.role)
    assert orders(hand) == ["w-main"]
    hand.ask("m2")
    turn = hand.begin("m2")
    assert (turn.spec.session_id, turn.spec.state, turn.spec.depth) == ("new", None, 0)
    turn.settle(rows=(turn.row("second"),))
    hand.push()
    assert [r.text for r in hand.rows if r.session_id == "new" and getattr(r, "text", "")] == ["second"]


def test_ten_resets_keep_its_depth_and_its_lineage() -> None:
    hand = main()
    for i in range(10):
        session = hand.registry.s.sessions[MAIN]
        assert reset(hand, MAIN, session.session_id, session.number, f"new-{i}") is CleanupWord.DONE
        hand.crash_registry()
        hand.adopt()
        hand.ask(f"ask-{i}")
        turn = hand.begin(f"ask-{i}")
        child = turn.child(f"child-{i}")
        assert (turn.spec.depth, child.spec.depth, child.spec.root) == (0, 1, MAIN)
        child.settle()
        turn.consume(f"child-{i}")
        turn.settle()
    assert (record(hand, MAIN).depth, record(hand, MAIN).session_id) == (0, "new-9")
    assert orders(hand) == ["w-main", *(f"new-{i}" for i in range(9))]


def test_a_reset_asked_again_is_the_first_one() -> None:
    hand = main()
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.DONE
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.DONE  # its answer was lost
    assert orders(hand) == ["w-main"]
    assert reset(hand, MAIN, "w-main", 1, "other") is CleanupWord.CHANGED  # somebody else had seen the older one


def test_without_the_guard_it_would_take_the_next_conversation() -> None:
    hand = main()
    reset(hand, MAIN, "w-main", 1, "new")
    with without(Cleanup, "_refusal", lambda self, session, session_id, revision: None):
        assert reset(hand, MAIN, "w-main", 1, "other") is CleanupWord.DONE
    assert orders(hand) == ["w-main", "new"]


def test_what_is_below_or_in_its_queue_must_have_ended_and_a_stop_ends_it() -> None:
    hand = Hand(actors=6)
    hand.ask("m")
    top = hand.begin("m")
    parent = top.child("parent")
    leaf = parent.child("leaf")
    parent.settle(yielded=True)
    top.settle(yielded=True)
    assert (hand.state("m"), hand.state("parent")) == ("paused", "paused")
    hand.ask("queued")
    before = record(hand, MAIN)
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.BUSY
    assert record(hand, MAIN) == before  # the conversation is untouched
    assert orders(hand) == []
    hand.stop(MAIN)
    assert [hand.state(r) for r in ("m", "parent", "queued")] == ["cancelled"] * 3
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.BUSY  # the leaf's process has not ended yet
    leaf.settle(state=RunState.CANCELLED)
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.DONE
    assert orders(hand) == ["w-main"]  # the transcripts of the children stay


def test_what_others_have_spawned_for_it_is_stopped_and_waited_for() -> None:
    hand = main()
    hand.courier("driver").admit(admit("for-it", MAIN), "for-it")
    assert hand.receipts("driver", 1)[0].accepted
    turn = hand.begin("for-it")
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.BUSY
    hand.stop(MAIN)
    turn.settle(state=RunState.CANCELLED)
    assert hand.state("for-it") == "cancelled"
    assert reset(hand, MAIN, "w-main", 1, "new") is CleanupWord.DONE


def test_completions_that_it_was_not_given_are_discarded_silently() -> None:
    hand = main()
    hand.ask("m2")
    top = hand.begin("m2")
    child = top.child("child")
    child.settle()
    top.fail()  # without having been given it: it waits for whichever turn comes next
    assert list(hand.registry.s.sessions[MAIN].pending) == ["child"]
    assert reset(hand, MAIN, "w-main", 2, "new") is CleanupWord.DONE
    assert hand.run("child").delivery == "discarded"
    hand.ask("m3")
    assert hand.begin("m3").spec.completions == ()
    hand.push()
    assert [r for r in hand.rows if r.session_id == "new"] == []


def test_a_reset_outlives_the_registry_and_its_order_comes_after_the_rows() -> None:
    hand = main()
    reset(hand, MAIN, "w-main", 1, "new")
    hand.crash_registry()  # before anything was pushed
    hand.adopt()
    hand.push()
    mine = [getattr(row, "text", "renamed") for row in hand.rows if row.session_id == "w-main"]
    assert mine == ["first", "renamed"]
    assert hand.registry.s.sessions[MAIN].session_id == "new"


def test_a_commit_that_fails_resets_nothing() -> None:
    hand = main()
    hand.push()
    hand.journal.fail_next = 1
    with pytest.raises(JournalFault):
        reset(hand, MAIN, "w-main", 1, "new")
    hand.crash_registry()
    assert record(hand, MAIN).session_id == "w-main"
    assert orders(hand) == []


def test_roots_and_deleted_sessions_are_not_reset() -> None:
    hand = ended()
    assert reset(hand, root_of("driver"), "driver", 0, "new") is CleanupWord.ROOT
    assert reset(hand, "nobody", "s", 0, "new") is CleanupWord.UNKNOWN
    delete(hand, "a")
    assert reset(hand, "a", "s-a", 1, "new") is CleanupWord.ARCHIVED
    assert orders(hand) == ["s-a"]


def test_an_ended_child_can_be_reset() -> None:
    hand = ended()
    assert reset(hand, "a", "s-a", 1, "new") is CleanupWord.DONE
    after = record(hand, "a")
    assert (after.session_id, after.state, after.depth, after.requester) == ("new", "ended", 1, root_of("driver"))
    assert key_of("a") not in hand.registry.s.sessions
