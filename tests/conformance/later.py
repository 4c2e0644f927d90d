"""A case about something that the library itself says is not in effect yet: it is listed, and counts as nothing."""

from __future__ import annotations

__all__ = ["NotYetRun"]


class NotYetRun(Exception):
    """Raised by an adapter with the library's own reason."""
