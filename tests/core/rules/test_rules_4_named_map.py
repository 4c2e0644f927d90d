"""Named maps: one try at a time, nothing twice, and what an earlier try has done (DESIGN.md 7, 10)."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.named_map import PAGE, ClaimAnswer, ItemRow, MapItem
from openclaw_ray.core.protocol.admitting import Admitting
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.maps import Maps
from openclaw_ray.core.protocol.messages import Bye, Consumed, Join, MapDone
from openclaw_ray.core.protocol.records import Run, thaw
from rules.asking import root_of
from rules.hand import Hand, without
from rules.turn import Turn


def claim(hand: Hand, name: str, client: str = "driver", receiver: str = "") -> ClaimAnswer:
    """A try called ``name`` asks for map ``m``."""
    answer, effects = hand.registry.claim_map("m", name, client, receiver or client)
    hand.do(effects)
    return answer


def item(name: str, index: int, digest: bytes = b"d") -> dict[str, object]:
    """Options of an admit."""
    return {"route": "map", "index": index, "item": MapItem("m", name, digest)}


def rows(hand: Hand, page: int = 0) -> list[tuple[int, bool, str | None]]:
    """What is known of a page: index, whether it succeeded, and the text."""
    found: list[ItemRow] = hand.registry.maps.page("m", page)
    return [(r.index, r.ok, r.completed.completion.result.text if r.completed else None) for r in found]


def begun(hand: Hand, run: str, index: int, name: str = "one", by: str = "driver") -> Turn:
    """An item's turn."""
    return hand.start(run, by, **item(name, index))


# ---------------------------------------------------------------------- what was done


def test_the_end_of_an_item_is_there_for_the_next_try_whatever_became_of_its_client() -> None:
    hand = Hand(actors=4)
    assert claim(hand, "one").word == "ok"
    begun(hand, "a", 0).settle("first")
    begun(hand, "b", 1).fail()
    hand.say("driver", Bye("driver"))
    hand.crash_registry()
    assert rows(hand) == [(0, True, "first"), (1, False, None)]


def test_an_item_that_was_stopped_did_not_end_and_what_was_known_of_it_stands() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    begun(hand, "a", 0).fail()
    for run, index in (("a2", 0), ("b", 1)):
        begun(hand, run, index)
        hand.stop("", run=run)
        hand.turns[run].settle(state=RunState.CANCELLED)
    assert rows(hand) == [(0, False, None)]


def test_a_further_run_of_an_item_has_the_last_word() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    begun(hand, "a", 0).fail()
    begun(hand, "a2", 0).settle("at last")
    assert rows(hand) == [(0, True, "at last")]


def test_items_of_other_content_are_other_items() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    hand.start("a", **item("one", 0, b"x")).settle("x")
    hand.start("b", **item("one", 0, b"y")).settle("y")
    assert rows(hand) == [(0, True, "x"), (0, True, "y")]


def test_an_item_without_a_digest_leaves_nothing() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    hand.start("a", **item("one", 0, b"")).settle()
    assert rows(hand) == []


def test_a_value_that_was_not_journaled_is_not_there() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    begun(hand, "a", 0).settle("text", held=100_000)
    assert rows(hand) == [(0, True, None)]


def test_ends_are_read_a_page_of_positions_at_a_time_and_none_is_held_in_memory() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    for index in (PAGE, 0, PAGE - 1, 2 * PAGE - 1, 2 * PAGE):
        begun(hand, f"r{index}", index).settle(str(index))
        hand.poll()
        hand.say("driver", Consumed("driver", (f"r{index}",)))
    assert [run.route for run in hand.registry.s.runs.values()] == ["driver"]
    assert [[index for index, _, _ in rows(hand, page)] for page in range(4)] == [
        [0, PAGE - 1],
        [PAGE, 2 * PAGE - 1],
        [2 * PAGE],
        [],
    ]
    assert hand.registry.maps.page("another", 0) == []


def test_an_end_and_its_row_are_one_transaction() -> None:
    hand = Hand(actors=4)
    claim(hand, "one")
    turn = begun(hand, "a", 0)
    turn.end("first")
    hand.fail_commit(turn.actor)
    assert (hand.state("a"), rows(hand)) == ("running", [])
    hand.adopt()
    turn.send_end()
    assert (hand.state("a"), rows(hand)) == ("succeeded", [(0, True, "first")])


# ---------------------------------------------------------------------- one try at a time


def test_a_name_belongs_to_one_try_until_its_map_is_done() -> None:
    hand = Hand(actors=2, drivers=("driver", "other"))
    assert claim(hand, "one").word == "ok"
    assert claim(hand, "one").word == "ok", "asked again"
    held = claim(hand, "two", "other")
    assert (held.word, held.claim, held.client, held.root) == ("busy", "one", "driver", root_of("driver"))
    hand.say("driver", MapDone("driver", "m", "done", "one"))
    assert claim(hand, "two", "other").word == "ok"
    hand.say("driver", MapDone("driver", "m", "", "one"))
    assert claim(hand, "three").word == "busy", "an end that is said again ends nobody else's"


def test_each_step_of_the_holder_is_counted() -> None:
    hand = Hand(actors=2, drivers=("driver", "other"))
    claim(hand, "one")
    before = claim(hand, "two", "other").heard
    hand.admit("a", **item("one", 0))
    assert claim(hand, "two", "other").heard == before + 1


