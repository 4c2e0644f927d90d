"""Fixtures of more than one tier, and which tests run beside each other. Ray is started by those who ask for it only.

Three test processes (``-n 3``): ``tests/ray``, which shares one runtime; ``tests/faults``, which kills processes of Ray
clusters of its own; and all the others, which want a process in which Ray has never been. ``-n 0`` is one process, in
which the others come first.

What is marked ``long`` runs only if it is asked for: by ``OPENCLAW_RAY_LONG=1``, or ``-m long``.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings
from support.runtimes import gate, mark, shared

__all__ = ["gate", "mark", "shared"]

_OTHERS = "tests/others"

settings.register_profile("openclaw", deadline=None)  # how long one example takes says nothing on a busy machine
settings.load_profile("openclaw")


def _tier(nodeid: str) -> str:
    """The folder of a test that needs Ray, else `_OTHERS`."""
    tier = "/".join(nodeid.split("/")[:2])
    return tier if tier in ("tests/ray", "tests/faults") else _OTHERS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What wants no Ray in its process comes before what starts one; the long form is left out."""
    items.sort(key=lambda item: _tier(item.nodeid) != _OTHERS)
    if os.environ.get("OPENCLAW_RAY_LONG") == "1" or "long" in (config.getoption("markexpr") or ""):
        return
    out = [item for item in items if item.get_closest_marker("long")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each tier to one process, whole and in its order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByTier(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _tier(nodeid)

    return ByTier(config, log)
