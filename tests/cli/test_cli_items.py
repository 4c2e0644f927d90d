"""Items from lines and patterns."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from openclaw_ray.cli import item_source
from openclaw_ray.cli.exits import CommandError
from openclaw_ray.cli.item_source import glob_files, read_lines, until_stopped


def lines_of(tmp_path: Path, content: bytes) -> list[str]:
    (tmp_path / "in").write_bytes(content)
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    try:
        return list(read_lines(fd))
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n\n  \n\t\r\n", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b"  a b \t\n", ["  a b \t"]),
        (b"a\rb\n", ["a\rb"]),
        ("é\u2028x\x85y\n".encode(), ["é\u2028x\x85y"]),
        (b"caf\xe9\n", [os.fsdecode(b"caf\xe9")]),
    ],
)
def test_only_the_terminator_goes_and_blank_lines_are_no_items(
    content: bytes, lines: list[str], tmp_path: Path
) -> None:
    assert lines_of(tmp_path, content) == lines


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_lines_are_whole_wherever_reads_are_cut(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_source, "_CHUNK", chunk)
    assert lines_of(tmp_path, "ä\r\n\nbcd\nefghijk".encode()) == ["ä", "bcd", "efghijk"]


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_source, "LONGEST_LINE", 1 << 20)
    with pytest.raises(CommandError, match="line 2 of the input is longer than 1 MB"):
        lines_of(tmp_path, b"a\n" + b"x" * (2 << 20))


def test_a_line_is_handed_on_before_the_next_one_is_there() -> None:
    reader, writer = os.pipe()
    lines = read_lines(reader)
    os.write(writer, b"first\n")
    assert next(lines) == "first"
    os.write(writer, b"second")
    os.close(writer)
    assert list(lines) == ["second"]
    os.close(reader)


def test_a_source_that_waits_ends_when_it_is_told_to() -> None:
    reader, writer = os.pipe()
    stop_reader, stop_writer = os.pipe()
    seen: list[str] = []
    waiting = threading.Thread(target=lambda: seen.extend(read_lines(reader, stop_fd=stop_reader)))
    waiting.start()
    os.write(writer, b"one\ntwo")
    os.write(stop_writer, b"\0")
    waiting.join(30)
    assert not waiting.is_alive()
    assert seen in ([], ["one", "two"])  # what is there already may still be taken
    for fd in (reader, writer, stop_reader, stop_writer):
        os.close(fd)


def test_what_cannot_be_read_says_so() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(CommandError, match="cannot be read"):
        list(read_lines(writer))
    os.close(writer)


def test_patterns_give_regular_files_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "deep/er/c.txt", "d.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("folder.txt").mkdir()
    assert list(glob_files(["*.txt", "**/*.md"])) == ["a.txt", "b.txt", "d.md"]
    assert list(glob_files(["**/*.txt"])) == ["a.txt", "b.txt", "deep/er/c.txt"]


def test_items_end_with_the_stop() -> None:
    seen: list[str] = []
    for item in until_stopped(["a", "b", "c"], lambda: len(seen) == 2):
        seen.append(item)
    assert seen == ["a", "b"]
