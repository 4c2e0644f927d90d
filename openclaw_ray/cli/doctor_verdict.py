"""What a check of `doctor` says, and figures that several of them go by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["FILES_BASE", "FILES_PER_SESSION", "Check", "Verdict", "size"]

FILES_PER_SESSION = 4
"""Descriptors that the raylet has for each session process: 3 were counted with Ray 2.60; the registry has 2.5."""
FILES_BASE = 256
"""Descriptors of a raylet or GCS before the first session: some 70 were counted."""


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    """As it should be."""
    WARN = "warn"
    """It works, and may not at full size."""
    FAIL = "fail"
    """Commands will fail until it is mended."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        name: what was looked at.
        verdict: how it is.
        detail: what was seen, with the figures.
        remedy: what to do; empty if nothing.
    """

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, object]:
        """JSON form."""
        return {"check": self.name, "verdict": self.verdict.value, "detail": self.detail, "remedy": self.remedy or None}


def size(size: int) -> str:
    """Bytes for people."""
    if size < 10 << 30:
        return f"{size >> 20:,} MB"
    return f"{size / (1 << 30):,.1f} GB"
