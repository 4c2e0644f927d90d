"""What is measured for dashboards: names, and a tally that the registry counts into.

1. Names and tags are those of OpenClaw's Prometheus metrics, where it has the same thing. Ray puts ``ray_`` before
   them.
2. Tags are bounded: words of ours, agents' and tools' names. Never a session key, a run id, a label or a text of
   somebody's; what is no known word counts as ``other``.
3. `Tally` is there only while somebody collects. To count is an addition to a dict; a sample beyond `SAMPLES` a look is
   not kept: counters have all, histograms then a part of it.

Pure: recording is `openclaw_ray.actors.metrics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "BLOCKED",
    "BOUNDARIES",
    "LANES",
    "LANE_SIZE",
    "LANE_WAIT",
    "METRICS",
    "RUN_COMPLETED",
    "RUN_DURATION",
    "SAMPLES",
    "SESSIONS",
    "SESSION_STATE",
    "TURN_CREATED",
    "WORKERS",
    "WORKERS_RETIRED",
    "WORKERS_STARTED",
    "Kind",
    "Metric",
    "Taken",
    "Tally",
    "lane_word",
    "retired_word",
    "risen",
]

Tags = tuple[str, ...]

SAMPLES = 256
"""Samples of one histogram and one set of tags that are kept between two looks."""
MOST_SETS = 512
"""Sets of tags of one metric; further ones count as ``other``."""


class Kind(StrEnum):
    """What a number is."""

    COUNTER = "counter"
    """Only rises; begins anew with each incarnation of the registry."""
    GAUGE = "gauge"
    """As it is now."""
    HISTOGRAM = "histogram"
    """Samples, in seconds."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name as it is registered, and the names of its tags, in the order of their values."""

    name: str
    kind: Kind
    tags: Tags
    text: str


BOUNDARIES = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""Seconds, of all histograms."""

RUN_COMPLETED = "openclaw_run_completed_total"
RUN_DURATION = "openclaw_run_duration_seconds"
LANE_SIZE = "openclaw_queue_lane_size"
LANE_WAIT = "openclaw_queue_lane_wait_seconds"
SESSION_STATE = "openclaw_session_state_total"
TURN_CREATED = "openclaw_session_turn_created_total"
SESSIONS = "openclaw_liveness_sessions"
BLOCKED = "openclaw_tool_execution_blocked_total"
WORKERS = "openclaw_worker_count"
WORKERS_STARTED = "openclaw_worker_started_total"
WORKERS_RETIRED = "openclaw_worker_retired_total"

METRICS = (
    Metric(RUN_COMPLETED, Kind.COUNTER, ("outcome", "trigger"), "Runs that have ended, by result and by origin."),
    Metric(RUN_DURATION, Kind.HISTOGRAM, ("outcome", "trigger"), "Seconds from a run's first start to its end."),
    Metric(LANE_SIZE, Kind.GAUGE, ("lane",), "Runs that wait for a slot or a process."),
    Metric(LANE_WAIT, Kind.HISTOGRAM, ("lane",), "Seconds from a run's admission to its first start."),
    Metric(SESSION_STATE, Kind.COUNTER, ("state",), "Changes of state of runs, by the new one."),
    Metric(TURN_CREATED, Kind.COUNTER, ("agent", "trigger"), "Turns that were started, by what they were started for."),
    Metric(SESSIONS, Kind.GAUGE, ("state",), "Sessions that are queued, running, or waiting in a process."),
    Metric(BLOCKED, Kind.COUNTER, ("tool", "denied_reason"), "Calls that a policy or limit refused."),
    Metric(WORKERS, Kind.GAUGE, ("state",), "Session processes."),
    Metric(WORKERS_STARTED, Kind.COUNTER, (), "Session processes that came up."),
    Metric(WORKERS_RETIRED, Kind.COUNTER, ("reason",), "Session processes that were not used again."),
)
"""All of them."""

_RETIRED = {
    "idle": "idle",
    "used once": "used_once",
    "evicted for another class": "evicted",
    "not clean after a turn": "not_clean",
    "it did not answer": "no_answer",
    "did not end within its grace": "forced",
    "the credentials in its reach have changed": "credentials",
}
LANES = ("main", "subagent", "nested", "map", "none")
"""Kinds of lanes; ``none`` is what no lane binds."""


def lane_word(lane: str) -> str:
    """The kind of a lane: each spawning session has one of its own, whose name has its key."""
    kind = lane.partition(":")[0]
    return kind if kind in LANES else "other" if kind else "none"


def retired_word(why: str) -> str:
    """Why a process was not used again, in a word."""
    return _RETIRED.get(why, "other")


@dataclass(frozen=True, slots=True)
class Taken:
    """What was counted since the last look: (metric, values of its tags) to how much, or to samples in seconds."""

    counts: Mapping[tuple[str, Tags], float]
    samples: Mapping[tuple[str, Tags], list[float]]


@dataclass(slots=True)
class Tally:
    """Counts and samples since the last look; under the registry's lock."""

    _counts: dict[tuple[str, Tags], float] = field(default_factory=dict)
    _samples: dict[tuple[str, Tags], list[float]] = field(default_factory=dict)
    _sets: dict[str, set[Tags]] = field(default_factory=dict)

    def count(self, metric: str, *tags: str, by: float = 1) -> None:
        """Add to a counter."""
        key = self._key(metric, tags)
        self._counts[key] = self._counts.get(key, 0) + by

    def sample(self, metric: str, *tags: str, seconds: float) -> None:
        """Add a sample to a histogram; a clock that was set back makes it 0."""
        kept = self._samples.setdefault(self._key(metric, tags), [])
        if len(kept) < SAMPLES:
            kept.append(max(0.0, seconds))

    def take(self) -> Taken:
        """All since the last look, once."""
        taken = Taken(self._counts, self._samples)
        self._counts, self._samples = {}, {}
        return taken

    def _key(self, metric: str, tags: Tags) -> tuple[str, Tags]:
        known = self._sets.setdefault(metric, set())
        if tags not in known:
            if len(known) >= MOST_SETS:
                return metric, ("other",) * len(tags)
            known.add(tags)
        return metric, tags


def risen(now: Mapping[str, int], before: dict[str, int]) -> Iterator[tuple[str, int]]:
    """By how much counts that only rise have risen; ``before`` becomes ``now``. Counts that begin anew count from 0."""
    for word, count in now.items():
        more = count - before.get(word, 0)
        if more:
            yield word, more if more > 0 else count
            before[word] = count
