"""What ``openclaw-ray top`` shows: rows of runs and figures in, a picture out. Pure.

1. A run's parent is the run of the session that requested it: the one that is in a turn, else the oldest. Where that
   has ended, or was not read, the run is a top of its own; so is the oldest of a ring.
2. Siblings are in order: those with the most un-ended runs below them first, then those at work, the oldest first,
   then what is queued, as it stands in the queue.
3. Where there is room for some rows only, inner runs have it before leaves, the upper ones first, and leaves take turns
   between their parents: no wide map hides another tree. What is left out is counted under its nearest parent shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openclaw_ray.core.results import camel_dict

__all__ = ["Hidden", "Look", "Picture", "TopRow", "fit", "picture"]

STATES = ("running", "paused", "queued")
"""Of un-ended runs, in the order in which siblings stand."""


@dataclass(frozen=True, slots=True)
class Look:
    """A runtime at one moment.

    Attributes:
        at: seconds since the epoch.
        runs: rows of its un-ended runs, as `Runtime.runs` gives them.
        stats: `RuntimeStats.to_json` of about the same moment.
        more: there are runs beyond these.
    """

    at: float
    runs: Sequence[Mapping[str, Any]]
    stats: Mapping[str, Any]
    more: bool = False


@dataclass(frozen=True, slots=True)
class TopRow:
    """One un-ended run.

    Attributes:
        level: how many runs are above it in the tree.
        run_id, session_key, agent_id, requester_key: what it is, and who asked for it.
        text: its newest progress text, else its label, its task name or its task.
        state: ``queued``, ``running`` or ``paused``.
        depth: of its session.
        age_ms: milliseconds since it was asked for.
        place: in the queue, 1 for the first; `None` of one that is not queued.
        waiting_for: what it waits for, with the figures.
        node, pid: where its process is, once it has one.
        below: un-ended runs below it, by state.
    """

    level: int
    run_id: str
    session_key: str
    agent_id: str
    requester_key: str | None
    text: str
    state: str
    depth: int
    age_ms: int
    place: int | None
    waiting_for: str | None
    node: str | None
    pid: int | None
    below: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return camel_dict({name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class Hidden:
    """Runs that there is no room for, under the row before which they would be.

    Attributes:
        level: of the rows that they would be.
        counts: how many there are, by state.
    """

    level: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """A runtime for people.

    Attributes:
        at: seconds since the epoch.
        counts: un-ended runs by state.
        rows: all of them, parents before children.
        more: there are runs that were not read.
        stats: the figures, as they came.
        started_per_second: sessions started a second since the look before; `None` if that cannot be told.
    """

    at: float
    counts: Mapping[str, int]
    rows: tuple[TopRow, ...]
    more: bool
    stats: Mapping[str, Any]
    started_per_second: float | None

    def to_json(self) -> dict[str, Any]:
        """JSON form: all rows, and the figures but for ``waiting``, which the rows have."""
        figures = {name: value for name, value in self.stats.items() if name != "waiting"}
        return camel_dict(
            {
                "at": round(self.at * 1000),
                "runs": dict(self.counts),
                "started_per_second": self.started_per_second,
                "stats": figures,
                "more": self.more,
                "rows": [row.to_json() for row in self.rows],
            }
        )


def picture(look: Look, before: Look | None = None) -> Picture:
    """What a look shows; rates are from ``before`` to it."""
    counts = Counter(dict.fromkeys(STATES, 0))
    counts.update(str(run["state"]) for run in look.runs)
    return Picture(look.at, dict(counts), tuple(_rows(look)), look.more, look.stats, _rate(look, before))


def fit(rows: Sequence[TopRow], lines: int) -> list[TopRow | Hidden]:
    """The rows that ``lines`` lines have room for, each `Hidden` being one of them.

    Args:
        rows: of a picture, parents before children.
        lines: at least 1.
    """
    if len(rows) <= lines:
        return list(rows)
    parents = _parents(rows)
    ranked = sorted(range(len(rows)), key=_ranks(rows, parents).__getitem__)
    room = lines
    while True:
        shown = _shown(rows, parents, set(ranked[:room]))
        if len(shown) <= lines or room == 0:
            return shown
        room = max(0, room - (len(shown) - lines))


# ---------------------------------------------------------------------- the tree


def _rows(look: Look) -> Iterator[TopRow]:
    runs = {str(run["runId"]): run for run in look.runs}
    above = _above(runs)
    children: dict[str | None, list[str]] = {}
    for run_id in runs:
        children.setdefault(above.get(run_id), []).append(run_id)
    below = _below(runs, above, children)
    waiting = look.stats.get("waiting") or {}
    places = {run_id: number for number, run_id in enumerate(waiting, start=1)}
    for siblings in children.values():
        siblings.sort(key=lambda run_id: _order(runs[run_id], below[run_id], places))
    stack = [(0, run_id) for run_id in reversed(children.get(None, []))]
    while stack:
        level, run_id = stack.pop()
        run = runs[run_id]
        place = places.get(run_id) if run["state"] == "queued" else None
        why = waiting.get(run_id) or run.get("waitingFor") if run["state"] == "queued" else run.get("pauseReason")
        yield TopRow(
            level,
            run_id,
            str(run["sessionKey"]),
            str(run.get("agentId") or ""),
            run.get("requesterKey"),
            str(run.get("progress") or run.get("label") or run.get("taskName") or run.get("task") or ""),
            str(run["state"]),
            int(run.get("depth") or 0),
            max(0, round(look.at * 1000 - run.get("createdAt", look.at * 1000))),
            place,
            why,
            run.get("node"),
            run.get("pid"),
            dict(below[run_id]),
        )
        stack.extend((level + 1, child) for child in reversed(children.get(run_id, [])))


def _above(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """For each run that has one, its parent; without rings."""
    of_session: dict[str, str] = {}
    for run_id in sorted(runs, key=lambda run_id: (runs[run_id]["state"] == "queued", _age(runs[run_id]))):
        of_session.setdefault(str(runs[run_id]["sessionKey"]), run_id)
    above: dict[str, str] = {}
    for run_id in sorted(runs, key=lambda run_id: _age(runs[run_id])):
        parent = of_session.get(str(runs[run_id].get("requesterKey")))
        if parent is not None and parent != run_id:
            above[run_id] = parent
    settled: set[str] = set()
    for first in sorted(runs, key=lambda run_id: _age(runs[run_id])):
        path: dict[str, None] = {}
        at: str | None = first
        while at is not None and at not in settled:
            if at in path:  # a ring: its oldest run is the top
                ring = list(path)[list(path).index(at) :]
                del above[min(ring, key=lambda run_id: _age(runs[run_id]))]
                break
            path[at] = None
            at = above.get(at)
        settled.update(path)
    return above


def _below(
    runs: Mapping[str, Mapping[str, Any]], above: Mapping[str, str], children: Mapping[str | None, list[str]]
) -> dict[str, Counter[str]]:
    """For each run, the un-ended ones below it, by state."""
    downwards = list(children.get(None, []))
    for run_id in downwards:  # grows while it is walked
        downwards.extend(children.get(run_id, []))
    below: dict[str, Counter[str]] = {run_id: Counter() for run_id in runs}
    for run_id in reversed(downwards):
        parent = above.get(run_id)
        if parent is not None:
            below[parent].update(below[run_id])
            below[parent][str(runs[run_id]["state"])] += 1
    return below


def _order(
    run: Mapping[str, Any], below: Counter[str], places: Mapping[str, int]
) -> tuple[int, int, int, float, str]:
    state = str(run["state"])
    place = places.get(str(run["runId"]), len(places) + 1) if state == "queued" else 0
    return (-below.total(), STATES.index(state), place, *_age(run))


def _age(run: Mapping[str, Any]) -> tuple[float, str]:
    """Rises from the oldest to the newest."""
    return float(run.get("createdAt") or 0), str(run["runId"])


# ---------------------------------------------------------------------- room


def _parents(rows: Sequence[TopRow]) -> list[int]:
    """For each row the number of its parent's, −1 for a top."""
    parents: list[int] = []
    path: list[int] = []
    for number, row in enumerate(rows):
        del path[row.level :]
        parents.append(path[-1] if path else -1)
        path.append(number)
    return parents


