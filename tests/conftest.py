"""Fixtures of more than one tier, and which tests run beside each other. Ray is started by those who ask for it only.

Two test processes (``-n 2``): one takes ``tests/ray``, which shares one runtime, the other ``tests/faults``, which
kills processes of Ray clusters of its own; whichever is done first goes through the rest. ``-n 0`` is one process.
"""

from __future__ import annotations

import pytest
from support.runtimes import gate, mark, shared

__all__ = ["gate", "mark", "shared"]

_LONGEST_FIRST = ("ray", "faults")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each tier that needs Ray run whole, in one process, and before all others."""
    for item in items:
        tier = _tier(item)
        if tier in _LONGEST_FIRST:
            item.add_marker(pytest.mark.xdist_group(tier))
    items.sort(key=lambda item: (*_LONGEST_FIRST, "").index(_tier(item)))


def _tier(item: pytest.Item) -> str:
    folder = item.path.parent.name
    return folder if folder in _LONGEST_FIRST else ""
