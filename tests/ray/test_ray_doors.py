"""What Ray knows of the actors is what there is behind their doors, and no more is loaded by who holds a handle."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

from openclaw_ray.actors import doors


@pytest.mark.parametrize("door", [doors.RegistryActor, doors.HubActor, doors.Pool, doors.SessionActor])
def test_each_entry_of_a_door_is_a_method_behind_it(door: Any) -> None:
    module, _, name = door.place.partition(":")
    behind = getattr(importlib.import_module(module), name)
    assert behind.__name__ == door.__name__
    entries = {name: entry for name, entry in inspect.getmembers(door, inspect.isfunction) if not name.startswith("_")}
    assert entries
    for method, entry in entries.items():
        there = getattr(behind, method)
        assert inspect.iscoroutinefunction(there) is inspect.iscoroutinefunction(entry), method
        group = getattr(entry, "__ray_concurrency_group__", "")
        assert group in {"", *door.threads}, method


def test_a_door_loads_nothing_of_what_is_behind_it() -> None:
    code = "import sys, openclaw_ray.actors.doors; print(*(m for m in sys.modules if m.startswith('openclaw_ray.')))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(said) == ["openclaw_ray.actors", "openclaw_ray.actors.doors"]
