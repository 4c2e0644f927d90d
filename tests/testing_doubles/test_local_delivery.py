"""Deliveries that fail, wait, and are asked for again, over the real agents' code on threads (SPEC.md F6, F7)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import FakeClock, LocalRuntime, eventually

BROKEN = "OPENCLAW_RAY_TEST_BROKEN"


@oc.agent(spawns=False)
def quick(turn: oc.SyncTurn) -> str:
    return f"did {turn.text}"


class Fragile(oc.Agent):
    """Yields over one child, and cannot be constructed after that for as long as a file is there."""

    def __init__(self) -> None:
        if os.path.exists(os.environ[BROKEN]):
            raise ConnectionError("the database is away")

    def on_turn(self, turn: oc.SyncTurn) -> str:
        if turn.kind == "task":
            Path(os.environ[BROKEN]).write_text("")
            turn.spawn("it", agent_id="quick")
            turn.yield_()
        return ", ".join(done.text for done in turn.completions)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(BROKEN, str(tmp_path / "broken"))
    return tmp_path / "broken"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rt(broken: Path, clock: FakeClock) -> Iterator[LocalRuntime]:
    config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    with LocalRuntime(agents=[quick, Fragile], config=config, clock=clock) as runtime:
        yield runtime


def child(rt: LocalRuntime) -> dict[str, Any]:
    [row] = rt.runs(agent="quick")
    return row


def refused(rt: LocalRuntime, times: int) -> dict[str, Any]:
    """The child's row, once that many attempts have been answered with a refusal."""

    def row() -> dict[str, Any]:
        found = child(rt)
        assert found.get("deliveryAttempts") == times
        return found

    return eventually(row, 20)


def test_a_session_that_could_not_be_started_to_hear_it_hears_it_when_it_can(
    rt: LocalRuntime, clock: FakeClock, broken: Path
) -> None:
    receipt = rt.spawn("go", "fragile")
    result = rt.result(receipt, timeout=20)
    assert (result.status, result.error and result.error.cause) == ("error", "start_failed")
    row = refused(rt, 1)
    assert row["deliveryStatus"] == "pending"
    assert "could not be started to hear it: Fragile() raised ConnectionError" in row["deliveryError"]
    broken.unlink()
    clock.advance(5)
    eventually(lambda: child(rt)["deliveryStatus"] == "delivered", 20)
    [newest, *_] = rt.runs(session=receipt.session_key)
    eventually(lambda: rt.run(newest["runId"])["text"] == "did it", 20)
    told = [each for each in rt.history(receipt.session_key) if each.get("type") == "task_completion"]
    assert [each["runId"] for each in told] == [row["runId"]]


def test_after_four_refusals_it_is_suspended_and_delivered_when_asked_for(
    rt: LocalRuntime, clock: FakeClock, broken: Path
) -> None:
    rt.result(rt.spawn("go", "fragile"), timeout=20)
    for attempt, wait in enumerate((5, 10, 20), 1):
        refused(rt, attempt)
        clock.advance(wait)
    row = refused(rt, 4)
    assert (row["deliveryStatus"], row["suspendedAt"] > 0) == ("suspended", True)
    warned = [event for event in rt._events_after(0, 0.0) if event.kind == "warning"]
    assert any("suspended after 4 attempts" in (event.text or "") for event in warned)
    broken.unlink()
    assert rt.redeliver(row["runId"]) in ("pending", "delivered")
    eventually(lambda: child(rt)["deliveryStatus"] == "delivered", 20)
    for change in (rt.redeliver, rt.dismiss):
        with pytest.raises(oc.DeliveryRefused, match="its end was delivered"):
            change(row["runId"])


def test_a_suspended_one_can_be_dismissed(rt: LocalRuntime, clock: FakeClock) -> None:
    rt.result(rt.spawn("go", "fragile"), timeout=20)
    for attempt, wait in enumerate((5, 10, 20), 1):
        refused(rt, attempt)
        clock.advance(wait)
    run_id = refused(rt, 4)["runId"]
    assert rt.dismiss(run_id) == "discarded"
    assert rt.dismiss(run_id) == "discarded"
    with pytest.raises(oc.DeliveryRefused, match="it was dismissed"):
        rt.redeliver(run_id)
