"""``demo`` on the real runtime and real input: every file once, the figures of an independent count."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from support.counting import count

from openclaw_ray.testing.leaks import ProcessMark

pytestmark = pytest.mark.ray

TREE = Path(ray.__file__).parent / "data"
"""Some hundred files of Python, in folders: what Ray itself has installed."""


@pytest.mark.long
def test_a_tree_of_some_hundred_files_is_surveyed_with_the_figures_of_an_independent_count() -> None:
    expected = count(TREE)
    assert expected["files"] >= 300
    mark = ProcessMark()
    environment = mark.environment()
    environment.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, "-m", "openclaw_ray.cli.main", "demo", str(TREE), "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)  # nothing but the report is on standard output
    assert report["totals"] == expected
    assert report["runtime"]["sessions"] >= expected["files"]
    mark.assert_none(timeout=10.0)
