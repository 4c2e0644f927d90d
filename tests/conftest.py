"""Fixtures of more than one tier. Ray is started by those who ask for it only."""

from __future__ import annotations

from support.runtimes import gate, mark, shared

__all__ = ["gate", "mark", "shared"]
