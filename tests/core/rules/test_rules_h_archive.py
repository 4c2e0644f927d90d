"""SPEC.md H6, Archive: when ended sessions are archived, once each, and what a look costs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol import archiving, delivery
from openclaw_ray.core.protocol.archiving import SWEEP, Archiving
from openclaw_ray.core.protocol.cleanup import CleanupWord
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Archive, Consumed
from openclaw_ray.core.protocol.records import Session, thaw
from rules.asking import key_of
from rules.hand import Hand, without

MINUTE = 60.0


def record(hand: Hand, session: str) -> Session:
    data = hand.journal.get("sessions", key_of(session))
    assert data is not None
    found: Session = thaw(Session, data)
    return found


def state(hand: Hand, session: str) -> str:
    return record(hand, session).state


def orders(hand: Hand) -> list[str]:
    """The sessions whose transcripts the hub was told to rename, in order."""
    hand.push()
    return [row.session_id for row in hand.rows if isinstance(row, Archive)]


def due(hand: Hand) -> int:
    """Entries in the table of what is due."""
    return len(hand.journal.after("due", 0, limit=10_000))


def hear(hand: Hand, *runs: str) -> None:
    hand.say("driver", Consumed("driver", runs))


def ended(*, heard: bool = True, cleanup: str = "keep", **limits: Any) -> Hand:
    hand = Hand(actors=4, **{"archive_after_minutes": 60, **limits})
    hand.start("a", cleanup=cleanup).settle()
    if heard:
        hear(hand, "a")
    return hand


# ------------------------------------------------------------------ when


def test_a_kept_session_is_archived_after_its_time_and_not_before() -> None:
    hand = ended()
    at = record(hand, "a").archive_at
    assert at == pytest.approx(hand.clock.wall() + 60 * MINUTE, abs=0.001)
    hand.wait(60 * MINUTE - 1.5)
    assert (state(hand, "a"), orders(hand)) == ("ended", [])
    hand.wait(3.0)
    assert (state(hand, "a"), orders(hand), due(hand)) == ("archived", ["s-a"], 0)
    assert hand.state("a") == "succeeded"  # the records of its runs stay
    hand.wait(3600.0)
    assert orders(hand) == ["s-a"]


def test_zero_is_never() -> None:
    hand = ended(archive_after_minutes=0)
    assert (record(hand, "a").archive_at, due(hand)) == (None, 0)
    hand.wait(3 * 3600.0)
    assert (state(hand, "a"), orders(hand)) == ("ended", [])


def test_what_nobody_has_heard_of_is_not_archived_however_old() -> None:
    hand = ended(heard=False)
    hand.wait(3 * 3600.0)
    assert (state(hand, "a"), orders(hand)) == ("ended", [])
    hear(hand, "a")
    hand.wait(2.0)  # its time was up long ago
    assert (state(hand, "a"), orders(hand)) == ("archived", ["s-a"])


def test_a_timeout_is_an_end_like_any_other() -> None:
    hand = Hand(actors=2)
    turn = hand.start("a", timeout=5.0)
    hand.wait(6.0)
    turn.settle(state=RunState.CANCELLED)
    hear(hand, "a")
    assert hand.state("a") == "timed_out"
    hand.wait(59 * MINUTE)
    assert (state(hand, "a"), orders(hand)) == ("ended", [])
    hand.wait(2 * MINUTE)
    assert orders(hand) == ["s-a"]


def test_what_runs_is_not_archived_however_long() -> None:
    hand = Hand(actors=2)
    hand.start("a")
    hand.wait(5 * 3600.0)
    assert orders(hand) == []


def test_all_depths_are_alike_and_a_parent_waits_for_what_lives_below() -> None:
    hand = Hand(actors=6, stop_grace_seconds=1.0)
    top = hand.start("top", timeout=5.0)
    child = top.child("child")
    grandchild = child.child("grandchild")
    hand.wait(6.0)
    top.settle(state=RunState.CANCELLED)
    assert hand.state("top") == "timed_out"
    hear(hand, "top")
    hand.wait(2 * 3600.0)
    assert orders(hand) == []  # ended and heard of, but its child goes on
    grandchild.settle()
    child.consume("grandchild")
    child.settle()
    hand.poll()
    hear(hand, "child")
    assert [state(hand, s) for s in ("top", "child", "grandchild")] == ["ended"] * 3
    hand.wait(2.0)
    assert orders(hand) == ["s-top"]  # its own end was long ago
    hand.wait(61 * MINUTE)
    assert sorted(orders(hand)) == ["s-child", "s-grandchild", "s-top"]


def test_main_sessions_and_roots_are_not_archived() -> None:
    hand = Hand(actors=2)
    hand.ask("m")
    hand.begin("m").settle()
    hear(hand, "m")
    hand.wait(3 * 3600.0)
    assert (orders(hand), due(hand)) == ([], 0)


# ------------------------------------------------------------------ cleanup: delete


def test_cleanup_delete_archives_in_the_step_in_which_its_end_was_heard_of() -> None:
    hand = ended(heard=False, cleanup="delete", archive_after_minutes=0)
    hand.wait(3600.0)
    assert (state(hand, "a"), orders(hand)) == ("ended", [])
    hear(hand, "a")
    assert (state(hand, "a"), orders(hand), due(hand)) == ("archived", ["s-a"], 0)
    assert key_of("a") not in hand.registry.s.sessions
    assert hand.admit("b", session_key=key_of("a"), session_id="s-b").accepted  # the key is free


def test_cleanup_delete_of_a_child_waits_for_its_parents_program() -> None:
    hand = Hand(actors=4)
    top = hand.start("top")
    top.child("child", cleanup="delete", label="l").settle()
    assert top.spawn("other", label="l").accepted  # the label is free with the end
    assert orders(hand) == []
    top.consume("child")
    assert orders(hand) == ["s-child"]
    hand.begin("other").settle()
    top.consume("other")
    top.settle()
    hear(hand, "top")
    assert orders(hand) == ["s-child"]


def test_cleanup_delete_waits_for_what_lives_below() -> None:
    hand = Hand(actors=4)
    top = hand.start("top", cleanup="delete", timeout=5.0)
    child = top.child("child")
    hand.wait(6.0)
    top.settle(state=RunState.CANCELLED)
    hear(hand, "top")
    assert orders(hand) == []
    child.settle()
    hand.poll()
    hear(hand, "child")
    assert orders(hand) == ["s-top"]


# ------------------------------------------------------------------ against others, and crashes


def test_a_session_that_is_at_work_again_is_passed_over() -> None:
    hand = ended()
    at_work = record(hand, "a")
    at_work.state = "active"
    hand.registry.s.sessions[at_work.key] = at_work  # as a message to it would do
    hand.wait(61 * MINUTE)
    assert (orders(hand), due(hand)) == ([], 0)
    at_work.state, at_work.ended = "ended", hand.clock.wall()
    hand.do(hand.registry._entry(lambda: archiving.leave(hand.registry.s, at_work)))
    hand.wait(59 * MINUTE)
    assert orders(hand) == []
    hand.wait(2 * MINUTE)
    assert orders(hand) == ["s-a"]


def test_without_the_look_at_what_it_is_now_a_transcript_is_archived_twice() -> None:
    hand = ended()
    hand.do(hand.registry.delete(key_of("a"), "s-a", 1)[1])
    with without(Archiving, "_still", lambda self, session, session_id, number: True):
        hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-a", "s-a"]


def test_a_reset_gives_it_its_time_anew() -> None:
    hand = ended()
    hand.wait(30 * MINUTE)
    word, effects = hand.registry.reset(key_of("a"), "s-a", 1, "s-new")
    hand.do(effects)
    assert word is CleanupWord.DONE
    hand.wait(45 * MINUTE)
    assert orders(hand) == ["s-a"]  # the reset's own
    assert state(hand, "a") == "ended"
    hand.wait(16 * MINUTE)
    assert orders(hand) == ["s-a", "s-new"]


def test_a_deletion_before_its_time_is_the_only_one() -> None:
    hand = ended()
    hand.do(hand.registry.delete(key_of("a"), "s-a", 1)[1])
    hand.wait(61 * MINUTE)
    assert (orders(hand), due(hand)) == (["s-a"], 0)


def test_a_session_made_anew_under_its_key_is_not_archived_in_its_place() -> None:
    hand = ended()
    hand.do(hand.registry.delete(key_of("a"), "s-a", 1)[1])
    turn = hand.start("b", session_key=key_of("a"), session_id="s-b")
    hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-a"]
    turn.settle()
    hear(hand, "b")
    assert record(hand, "a").session_id == "s-b"
    hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-a", "s-b"]


def test_a_restarted_registry_archives_what_is_due() -> None:
    hand = ended()
    hand.crash_registry()
    hand.adopt()
    hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-a"]


def test_the_time_that_passes_while_there_is_no_registry_counts() -> None:
    hand = ended()
    hand.clock.advance(2 * 3600.0)
    hand.crash_registry()
    hand.adopt()
    hand.wait(1.0)
    assert orders(hand) == ["s-a"]


def test_a_commit_that_fails_is_made_up_for_by_the_next_look() -> None:
    hand = ended()
    hand.clock.advance(61 * MINUTE)
    hand.journal.fail_next = 1
    with pytest.raises(JournalFault):
        hand.tick()
    hand.crash_registry()
    assert (state(hand, "a"), due(hand)) == ("ended", 1)
    hand.adopt()
    hand.wait(1.0)
    assert (state(hand, "a"), orders(hand), due(hand)) == ("archived", ["s-a"], 0)


def test_a_crash_right_after_the_commit_loses_no_order_and_makes_no_second_one() -> None:
    hand = ended()
    hand.clock.advance(61 * MINUTE)
    hand.tick()
    hand.crash_registry()  # before anything was pushed
    hand.adopt()
    hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-a"]


def test_the_orders_come_after_the_rows() -> None:
    hand = Hand(actors=2)
    turn = hand.start("a", cleanup="delete")
    turn.settle(rows=(turn.row("last words"),))
    hear(hand, "a")
    hand.crash_registry()
    hand.adopt()
    hand.push()
    mine = [getattr(row, "text", "renamed") for row in hand.rows if row.session_id == "s-a"]
    assert mine == ["last words", "renamed"]


# ------------------------------------------------------------------ what a look costs


def many(count: int) -> Hand:
    hand = Hand(actors=2, archive_after_minutes=1)
    for i in range(count):
        hand.start(f"r{i}").settle()
        hear(hand, f"r{i}")
    return hand


def test_a_look_archives_a_bounded_number_and_the_rest_comes_soon() -> None:
    hand = many(2 * SWEEP + 5)
    assert len(hand.registry.s.sessions) == 1  # the client's root: memory is at its base before any is archived
    hand.clock.advance(2 * MINUTE)
    hand.tick()
    assert len(orders(hand)) == SWEEP
    assert hand.registry.next_due() - hand.clock.mono() <= archiving.BACKLOG_EVERY
    hand.wait(3 * archiving.BACKLOG_EVERY)
    assert orders(hand) == [f"s-r{i}" for i in range(2 * SWEEP + 5)]  # in the order of their times, each once
    assert due(hand) == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_a_look_with_nothing_due_reads_nothing(restarted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = many(10)
    if restarted:
        hand.crash_registry()
        hand.adopt()
    reads: list[str] = []
    after = type(hand.journal).after

    def counted(self: Any, table: str, key: int, *, limit: int) -> Any:
        reads.append(table)
        return after(self, table, key, limit=limit)

    monkeypatch.setattr(type(hand.journal), "after", counted)
    hand.wait(30.0)
    assert reads == []
    assert orders(hand) == []


def test_events_tell_of_it() -> None:
    hand = ended(cleanup="delete", heard=False)
    hand.push()
    hear(hand, "a")
    batch = hand.registry.take_batch()
    assert batch is not None
    told = [e for e in (pickle.loads(data) for _, data in batch.events) if e.kind == "session"]
    assert [(e.session_key, e.state, e.reason) for e in told] == [(key_of("a"), "archived", "cleanup")]


# ------------------------------------------------------------------ what stays pending for the dead


def stranded() -> Hand:
    """An item's session whose process died; its child's end is pending for it, and nobody takes it."""
    hand = Hand(actors=4)
    top = hand.start("top", route="map")
    child = top.child("child")
    hand.kill(top.actor)
    hear(hand, "top")
    child.settle()
    assert list(hand.registry.s.sessions[key_of("top")].pending) == ["child"]
    return hand


@pytest.mark.parametrize("restarted", [False, True])
def test_a_dead_session_is_archived_with_what_is_pending_for_it(restarted: bool) -> None:
    hand = stranded()
    if restarted:
        hand.crash_registry()
        hand.adopt()
    hand.wait(59 * MINUTE)
    assert (orders(hand), hand.run("child").delivery) == ([], "pending")
    hand.wait(2 * MINUTE)
    assert (orders(hand)[0], hand.run("child").delivery) == ("s-top", "failed")
    hand.wait(61 * MINUTE)
    assert orders(hand) == ["s-top", "s-child"]
    assert list(hand.registry.s.runs) == ["root-driver"]
    assert due(hand) == 0


def test_without_its_time_a_dead_session_would_stay_for_ever() -> None:
    with without(delivery, "strand", lambda s, session: None):
        hand = stranded()
        hand.wait(300 * MINUTE)
    assert orders(hand) == []
    assert len(hand.registry.s.runs) == 3


def test_a_dead_session_is_not_archived_before_its_own_end_was_heard_of() -> None:
    hand = Hand(actors=4)
    top = hand.start("top", route="map")
    child = top.child("child")
    hand.kill(top.actor)
    child.settle()
    hand.wait(90 * MINUTE)
    assert orders(hand) == []
    hear(hand, "top")
    hand.wait(61 * MINUTE)
    assert orders(hand)[0] == "s-top"
