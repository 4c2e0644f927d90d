"""Edges of `core.liveness` and `core.archive_rules` that the conformance cases leave open."""

from __future__ import annotations

import pytest

from openclaw_ray.core.archive_rules import archive_due
from openclaw_ray.core.liveness import (
    LIVE_MS,
    RECENT_MS,
    Liveness,
    RecoveryAction,
    RunFacts,
    active_count,
    effective_end,
    is_stale,
    liveness,
    pending_descendants,
    recovery_action,
    too_many_resumes,
)

NOW = 1_760_000_000_000


def test_a_proven_run_is_live_at_any_age() -> None:
    ancient = RunFacts(NOW - 100 * LIVE_MS, proven=True)
    assert liveness(ancient, NOW) is Liveness.LIVE
    assert liveness(RunFacts(NOW - 100 * LIVE_MS), NOW) is Liveness.STALE


def test_recent_ends_after_thirty_minutes() -> None:
    assert liveness(RunFacts(0, 0, NOW - RECENT_MS), NOW) is Liveness.RECENT
    assert liveness(RunFacts(0, 0, NOW - RECENT_MS - 1), NOW) is Liveness.OLD


def test_a_long_timeout_and_a_minute() -> None:
    three = 3 * 3_600_000
    assert not is_stale(NOW - three - 60_000, None, three, NOW)
    assert is_stale(NOW - three - 60_001, None, three, NOW)
    assert not is_stale(NOW - LIVE_MS, None, 1_000, NOW), "a short timeout does not shorten it"


def test_an_end_is_never_moved_by_a_run_that_has_not_started() -> None:
    assert effective_end(None, 5_000, NOW) == NOW
    assert effective_end(NOW - 1_000, 5_000, NOW) == NOW


def test_a_ring_of_sessions_ends() -> None:
    ring = [RunFacts(NOW, NOW, session="a", controller="b"), RunFacts(NOW, NOW, session="b", controller="a")]
    assert pending_descendants("a", ring, NOW) == 2
    assert active_count("a", ring, NOW) == 1


@pytest.mark.parametrize(("ago", "too_many"), [((), False), ((0,), False), ((0, 120_000), True), ((0, 120_001), False)])
def test_the_rate_gate(ago: tuple[int, ...], too_many: bool) -> None:
    assert too_many_resumes(ago) is too_many


def test_a_stale_run_is_never_resumed_and_a_tombstone_is_left_alone() -> None:
    assert recovery_action(interrupted=True, stale=True, accepted_ago=(1, 2)) is RecoveryAction.FINALIZE
    assert recovery_action(interrupted=False, stale=True) is RecoveryAction.PRUNE
    assert recovery_action(interrupted=False, stale=False) is RecoveryAction.NONE
    assert recovery_action(interrupted=True, stale=True, tombstoned=True) is RecoveryAction.NONE


@pytest.mark.parametrize(
    ("minutes", "cleanup", "ago", "announced", "due"),
    [
        (60, "keep", 3_600_000, True, True),
        (60, "keep", 3_600_000, False, False),
        (0, "keep", 10**12, True, False),
        (60, "delete", 0, True, True),
        (0, "delete", 0, True, True),
        (60, "delete", 0, False, False),
        (60, "delete", None, True, False),
    ],
)
def test_archive(minutes: int, cleanup: str, ago: int | None, announced: bool, due: bool) -> None:
    got = archive_due(archive_after_minutes=minutes, cleanup=cleanup, ended_ago=ago, announced=announced)
    assert got is due


def test_a_session_that_nothing_is_bound_to_is_archived_like_a_run() -> None:
    assert archive_due(archive_after_minutes=1, cleanup="keep", ended_ago=60_000, announced=True, mode="session")
