"""What is measured: the registry's tally and gauges, and what Ray is given of them (no Ray here)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from rules.hand import Hand

from openclaw_ray.actors.metrics import Recorder, runtime_tag
from openclaw_ray.core import metrics as m
from openclaw_ray.core.protocol.measuring import gauges
from openclaw_ray.core.protocol.messages import Blocked


class Library:
    """``ray.util.metrics`` with what it was given: by name and tags, numbers in order."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str, tuple[tuple[str, str], ...], float]] = []
        self.made: list[str] = []

    def __getattr__(self, kind: str) -> Any:
        library = self

        class One:
            def __init__(self, name: str, description: str, tag_keys: tuple[str, ...], **more: Any) -> None:
                assert description
                assert ("boundaries" in more) == (kind == "Histogram")
                library.made.append(name)
                self.name, self.keys = name, tag_keys

            def give(self, value: float, tags: dict[str, str]) -> None:
                assert set(tags) == set(self.keys)
                library.given.append((kind, self.name, tuple(sorted(tags.items())), value))

            inc = observe = set = give

        return One


def counted(hand: Hand) -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], list[float]]]:
    assert hand.registry.s.tally is not None
    taken = hand.registry.s.tally.take()
    return ({(n, *t): v for (n, t), v in taken.counts.items()}, {(n, *t): v for (n, t), v in taken.samples.items()})


def measured(**more: Any) -> Hand:
    hand = Hand(**more)
    hand.registry.s.tally = m.Tally()
    return hand


def test_a_run_is_counted_from_its_queue_to_its_end() -> None:
    hand = measured(actors=1)
    turn = hand.start("r")
    hand.clock.advance(3.0)
    turn.end()
    hand.step(turn.actor)
    counts, samples = counted(hand)
    assert counts[m.RUN_COMPLETED, "ok", "spawn"] == 1
    assert counts[m.TURN_CREATED, "w", "task"] == 1
    assert {key[1]: value for key, value in counts.items() if key[0] == m.SESSION_STATE} == {
        "queued": 1, "running": 1, "succeeded": 1,
    }  # fmt: skip
    assert samples[m.RUN_DURATION, "ok", "spawn"] == [3.0]
    ((lane, waited),) = [(key[1], value) for key, value in samples.items() if key[0] == m.LANE_WAIT]
    assert (lane in m.LANES, waited) == (True, [0.0])
    assert counted(hand) == ({}, {})


def test_without_somebody_who_collects_nothing_is_kept() -> None:
    hand = Hand(actors=1)
    hand.start("r").end()
    assert hand.registry.s.tally is None


def test_what_a_limit_refuses_and_what_a_rule_denies_is_blocked() -> None:
    hand = measured(actors=1, max_children=1)
    parent = hand.start("parent")
    receipts = parent.spawn_all(["a", "b"])
    assert [receipt.accepted for receipt in receipts] == [True, False]
    hand.say(parent.actor, Blocked("parent", parent.activation, "exec", "sub-agent"))
    hand.say(parent.actor, Blocked("parent", "an older one", "exec", "sub-agent"))
    counts, _ = counted(hand)
    blocked = {key[1:]: value for key, value in counts.items() if key[0] == m.BLOCKED}
    assert blocked == {("sessions_spawn", "maxChildrenPerAgent"): 1, ("exec", "sub-agent"): 1}


def test_gauges_have_a_value_for_each_word_so_that_none_stays_behind() -> None:
    hand = Hand(actors=1)
    before = {(name, *tags) for name, tags, _ in gauges(hand.registry.s)}
    hand.start("r")
    now = {(name, *tags): value for name, tags, value in gauges(hand.registry.s)}
    assert set(now) == before
    assert (now[m.SESSIONS, "running"], now[m.SESSIONS, "queued"], now[m.WORKERS, "bound"]) == (1, 0, 1)
    assert sum(value for (name, *_), value in now.items() if name == m.LANE_SIZE) == 0


def test_ray_is_given_known_metrics_with_all_their_tags_and_no_keys() -> None:
    hand = measured(actors=1, max_children=1)
    turn = hand.start("r")
    turn.spawn_all(["a", "b"])
    turn.end()
    hand.step(turn.actor)
    library = Library()
    recorder = Recorder("run-0123abcd", library)
    tally = hand.registry.s.tally
    assert tally is not None
    tally.count(m.WORKERS_RETIRED, m.retired_word("idle"))
    for _ in range(2):
        recorder.record(tally.take(), list(gauges(hand.registry.s)))
    assert Counter(library.made).most_common(1)[0][1] == 1
    names = {metric.name for metric in m.METRICS}
    assert {name for _, name, _, _ in library.given} <= names
    values = {value for _, _, tags, _ in library.given for _, value in tags}
    assert "unnamed" in values
    assert not [value for value in values if ":" in value or value in ("r", "a", "b")]


def test_tags_are_bounded() -> None:
    tally = m.Tally()
    for number in range(m.MOST_SETS + 10):
        tally.count(m.BLOCKED, f"tool{number}", "rule")
    for _ in range(m.SAMPLES + 10):
        tally.sample(m.LANE_WAIT, "main", seconds=-1.0)
    taken = tally.take()
    assert taken.counts[m.BLOCKED, ("other", "other")] == 10
    assert len(taken.counts) == m.MOST_SETS + 1
    assert taken.samples[m.LANE_WAIT, ("main",)] == [0.0] * m.SAMPLES


@pytest.mark.parametrize(
    ("lane", "word"),
    [("main", "main"), ("subagent:agent:w:main", "subagent"), ("nested:agent:w:x", "nested"), ("", "none"),
     ("map:1f", "map"), ("agent:w:main", "other")],
)  # fmt: skip
def test_a_lanes_tag_has_no_key(lane: str, word: str) -> None:
    assert m.lane_word(lane) == word


def test_made_up_names_of_runtimes_are_no_tags() -> None:
    assert (runtime_tag("run-0123abcd"), runtime_tag("nightly")) == ("unnamed", "nightly")


def test_counts_that_begin_anew_go_on() -> None:
    before: dict[str, int] = {}
    assert list(m.risen({"idle": 3}, before)) == [("idle", 3)]
    assert list(m.risen({"idle": 5, "other": 1}, before)) == [("idle", 2), ("other", 1)]
    assert list(m.risen({"idle": 5}, before)) == []
    assert list(m.risen({"idle": 2}, before)) == [("idle", 2)]
