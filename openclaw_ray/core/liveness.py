"""Live, stale, recent: what an un-ended run counts for, and what a start makes of an interrupted one (SPEC.md H3, H5).

1. Un-ended is not alive. A run counts until its age is above max(2 h, timeout + 60 s); above that it is *stale*, unless
   a live executor proves it. Its age counts from the first start of its session.
2. A stale run is left out of the children cap, of what is pending below a session, and of lists; what lives below it
   still counts.
3. An ended run is *recent* for 30 minutes.
4. After a restart a fresh interrupted run is resumed, but more than two accepted resumes within two minutes are a loop:
   the session gets a *tombstone* and is never resumed by itself again until that is cleared.

Times are integer milliseconds since the epoch; ``now`` is always given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "LIVE_MS",
    "RECENT_MS",
    "RESUMES_MOST",
    "RESUME_WINDOW_MS",
    "TIMEOUT_SLACK_MS",
    "Liveness",
    "RecoveryAction",
    "RunFacts",
    "active_count",
    "effective_end",
    "is_stale",
    "liveness",
    "pending_descendants",
    "recovery_action",
    "too_many_resumes",
]

LIVE_MS = 2 * 60 * 60 * 1000
"""Age up to which any un-ended run counts as live."""
TIMEOUT_SLACK_MS = 60 * 1000
"""What one with a long timeout gets beyond that timeout."""
RECENT_MS = 30 * 60 * 1000
"""How long an ended run is recent."""
RESUME_WINDOW_MS = 2 * 60 * 1000
"""The window of the rate gate."""
RESUMES_MOST = 2
"""Accepted resumes of one session within that window."""


class Liveness(StrEnum):
    """Where a run stands in time. Source: SPEC.md H3."""

    LIVE = "live"
    """Un-ended, and young enough or proven."""
    STALE = "stale"
    """Un-ended, but too old for that to mean anything."""
    RECENT = "recent"
    """Ended within the last 30 minutes."""
    OLD = "old"
    """Ended before."""


class RecoveryAction(StrEnum):
    """What a start makes of an un-ended run of before. Source: SPEC.md H5."""

    NONE = "none"
    """Nothing: it was not interrupted, or is not to be touched."""
    RESUME = "resume"
    """One synthetic message."""
    FINALIZE = "finalize"
    """It ends with an error; its requester hears of it."""
    PRUNE = "prune"
    """Its record is dropped."""
    TOMBSTONE = "tombstone"
    """It ends with an error, and its session is not resumed again."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What these rules look at.

    Attributes:
        session, controller: the run's session key, and that of the session whose child it is.
        session_started: first start of the session, if the run is a later one of it.
        timeout_ms: run timeout, 0 for none.
        cleaned: an ended run's end was heard of and cleaned up after.
        proven: a live executor is known to have it.
    """

    created: int
    started: int | None = None
    ended: int | None = None
    timeout_ms: int = 0
    session: str = ""
    controller: str = ""
    session_started: int | None = None
    cleaned: bool = False
    proven: bool = False


def is_stale(created: int, started: int | None, timeout_ms: int, now: int, session_started: int | None = None) -> bool:
    """Whether an un-ended run is older than max(2 h, timeout + 60 s) (1)."""
    since = session_started or started or created
    longest = max(LIVE_MS, timeout_ms + TIMEOUT_SLACK_MS if timeout_ms > 0 else 0)
    return now - since > longest


def liveness(run: RunFacts, now: int) -> Liveness:
    """Where a run stands (1, 3)."""
    if run.ended is not None:
        return Liveness.RECENT if now - run.ended <= RECENT_MS else Liveness.OLD
    if run.proven or not is_stale(run.created, run.started, run.timeout_ms, now, run.session_started):
        return Liveness.LIVE
    return Liveness.STALE


def effective_end(started: int | None, timeout_ms: int, reported: int) -> int:
    """When a run ended: a late report does not move it past its deadline, which counts from the start (SPEC.md H2)."""
    if started is None or timeout_ms <= 0:
        return reported
    return min(reported, started + timeout_ms)


def active_count(session: str, runs: Iterable[RunFacts], now: int) -> int:
    """Direct children of a session that count against its ``maxChildrenPerAgent`` (2): live ones, and those that have
    ended or gone stale with something pending below them."""
    known = list(runs)
    return sum(
        1
        for run in known
        if run.controller == session
        and (liveness(run, now) is Liveness.LIVE or pending_descendants(run.session, known, now) > 0)
    )


def pending_descendants(session: str, runs: Iterable[RunFacts], now: int) -> int:
    """Runs anywhere below a session that are live, or ended and not cleaned up after (2)."""
    return sum(1 for run in _below(session, list(runs)) if _is_pending(run, now))


def _is_pending(run: RunFacts, now: int) -> bool:
    return not run.cleaned if run.ended is not None else liveness(run, now) is Liveness.LIVE


def _below(session: str, runs: Sequence[RunFacts]) -> Iterator[RunFacts]:
    seen = {session}
    level = [session]
    while level:
        children = [run for run in runs if run.controller in level]
        yield from children
        level = [run.session for run in children if run.session not in seen]
        seen.update(level)


def too_many_resumes(accepted_ago: Iterable[int]) -> bool:
    """Whether one more resume would be too much (4). ``accepted_ago``: milliseconds since each accepted one."""
    return sum(1 for ago in accepted_ago if ago <= RESUME_WINDOW_MS) >= RESUMES_MOST


def recovery_action(
    *, interrupted: bool, stale: bool, accepted_ago: Iterable[int] = (), tombstoned: bool = False
) -> RecoveryAction:
    """What policy ``resume`` makes of an un-ended run (4).

    Args:
        interrupted: it was at work when the runtime went down.
        stale: see `is_stale`.
        accepted_ago: see `too_many_resumes`.
        tombstoned: its session is not to be resumed again.
    """
    if tombstoned:
        return RecoveryAction.NONE
    if stale:
        return RecoveryAction.FINALIZE if interrupted else RecoveryAction.PRUNE
    if not interrupted:
        return RecoveryAction.NONE
    return RecoveryAction.TOMBSTONE if too_many_resumes(accepted_ago) else RecoveryAction.RESUME
