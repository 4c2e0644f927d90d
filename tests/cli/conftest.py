"""The command line on a fake runtime: what it starts is kept for the tests to look at."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import stand_ins

import openclaw_ray

stand_ins.install()

from fake_runtime import FakeRuntime  # noqa: E402

from openclaw_ray.cli import opening  # noqa: E402
from openclaw_ray.cli.opening import LiveRuntime, Place  # noqa: E402


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """One entry for each runtime that a command started: ``runtime``, ``place``, ``config``, ``app_dir``."""
    entries: list[SimpleNamespace] = []

    def start(agents: list[object], place: Place, **options: object) -> LiveRuntime:
        runtime = FakeRuntime(agents)
        entries.append(SimpleNamespace(runtime=runtime, place=place, **options))
        return runtime

    monkeypatch.setattr(opening, "start_runtime", start)
    return entries


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """Signal handlers, the wake-up descriptor, ``sys.path`` and imported app files are as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    modules, path = set(sys.modules), list(sys.path)
    yield
    assert {number: signal.getsignal(number) for number in before} == before
    assert signal.set_wakeup_fd(-1) == -1
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin is not None and os.sep + "pytest-" in origin:
            del sys.modules[name]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Command line of a process that runs ``openclaw-ray`` on the fake runtime."""
    monkeypatch.setenv("PYTHONPATH", str(Path(openclaw_ray.__file__).parent.parent))
    return [sys.executable, str(Path(__file__).parent / "fake_runtime.py")]
