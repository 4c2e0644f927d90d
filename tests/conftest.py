"""Fixtures of more than one tier, and which tests run beside each other. Ray is started by those who ask for it only.

Three test processes (``-n 3``): ``tests/ray``, which shares one runtime; ``tests/faults``, which kills processes of Ray
clusters of its own; and all the others, which want a process in which Ray has never been. ``-n 0`` is one process.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from support.runtimes import gate, mark, shared

__all__ = ["gate", "mark", "shared"]

_TIERS = ("ray", "faults")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Give each tier that needs Ray a process of its own, and begin with those: they take the longest.

    A wrapper comes before the hook that reads the groups, which is registered after this one, and so called first.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_tier(item) or "others"))
    items.sort(key=lambda item: (*_TIERS, "").index(_tier(item)))
    yield


def _tier(item: pytest.Item) -> str:
    folder = item.path.parent.name
    return folder if folder in _TIERS else ""
