"""Which files are listed, and how summaries merge."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

import pytest

from openclaw_ray.agents.builtin.survey import combine
from openclaw_ray.agents.builtin.survey.analyse import analyse_bytes
from openclaw_ray.agents.builtin.survey.walk import list_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in (
        "b/x.py",
        "b/c/y.md",
        "a.txt",
        ".hidden",
        ".git/config",
        "b/__pycache__/x.pyc",
        "b/.venv/z.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "b" / "again.py").symlink_to("x.py")
    return tmp_path


def test_every_regular_file_is_listed_once_in_a_fixed_order(tree: Path) -> None:
    assert list_files(str(tree)).files == [".hidden", "a.txt", "b/x.py", "b/c/y.md"]


def test_what_is_passed_over_is_counted(tree: Path) -> None:
    assert list_files(str(tree)).skipped == {
        "symbolic links": 2,
        "hidden folders": 2,
        "__pycache__ folders": 1,
    }


def test_the_top_alone_tells_its_folders(tree: Path) -> None:
    top = list_files(str(tree), recursive=False)
    assert (top.files, top.folders) == ([".hidden", "a.txt"], ["b"])
    assert top.skipped == {"symbolic links": 1, "hidden folders": 1}


def test_top_and_folders_together_are_the_whole(tree: Path) -> None:
    top, whole = list_files(str(tree), recursive=False), list_files(str(tree))
    parts = [list_files(str(tree), folder) for folder in top.folders]
    assert sorted(top.files + [f for part in parts for f in part.files]) == sorted(whole.files)
    assert sum((part.skipped for part in parts), top.skipped) == whole.skipped


def test_special_files_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket has a short limit
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    listing = list_files(str(tmp_path))
    assert [(f["kind"], f["path"]) for f in listing.findings] == [("special", "pipe"), ("special", "socket")]
    assert listing.files == []


def test_a_folder_that_cannot_be_listed_is_a_finding(tmp_path: Path) -> None:
    assert [f["kind"] for f in list_files(str(tmp_path), "gone").findings] == ["unreadable"]


def test_names_that_are_not_utf8_are_listed(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / name).write_text("x")
    assert list_files(str(tmp_path)).files == [name]


def _leaf(name: str, content: bytes) -> combine.Summary:
    return combine.leaf(analyse_bytes(content, name=name))


LEAVES = [
    _leaf("a.py", b"def f():\n    pass\n"),
    _leaf("b.py", b"def g(): pass\n"),
    _leaf("c.md", b"# T\nTODO\n"),
    _leaf("d.bin", b"\0\0"),
    _leaf("e.py", b"def g(): pass\n"),
]


def test_merging_is_the_same_in_any_order_and_grouping() -> None:
    whole = combine.merge(LEAVES)
    for order in itertools.islice(itertools.permutations(LEAVES), 0, 120, 7):
        assert combine.merge(order) == whole
        assert combine.merge([combine.merge(order[:2]), combine.merge(order[2:]), combine.empty()]) == whole


def test_merging_leaves_its_parts_as_they_were() -> None:
    part = _leaf("b.py", b"x")
    before = repr(part)
    combine.merge([part, _leaf("c.py", b"x")])["contents"].clear()
    assert repr(part) == before


def test_the_report_has_the_totals_and_counts_copies_beyond_the_first() -> None:
    report = combine.report(combine.merge(LEAVES))
    assert report["totals"] == {
        "files": 5,
        "bytes": sum(leaf["figures"]["bytes"] for leaf in LEAVES),
        "lines": 6,
        "words": 12,
        "functions": 3,
        "classes": 0,
        "todos": 1,
        "duplicates": 1,
    }
    assert [row["files"] for row in report["duplicates"]] == [["b.py", "e.py"]]
    assert report["duplicates"][0]["wasted"] == len(b"def g(): pass\n")
    assert report["longestFunctions"][0] == {"path": "a.py", "name": "f", "line": 1, "lines": 2}
    assert report["largest"][0] == {"path": "a.py", "bytes": 18}
    assert [f["kind"] for f in report["findings"]] == ["binary"]


def test_lists_keep_only_the_longest() -> None:
    many = [_leaf(f"{n}.py", b"#" * n) for n in range(30)]
    assert [row["bytes"] for row in combine.merge(many)["largest"]] == list(range(29, 29 - combine.KEPT, -1))


def test_what_was_passed_over_is_one_finding_a_kind() -> None:
    summary = combine.merge(
        [combine.empty(skipped={"hidden folders": 2}), combine.empty(skipped={"hidden folders": 1})]
    )
    assert combine.report(summary)["findings"] == [
        {"kind": "skipped", "path": ".", "detail": "hidden folders, passed over", "count": 3}
    ]
