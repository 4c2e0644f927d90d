"""SPEC.md H6: when an ended session is archived by itself."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.archive_rules import archive_delay, archive_due

HOUR = 3_600_000


def due(**changed: Any) -> bool:
    facts: dict[str, Any] = {
        "archive_after_minutes": 60,
        "cleanup": "keep",
        "ended_ago": HOUR,
        "announced": True,
        "mode": "run",
        "bound": False,
    }
    return archive_due(**{**facts, **changed})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"ended_ago": HOUR - 1}, False),
        ({"ended_ago": None}, False),
        ({"announced": False}, False),
        ({"ended_ago": 10 * HOUR, "announced": False}, False),
        ({"archive_after_minutes": 0, "ended_ago": 100 * HOUR}, False),
        ({"archive_after_minutes": 0.01, "ended_ago": 59_999}, False),
        ({"archive_after_minutes": 0.01, "ended_ago": 60_000}, True),
        ({"archive_after_minutes": 1, "ended_ago": 60_000}, True),
        ({"cleanup": "delete", "ended_ago": 0}, True),
        ({"cleanup": "delete", "ended_ago": 0, "archive_after_minutes": 0}, True),
        ({"cleanup": "delete", "ended_ago": 0, "announced": False}, False),
        ({"cleanup": "delete", "ended_ago": None}, False),
        ({"mode": "session", "bound": True, "ended_ago": 10 * HOUR}, False),
        ({"mode": "session", "bound": False}, True),
    ],
)
def test_when_it_is_due(changed: dict[str, Any], expected: bool) -> None:
    assert due(**changed) is expected


@pytest.mark.parametrize(
    ("minutes", "cleanup", "seconds"),
    [(60, "keep", 3600.0), (1, "keep", 60.0), (0, "keep", None), (0, "delete", 0.0), (60, "delete", 0.0)],
)
def test_the_delay(minutes: int, cleanup: str, seconds: float | None) -> None:
    assert archive_delay(minutes, cleanup) == seconds
