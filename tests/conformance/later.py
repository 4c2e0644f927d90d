"""A case about rules that do not exist yet: it is listed as skipped, and counts as nothing."""

from __future__ import annotations

__all__ = ["NotYetRun"]


class NotYetRun(Exception):
    """Raised by an adapter, with the subject."""
