"""``demo`` on the fake runtime: its figures against an independent count, its report, its exit codes."""

from __future__ import annotations

import collections
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.counting import count

import openclaw_ray
from openclaw_ray.agents.builtin.survey import agents
from openclaw_ray.cli.demo import runtime_figures, spread
from openclaw_ray.cli.main import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for number in range(7):
        (root / f"part{number}" / "sub").mkdir(parents=True)
        (root / f"part{number}" / "code.py").write_text(f"class A:\n    def f{number}(self): pass  # TODO\n")
        (root / f"part{number}" / "sub" / "same.md").write_text("# Same\n")
    (root / "top.txt").write_text("one two\nthree")
    (root / "bad.py").write_text("def f(:\n")
    (root / "data.bin").write_bytes(b"\0\1\2")
    (root / os.fsdecode(b"caf\xe9")).write_bytes(b"\0")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("hidden")
    (root / "loop").symlink_to(root)
    return root


def demo_json(path: Path | None, capfdbinary: pytest.CaptureFixture[bytes], code: int = 0) -> dict[str, Any]:
    assert run(["demo", *([] if path is None else [str(path)]), "--json", "--no-progress"]) == code
    report: dict[str, Any] = json.loads(capfdbinary.readouterr().out)
    return report


def test_every_file_is_read_once_and_the_totals_are_those_of_an_independent_count(
    started: list[SimpleNamespace], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    report = demo_json(folder, capfdbinary)
    assert report["totals"] == count(folder)
    assert report["totals"]["duplicates"] == 6
    assert list(report) == [
        "totals",
        "largest",
        "longestFunctions",
        "duplicates",
        "findings",
        "folders",
        "runtime",
    ]
    calls = collections.Counter(call["agent_id"] for call in started[0].runtime.calls)
    assert calls == {"main": 1, "surveyor": 1, "reader": 8}
    assert report["runtime"]["sessions"] == 1 + 8 + report["totals"]["files"]
    assert [row["folder"] for row in report["folders"]] == [".", *(f"part{n}" for n in range(7))]
    assert sum(row["files"] for row in report["folders"]) == report["totals"]["files"]


def test_without_a_path_the_package_itself_is_surveyed(
    started: list[SimpleNamespace], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    report = demo_json(None, capfdbinary)
    assert report["totals"] == count(Path(openclaw_ray.__file__).parent)


def test_what_cannot_be_read_is_a_finding_and_no_failure(
    started: list[SimpleNamespace], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    findings = {(f["kind"], f["path"]): f for f in demo_json(folder, capfdbinary)["findings"]}
    assert ("syntax", "bad.py") in findings
    assert ("binary", "data.bin") in findings
    assert ("binary", os.fsdecode(b"caf\xe9")) in findings


def test_what_is_passed_over_is_told(
    started: list[SimpleNamespace], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    findings = demo_json(folder, capfdbinary)["findings"]
    assert [(f["detail"], f["count"]) for f in findings if f["kind"] == "skipped"] == [
        ("hidden folders, passed over", 1),
        ("symbolic links, passed over", 1),
    ]


def test_a_session_that_fails_is_a_finding_and_exit_code_1(
    started: list[SimpleNamespace],
    folder: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = agents.analyse_file

    def fails(path: str, *, name: str) -> Any:
        if name.endswith("top.txt"):
            raise MemoryError("too much")
        return whole(path, name=name)

    monkeypatch.setattr(agents, "analyse_file", fails)
    report = demo_json(folder, capfdbinary, code=1)
    assert {"kind": "session", "path": "top.txt", "detail": "error: too much"} in report["findings"]
    assert report["totals"]["files"] == count(folder)["files"] - 1


def test_an_empty_folder_has_a_report(
    started: list[SimpleNamespace], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert set(demo_json(tmp_path, capfdbinary)["totals"].values()) == {0}


def test_the_demo_brings_the_settings_it_needs_unless_the_user_names_some(
    started: list[SimpleNamespace], tmp_path: Path
) -> None:
    run(["demo", str(tmp_path)])
    settings = started[0].config["agents"]["defaults"]["subagents"]
    assert settings == {"allowAgents": ["*"], "maxChildrenPerAgent": 20, "maxConcurrent": 20}


@pytest.mark.parametrize("width", [*range(1, 40), 400])
def test_a_width_is_spread_over_folders_and_files(width: int) -> None:
    folders, files = spread(width)
    assert width <= folders * files < width + folders


def test_the_width_bounds_both_levels(started: list[SimpleNamespace], folder: Path) -> None:
    assert run(["demo", str(folder), "--width", "6"]) == 0
    widths = {call["agent_id"]: call["width"] for call in started[0].runtime.calls}
    assert widths == {"main": None, "surveyor": 2, "reader": 3}


def test_the_tables_name_what_was_found(
    started: list[SimpleNamespace], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", str(folder)]) == 0
    captured = capsys.readouterr()
    for text in (
        "Survey of",
        "Largest files",
        "Longest functions",
        "Duplicate files",
        "Findings",
        "peak memory 100 MB",
    ):
        assert text in captured.out
    assert "caf\ufffd" in captured.out
    assert "part3" in captured.out
    assert "surveyor part3/: succeeded (2 of 2 done)" in captured.err
    assert "main root: succeeded" in captured.err


def test_figures_that_the_runtime_does_not_tell_are_zero() -> None:
    figures = runtime_figures(object(), wall=0.0, start=0.0)
    assert figures.to_json()["sessions"] == 0
    assert figures.rate == 0.0