def test_a_claim_outlives_the_registry() -> None:
    hand = Hand(actors=2, drivers=("driver", "other"))
    claim(hand, "one")
    hand.crash_registry()
    hand.adopt()
    assert claim(hand, "two", "other").word == "busy"
    assert claim(hand, "one").word == "ok"


def test_a_claim_whose_commit_failed_is_nobodys() -> None:
    hand = Hand(actors=2, drivers=("driver", "other"))
    hand.journal.fail_next = 1
    with pytest.raises(JournalFault):
        claim(hand, "one")
    hand.crash_registry()
    hand.adopt()
    assert claim(hand, "two", "other").word == "ok"


def test_the_next_try_begins_when_no_run_of_an_earlier_one_is_left() -> None:
    def schedule() -> list[str]:
        hand = Hand(actors=2, drivers=("driver", "other"))
        claim(hand, "one")
        turn = begun(hand, "a", 0)
        hand.say("driver", Bye("driver"))
        said = [claim(hand, "two", "other").word]
        turn.settle(state=RunState.CANCELLED)
        return [*said, claim(hand, "two", "other").word]

    assert schedule() == ["wait", "ok"]
    with without(Maps, "_runs_on", lambda self, map_id: False):
        assert schedule()[0] == "ok", "two runs of one item at a time"


def test_a_client_whose_lease_is_over_has_its_runs_stopped_and_then_the_name_is_free() -> None:
    hand = Hand(actors=2, drivers=("other",))
    hand.say("task", Join("task", root_of("task"), "w"))
    claim(hand, "one", "task")
    turn = begun(hand, "a", 0, by="task")
    hand.do(hand.registry.client_silent("task"))
    assert claim(hand, "two", "other").word == "wait"
    turn.settle("it had done it")
    assert hand.state("a") == "cancelled"
    assert claim(hand, "two", "other").word == "ok"


def test_a_lost_clients_runs_that_go_on_are_waited_for_and_taken_over() -> None:
    hand = Hand(actors=2, drivers=("other",))
    hand.say("task", Join("task", root_of("task"), "w", on_lost="keep"))
    claim(hand, "one", "task")
    turn = begun(hand, "a", 0, by="task")
    hand.do(hand.registry.client_silent("task"))
    assert claim(hand, "two", "other").word == "wait"
    turn.settle("it had done it")
    assert claim(hand, "two", "other").word == "ok"
    assert rows(hand) == [(0, True, "it had done it")]


def test_a_client_that_comes_back_when_its_map_was_taken_over_starts_nothing() -> None:
    def schedule() -> bool:
        hand = Hand(actors=2, drivers=("other",))
        hand.say("task", Join("task", root_of("task"), "w", on_lost="keep"))
        claim(hand, "one", "task")
        hand.do(hand.registry.client_silent("task"))
        claim(hand, "two", "other")
        assert hand.admit("mine", "other", **item("two", 0)).accepted
        return hand.admit("a", "task", **item("one", 0)).accepted

    assert not schedule()
    with without(Admitting, "_taken_over", lambda self, item: False):
        assert schedule(), "two runs of one item at a time"


def test_a_claim_of_a_turn_ends_with_the_turn() -> None:
    hand = Hand(actors=2, drivers=("driver",))
    turn = hand.start("a")
    assert claim(hand, "one", turn.actor, turn.activation).word == "ok"
    assert claim(hand, "two").word == "busy"
    turn.settle()
    assert claim(hand, "two").word == "ok"


def test_who_is_not_known_yet_waits() -> None:
    hand = Hand(actors=2)
    assert claim(hand, "one", "late").word == "wait"
    hand.say("late", Join("late", root_of("late"), "w"))
    assert claim(hand, "one", "late").word == "ok"


def test_a_new_boot_frees_all_names_and_keeps_what_was_done() -> None:
    hand = Hand(actors=2)
    hand.do(hand.registry.open_boot("first"))
    hand.say("driver", Join("driver", root_of("again"), "w"))
    hand.say("d2", Join("d2", root_of("d2"), "w"))
    claim(hand, "one", "d2")
    hand.do(hand.registry.register([*hand.registry.s.agents.values()], "b1", b"code"))
    hand.do(hand.registry.open_boot("second"))
    hand.say("d3", Join("d3", root_of("d3"), "w"))
    assert claim(hand, "two", "d3").word == "ok"


def test_each_try_of_a_named_map_leaves_a_summary_of_its_own_and_one_that_never_began_none() -> None:
    hand = Hand(actors=2)
    for name, text in (("one", "50 items"), ("two", ""), ("three", "51 items")):
        claim(hand, name)
        hand.say("driver", MapDone("driver", "m", text, name))
    hand.push()
    assert [(row.key, row.text) for row in hand.rows] == [("map:v1:m:one", "50 items"), ("map:v1:m:three", "51 items")]


def test_a_run_that_an_older_version_journaled_is_read() -> None:
    hand = Hand(actors=2)
    turn = hand.start("a")
    turn.settle("done")
    data = hand.journal.get("runs", "a")
    assert data is not None
    fields = pickle.loads(data)
    older = fields[: Run.FIELDS.index("item")]
    assert len(older) < len(fields)
    assert thaw(Run, pickle.dumps(older)).freeze() == data
    with pytest.raises(ValueError, match="newer version"):
        thaw(Run, pickle.dumps((*fields, "newer")))
