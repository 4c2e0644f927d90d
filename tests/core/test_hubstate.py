"""core.protocol.hubstate: messages repeated until confirmed, leases, and the ring of events (PROTOCOL.md 2,
7.4)."""

from __future__ import annotations

from openclaw_ray.core.events import Event
from openclaw_ray.core.protocol import hubstate
from openclaw_ray.core.protocol.hubstate import HubBatch, HubState


def messages(client: str, *numbers: int) -> HubBatch:
    return HubBatch(messages={client: [(n, f"m{n}") for n in numbers]})


def events(*seqs: int) -> HubBatch:
    return HubBatch(events=[(seq, Event(seq, 1.0, "run")) for seq in seqs])


def taken(state: HubState, cursor: int, incarnation: int = 1, client: str = "c") -> list[int]:
    return [n for n, _ in state.take(client, incarnation, cursor)]


# ------------------------------------------------------------------ messages


def test_what_is_pushed_is_taken_in_order() -> None:
    state = HubState()
    state.push(1, messages("c", 1, 2))
    state.push(1, messages("c", 3))
    assert state.take("c", 1, 0) == [(1, "m1"), (2, "m2"), (3, "m3")]
    assert taken(state, 0, client="nobody") == []


def test_an_answer_is_no_acknowledgement() -> None:
    state = HubState()
    state.push(1, messages("c", 1, 2))
    assert taken(state, 0) == taken(state, 0) == [1, 2]


def test_a_later_poll_with_a_higher_cursor_confirms() -> None:
    state = HubState()
    state.push(1, messages("c", 1, 2, 3))
    assert taken(state, 2) == [3]
    assert taken(state, 0) == [3], "a left-over poll brings nothing back"
    assert state.statistics().queued == 1


def test_a_message_pushed_again_is_kept_once_confirmed_or_not() -> None:
    state = HubState()
    state.push(1, messages("c", 1, 2))
    assert taken(state, 1) == [2]
    done = state.push(1, messages("c", 1, 2))
    assert done.clients == ()
    assert taken(state, 1) == [2]
    assert state.push(1, messages("c", 2, 3)).clients == ("c",)
    assert taken(state, 1) == [2, 3]
    assert state.statistics().repeated == 3


def test_clients_do_not_see_each_others_messages() -> None:
    state = HubState()
    done = state.push(1, HubBatch(messages={"a": [(1, "for a")], "b": [(1, "for b")]}))
    assert done.clients == ("a", "b")
    assert state.take("a", 1, 0) == [(1, "for a")]
    assert taken(state, 1, client="a") == []
    assert state.take("b", 1, 0) == [(1, "for b")]


def test_an_older_incarnation_is_dropped_whole() -> None:
    state = HubState()
    state.push(2, messages("c", 1))
    done = state.push(1, HubBatch(messages={"c": [(5, "old")]}, events=events(9).events))
    assert not done.accepted
    assert state.take("c", 2, 0) == [(1, "m1")]
    assert state.events_after(8) is None
    assert state.statistics().stale == 1


def test_a_newer_incarnation_begins_anew_with_its_own_numbers() -> None:
    state = HubState()
    state.push(1, messages("c", 1, 2, 3))
    done = state.push(2, HubBatch(messages={"c": [(1, "new")]}))
    assert done.accepted
    assert done.anew
    assert state.incarnation == 2
    assert state.take("c", 2, 0) == [(1, "new")]


def test_a_cursor_of_an_older_incarnation_confirms_nothing() -> None:
    state = HubState()
    state.push(2, messages("c", 1, 2))
    assert taken(state, 7, incarnation=1) == [1, 2]
    assert taken(state, 0, incarnation=2) == [1, 2]


def test_a_client_ahead_of_this_hub_gets_nothing_and_loses_nothing() -> None:
    state = HubState()
    state.push(1, messages("c", 1))
    assert taken(state, 1, incarnation=2) == []
    assert taken(state, 0, incarnation=1) == [1]


def test_one_answer_is_bounded_and_the_next_goes_on() -> None:
    state = HubState()
    state.push(1, messages("c", *range(1, 1201)))
    assert taken(state, 0) == list(range(1, 513))
    assert taken(state, 512) == list(range(513, 1025))
    assert taken(state, 1024) == list(range(1025, 1201))


def test_above_the_bound_nothing_is_dropped_and_the_client_is_named() -> None:
    state = HubState()
    most = hubstate.CLIENT_BOUND
    state.push(1, messages("c", *range(1, most + 1)))
    assert state.statistics().over == ()
    state.push(1, messages("c", most + 1))
    assert state.statistics().over == ("c",)
    assert state.statistics().largest == most + 1
    taken(state, 1)
    assert state.statistics().over == ()
    assert taken(state, most) == [most + 1]


