"""Whom the runtime ends when a node is short of memory: the one session that is to blame, or nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_ray.actors.memory_watch import memory_here
from openclaw_ray.core.starving import Memory, choose, limit_of

GB = 1 << 30
TOTAL = 16 * GB
LIMIT = limit_of(TOTAL, 0.95)


def test_the_limit_is_below_rays_own_by_a_twentieth_or_a_gigabyte() -> None:
    assert limit_of(10 * GB, 0.95) == pytest.approx(9.0 * GB, abs=2)
    assert limit_of(100 * GB, 0.95) == pytest.approx(94 * GB, abs=2)


@pytest.mark.parametrize(
    ("used", "sizes", "chosen"),
    [
        (LIMIT, {"a": 8 * GB}, None),
        (LIMIT + GB, {"a": 2 * GB, "b": GB // 10}, "a"),
        (LIMIT + GB, {"a": GB, "b": 3 * GB}, "b"),
        (LIMIT + GB, {"a": GB // 2, "b": GB // 2}, None),  # it would not help: others have the memory
        (LIMIT + 1, {"a": GB // 10}, None),  # a small one is not to blame
        (LIMIT + GB, {}, None),
    ],
)
def test_the_largest_is_ended_if_that_helps_and_it_is_to_blame(
    used: int, sizes: dict[str, int], chosen: str | None
) -> None:
    found = choose(Memory(used, TOTAL), LIMIT, sizes)
    assert (found and found[0]) == chosen
    if found is not None:
        assert "low on memory" in found[1]
        assert "16.00 GB" in found[1]


def test_a_container_is_a_node_of_its_own(tmp_path: Path) -> None:
    machine = memory_here(tmp_path)
    if machine is None:
        pytest.skip("this system does not tell")
    assert 0 < machine.used < machine.total
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 150000\n")
    assert memory_here(tmp_path) == Memory(550_000, 1_000_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_here(tmp_path).total == machine.total  # type: ignore[union-attr]
