"""Turns of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_port import FakePort
from turn_drive import Drive

from openclaw_ray.agents.run_turn import TurnRunner


@pytest.fixture(params=["async", "sync"])
def drive(request: pytest.FixtureRequest) -> Iterator[Drive]:
    """Runs a body as a turn of either kind."""
    drive = Drive(request.param)
    yield drive
    assert drive.runner.loop.tidy() == []
    drive.runner.loop.close()


@pytest.fixture
def port() -> FakePort:
    """A port that accepts everything and ends nothing."""
    return FakePort()


@pytest.fixture
def runner() -> Iterator[TurnRunner]:
    """A runner whose loop is closed, and nothing may be left on it."""
    runner = TurnRunner()
    yield runner
    assert runner.loop.tidy() == []
    runner.loop.close()
