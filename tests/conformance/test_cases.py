"""Every conformance case is one test, named by the case's id.

The cases are taken from the folder in ``OPENCLAW_RAY_CASES``, else from ``../shared/cases`` beside the
repository, else from ``tests/cases``, which is a copy of the former. A miss of a case that is not firm is
reported (printed, and a property of the test), not failed.
"""

from __future__ import annotations

import filecmp
import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray import config

from .adapters import ADAPTERS, config_output
from .expand import expand
from .match import misfit

_REPOSITORY = Path(__file__).resolve().parents[2]
_SHARED = _REPOSITORY.parent / "shared" / "cases"
_COPY = _REPOSITORY / "tests" / "cases"


def _folder() -> Path:
    if named := os.environ.get("OPENCLAW_RAY_CASES"):
        return Path(named)
    return _SHARED if _SHARED.is_dir() else _COPY


_FILES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_folder().glob("*.json"))
}
_CASES = [
    pytest.param(case, group, id=case["id"]) for group, file in _FILES.items() for case in file["cases"]
]


@pytest.mark.parametrize(("case", "group"), _CASES)
def test_case(case: dict[str, Any], group: str, record_property: Any) -> None:
    unordered = _FILES[group]["unordered"]
    got = ADAPTERS[group](_input(case, group))
    patterns = [case["expected"], *case.get("also_accept", ())]
    misses = [misfit(expand(pattern), got, unordered) for pattern in patterns]
    if None in misses:
        return
    text = f"{case['id']}: {misses[0]} ({case.get('note', 'no note')})"
    if case.get("firm", True):
        pytest.fail(text)
    record_property("soft_miss", text)
    print(f"not firm, missed: {text}")


def _input(case: dict[str, Any], group: str) -> Any:
    """The input, with a universe that it only names written out."""
    given = expand(case["input"])
    universes = _FILES[group].get("universes", {})
    return {**given, "universe": universes.get(given["universe"], given["universe"])} if universes else given


_CONFIGS = sorted((_folder() / "configs").glob("*.expected.json"))
_IMPLEMENTED = {"agents", "auth", "channels", "messages", "ray", "session", "tools"}
"""Sections that the loader checks; a tolerated path below one of them need not be listed (section 3, *config*)."""


@pytest.mark.parametrize("expectation", [pytest.param(path, id=path.name.split(".")[0]) for path in _CONFIGS])
def test_whole_config(expectation: Path) -> None:
    expected = json.loads(expectation.read_text(encoding="utf-8"))
    name = expectation.name.removesuffix(".expected.json")
    (file,) = (path for path in expectation.parent.glob(f"{name}.json*"))
    got = config_output(config.load(file, env={}))
    assert expected["ok"] is True
    assert misfit(expand(expected["effective"]), got["effective"], ["agents.ids"], "effective") is None
    for path in expected["tolerated"]:
        covered = any(_overlap(path, one) for one in got["tolerated"])
        assert covered or path.split(".")[0] in _IMPLEMENTED, path


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def test_there_are_whole_configs() -> None:
    assert len(_CONFIGS) >= 7


def test_every_group_is_run_and_has_cases() -> None:
    assert set(ADAPTERS) == set(_FILES)
    assert all(file["cases"] for file in _FILES.values())


def test_case_ids_are_unique() -> None:
    ids = [case["id"] for file in _FILES.values() for case in file["cases"]]
    assert len(ids) == len(set(ids))


@pytest.mark.skipif(not _SHARED.is_dir(), reason="../shared/cases is not there")
def test_the_copy_is_identical_to_the_shared_cases() -> None:
    shared, copy = (
        sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
        for root in (_SHARED, _COPY)
    )
    assert shared == copy
    _, different, broken = filecmp.cmpfiles(_SHARED, _COPY, [str(path) for path in shared], shallow=False)
    assert not different
    assert not broken
