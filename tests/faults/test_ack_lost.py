"""An acknowledgement that is lost between append and answer: what was written is there once (PROTOCOL.md 4.5, 7.4)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_tier import HERE, Driver

import openclaw_ray as oc

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]


def test_an_announce_whose_hub_dies_between_append_and_answer_is_there_once(
    drivers: Callable[..., Driver], tmp_path: Path
) -> None:
    died = tmp_path / "died"
    paths = [HERE / "dies_after_append", HERE, Path(oc.__file__).parent.parent]
    driver = drivers(
        str(HERE / "ack_driver.py"),
        str(tmp_path / "log"),
        PYTHONPATH=os.pathsep.join(map(str, paths)),
        DIES_AFTER_APPEND=str(died),
    )
    while not (line := driver.line()).startswith("{"):
        pass
    found = json.loads(line)
    assert died.exists(), "no hub died: nothing was tried"
    assert found["text"] == "rchild.0 rchild.1 rchild.2"
    announced = sorted(run for _, run, _ in found["rows"] if run is not None)
    assert [[run, "delivered"] for run in announced] == found["deliveries"]
    assert len(announced) == 3
    others = [row for row in found["rows"] if row[1] is None]
    assert len({tuple(row) for row in others}) == len(others)