def test_a_client_that_is_forgotten_leaves_nothing() -> None:
    state = HubState()
    state.push(1, messages("c", 1))
    state.touch("c", 0.0)
    state.forget("c")
    state.forget("c")
    assert taken(state, 0) == []
    assert state.silent(100.0, 15.0) == []
    seen = state.statistics()
    assert (seen.clients, seen.leases, seen.queued) == (0, 0, 0)


# ------------------------------------------------------------------ leases


def test_a_client_is_silent_after_its_lease_and_not_before() -> None:
    state = HubState()
    state.touch("c", 10.0)
    assert state.silent(25.0, 15.0) == []
    assert state.silent(25.1, 15.0) == ["c"]
    state.touch("c", 26.0)
    assert state.silent(40.0, 15.0) == []


def test_silence_is_told_until_the_registry_has_decided_longest_first() -> None:
    state = HubState()
    state.touch("b", 2.0)
    state.touch("a", 1.0)
    state.touch("c", 20.0)
    assert state.silent(30.0, 15.0) == state.silent(30.0, 15.0) == ["a", "b"]
    state.forget("a")
    assert state.silent(30.0, 15.0) == ["b"]


def test_a_sign_of_life_that_arrives_late_does_not_shorten_a_lease() -> None:
    state = HubState()
    state.touch("c", 10.0)
    state.touch("c", 5.0)
    assert state.silent(24.0, 15.0) == []


def test_an_expected_client_that_never_polls_is_missed() -> None:
    state = HubState()
    state.touch("polls", 30.0)
    state.expect("polls", 0.0)
    state.expect("dead", 20.0)
    state.expect("dead", 34.0)
    assert state.silent(36.0, 15.0) == ["dead"]


def test_a_new_incarnation_leaves_leases_alone() -> None:
    state = HubState()
    state.push(1, HubBatch())
    state.touch("c", 0.0)
    state.push(2, HubBatch())
    assert state.silent(16.0, 15.0) == ["c"]


# ------------------------------------------------------------------ events


def seqs(found: list[Event] | None) -> list[int] | None:
    return None if found is None else [event.seq for event in found]


def test_events_are_given_from_the_cursor_on() -> None:
    state = HubState()
    assert state.push(1, events(4, 5, 9)).events == 3
    assert seqs(state.events_after(3)) == [4, 5, 9]
    assert seqs(state.events_after(5)) == [9]
    assert seqs(state.events_after(7)) == [9]
    assert seqs(state.events_after(9)) == []
    assert seqs(state.events_after(99)) == []
    assert seqs(state.events_after(3, limit=2)) == [4, 5]


def test_before_its_first_event_a_hub_sends_its_readers_to_the_journal() -> None:
    state = HubState()
    assert state.events_after(0) is None
    state.push(1, events(4))
    assert state.events_after(2) is None
    assert seqs(state.events_after(3)) == [4]


def test_a_reader_behind_the_ring_is_sent_to_the_journal() -> None:
    state = HubState(events=3)
    state.push(1, events(1, 2, 4, 6, 8))
    assert state.events_after(1) is None
    assert seqs(state.events_after(2)) == [4, 6, 8]
    assert seqs(state.events_after(3)) == [4, 6, 8]
    seen = state.statistics()
    assert (seen.events, seen.first_event, seen.last_event) == (3, 4, 8)


def test_the_ring_holds_ten_thousand_by_default() -> None:
    state = HubState()
    state.push(1, events(*range(1, 10_101)))
    assert state.statistics().events == 10_000
    assert state.events_after(99) is None
    assert len(state.events_after(100) or []) == 10_000


def test_an_event_pushed_again_is_held_once() -> None:
    state = HubState()
    state.push(1, events(1, 2))
    assert state.push(1, events(1, 2, 3)).events == 1
    assert seqs(state.events_after(0)) == [1, 2, 3]


def test_events_that_a_new_registry_may_have_left_out_are_looked_for_in_the_journal() -> None:
    state = HubState()
    state.push(1, events(1, 2))
    state.push(2, events(5))
    assert state.events_after(2) is None
    assert seqs(state.events_after(4)) == [5]


def test_an_untouched_hub_reports_nothing() -> None:
    seen = HubState().statistics()
    assert (seen.incarnation, seen.clients, seen.queued, seen.over, seen.last_event) == (0, 0, 0, (), 0)
