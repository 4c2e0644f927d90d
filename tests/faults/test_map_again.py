"""A map with a name goes on where it stopped: interrupted, killed, with failures, by the command line.

The long form has 5,000 items.
"""

from __future__ import annotations

import json
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_tier import LONG, Driver

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.store.sqlite_journal import SqliteJournal

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(900 if LONG else 180, method="signal")]

ITEMS = 5_000 if LONG else 160
FAILING = 40
COMMAND = f"n={{}}; echo done >>side/$n; test -e healed || test $((n % {ITEMS // FAILING})) != 3"


@dataclass
class Tries:
    """Tries at one map, each in a process of its own.

    Attributes:
        succeeded: items that the journal knows as succeeded, and how often each had been run then.
    """

    folder: Path
    drivers: Callable[..., Driver]
    ray: str
    succeeded: dict[str, int]

    def begin(self, *options: str) -> Driver:
        """One more."""
        program = ("-m", "openclaw_ray.cli.main", "map", "--state", "state", "--map-id", "m", "--no-progress")
        work = ("--width", "6", "--lines", "items", "--shell", "--exec", COMMAND)
        return self.drivers(*program, *options, *work, RAY_ADDRESS=self.ray, cwd=str(self.folder))

    def runs(self, item: str) -> int:
        """How often an item has been run."""
        path = self.folder / "side" / item
        return len(path.read_text().splitlines()) if path.exists() else 0

    def check(self) -> None:
        """What had succeeded before has not been run again; what has succeeded since is looked at next time."""
        for item, runs in self.succeeded.items():
            assert self.runs(item) == runs, item
        journal = SqliteJournal(self.folder / "state" / "registry.sqlite", read_only=True)
        try:
            found = [pickle.loads(data) for data in journal.select("items", {}, limit=100_000)]
        finally:
            journal.close()
        ok = {str(index + 1) for index, _, _, state in found if state == RunState.SUCCEEDED}
        assert set(self.succeeded) <= ok
        self.succeeded = {item: self.runs(item) for item in ok}


def rows(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def ended(driver: Driver, code: int) -> tuple[list[dict[str, Any]], str]:
    """The rows that are left, and what was said of what was taken over."""
    assert driver.process.stdout is not None
    assert driver.process.stderr is not None
    left = rows(driver.process.stdout.readlines())
    errors = driver.process.stderr.read()
    assert driver.process.wait(timeout=60) == code, errors[-4000:]
    [said] = [line for line in errors.splitlines() if line.startswith("reused")]
    return left, said


@pytest.mark.long
def test_a_map_that_was_interrupted_killed_and_had_failures_is_completed_and_nothing_is_run_twice(
    drivers: Callable[..., Driver], ray_here: str, tmp_path: Path
) -> None:
    (tmp_path / "side").mkdir()
    (tmp_path / "items").write_text("".join(f"{n}\n" for n in range(1, ITEMS + 1)))
    tries = Tries(tmp_path, drivers, ray_here, {})

    first = tries.begin()
    for _ in range(ITEMS // 4):
        first.line()
    first.process.send_signal(signal.SIGINT)
    _, said = ended(first, 130)
    tries.check()
    interrupted = len(tries.succeeded)
    assert ITEMS // 6 <= interrupted < ITEMS
    assert said.startswith("reused 0, ran ")

    second = tries.begin()
    for _ in range(ITEMS // 2):
        second.line()
    second.process.kill()
    second.process.wait(timeout=30)
    tries.check()
    assert interrupted < len(tries.succeeded) < ITEMS

    found, said = ended(tries.begin(), 1)
    failed = [row["input"] for row in found if row["status"] != "ok"]
    assert len(failed) == FAILING
    assert [row["index"] for row in found] == list(range(ITEMS))
    reused = sum(row.get("reused", False) for row in found)
    assert said == f"reused {reused:,}, ran {ITEMS - reused:,}"
    assert reused >= len(tries.succeeded)
    tries.check()

    (tmp_path / "healed").touch()
    found, said = ended(tries.begin("--failed-only"), 0)
    assert said == f"reused {ITEMS - FAILING:,}, ran {FAILING}"
    assert [(row["index"], row["input"], row["status"]) for row in found] == [
        (n, str(n + 1), "ok") for n in range(ITEMS)
    ]
    assert [row["input"] for row in found if not row.get("reused")] == failed
    tries.check()
    assert len(tries.succeeded) == ITEMS
