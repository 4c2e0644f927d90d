"""What a store says of how its profiles have done: when one rests, and what a success or a failure changes.

The fields are OpenClaw's: ``lastUsed``, ``cooldownUntil``, ``disabledUntil``, ``disabledReason``, ``errorCount``,
``failureCounts``, ``lastFailureAt``; times in milliseconds since the epoch. Others stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

__all__ = ["FailureReason", "Usage", "after_failure", "after_success", "usage_of"]

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


class FailureReason(StrEnum):
    """Why a provider did not take a credential, or did not serve it."""

    AUTH = "auth"
    """It was refused."""
    BILLING = "billing"
    """Nothing is left on the account: it rests for hours."""
    FORMAT = "format"
    """The request was not understood."""
    RATE_LIMIT = "rate_limit"
    """Too many requests."""
    TIMEOUT = "timeout"
    """No answer of the provider; a run's own deadline is none of its business (SCENARIOS.md 35)."""
    UNKNOWN = "unknown"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Usage:
    """One profile's, in milliseconds since the epoch; 0 is never."""

    last_used: int = 0
    rests_until: int = 0
    failed_at: int = 0


def usage_of(entries: Iterable[Any]) -> Usage:
    """What several stores say of one profile together: of each moment the later one counts."""
    known = [one for one in entries if isinstance(one, Mapping)]
    rests = (_moment(one, name) for one in known for name in ("cooldownUntil", "disabledUntil"))
    used, failed = (max((_moment(one, name) for one in known), default=0) for name in ("lastUsed", "lastFailureAt"))
    return Usage(used, max(rests, default=0), failed)


def _moment(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(0, int(value))


def after_success(entry: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The entry of a profile that has just worked: nothing is held against it any more."""
    over = ("cooldownUntil", "disabledUntil", "disabledReason", "failureCounts")
    return {**{name: value for name, value in entry.items() if name not in over}, "lastUsed": now, "errorCount": 0}


def after_failure(
    entry: Mapping[str, Any], now: int, reason: FailureReason, cooldown: float | None = None
) -> dict[str, Any]:
    """The entry of a profile that has just failed.

    It rests for ``cooldown`` seconds, else for 1, 5, 25, then 60 minutes, as it fails again within a day; for want of
    money for 5 hours, then 10, 20, 24.
    """
    again = now - _moment(entry, "lastFailureAt") < _DAY
    counts = entry.get("failureCounts")
    before = dict(counts) if again and isinstance(counts, Mapping) else {}
    errors = (_moment(entry, "errorCount") if again else 0) + 1
    of_reason = (_moment(before, reason.value)) + 1
    changed: dict[str, Any] = {
        **entry,
        "errorCount": errors,
        "failureCounts": {**before, reason.value: of_reason},
        "lastFailureAt": now,
    }
    if reason is FailureReason.BILLING:
        rest = min(_DAY, 5 * _HOUR * 2 ** min(of_reason - 1, 8))
        changed["disabledReason"] = reason.value
    else:
        rest = min(_HOUR, _MINUTE * 5 ** min(errors - 1, 8))
    if cooldown is not None:
        rest = round(cooldown * 1000)
    name = "disabledUntil" if reason is FailureReason.BILLING else "cooldownUntil"
    # an explicit word may shorten a rest, a guess never does
    changed[name] = now + rest if cooldown is not None else max(now + rest, _moment(entry, name))
    return changed