def _ranks(rows: Sequence[TopRow], parents: Sequence[int]) -> list[tuple[int, int, int]]:
    """Who has room first; a parent always before its children."""
    born: Counter[int] = Counter()
    ranks = []
    for number, (row, parent) in enumerate(zip(rows, parents, strict=True)):
        ranks.append((0, row.level, number) if row.below else (1, born[parent], number))
        born[parent] += not row.below
    return ranks


def _shown(rows: Sequence[TopRow], parents: Sequence[int], chosen: set[int]) -> list[TopRow | Hidden]:
    """The chosen rows in the order of the tree; what is not is counted at the end of its nearest chosen parent."""
    hidden: dict[int, Counter[str]] = {}
    nearest = [-1] * len(rows)
    for number, parent in enumerate(parents):
        nearest[number] = number if number in chosen else nearest[parent] if parent >= 0 else -1
        if number not in chosen:
            hidden.setdefault(nearest[number], Counter())[rows[number].state] += 1
    out: list[TopRow | Hidden] = []
    open_rows: list[int] = []

    def close(level: int) -> None:
        while len(open_rows) > level:
            left = open_rows.pop()
            if left in hidden:
                out.append(Hidden(rows[left].level + 1, dict(hidden[left])))

    for number in sorted(chosen):
        close(rows[number].level)
        out.append(rows[number])
        open_rows.append(number)
    close(0)
    if -1 in hidden:
        out.append(Hidden(0, dict(hidden[-1])))
    return out


def _rate(look: Look, before: Look | None) -> float | None:
    if before is None or look.at <= before.at:
        return None
    if look.stats.get("registryIncarnation") != before.stats.get("registryIncarnation"):
        return None  # it counts anew
    started = look.stats.get("sessionsStarted", 0) - before.stats.get("sessionsStarted", 0)
    return None if started < 0 else round(started / (look.at - before.at), 2)
