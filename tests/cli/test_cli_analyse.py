"""What the survey says of a file, held against definitions written out here a second time."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from openclaw_ray.agents.builtin.survey import analyse
from openclaw_ray.agents.builtin.survey.analyse import (
    analyse_bytes,
    analyse_file,
    count_lines,
    markdown_headings,
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\r\nb\r\n", 2), ("\n\n\nx", 4)],
)
def test_a_line_counts_by_its_newline_and_an_unterminated_last_one_counts_too(text: str, lines: int) -> None:
    assert count_lines(text) == lines


def test_figures_of_a_python_file() -> None:
    source = b"""import os  # TODO: less
class A:
    @property
    def one(self):
        def inner():
            pass
        return inner

    async def two(self): return "FIXME XXX"
TODOS = 1  # not a mark of its own, and todo is not either
"""
    found = analyse_bytes(source, name="a/b.py")
    assert found["bytes"] == len(source)
    assert found["sha256"] == hashlib.sha256(source).hexdigest()
    assert (found["lines"], found["words"]) == (10, len(source.decode().split()))
    assert found["todos"] == 3
    assert found["classes"] == 1
    assert found["functions"] == [
        {"name": "A.one", "line": 4, "lines": 4},
        {"name": "A.one.inner", "line": 5, "lines": 2},
        {"name": "A.two", "line": 9, "lines": 1},
    ]
    assert found["findings"] == []


def test_only_py_files_have_functions() -> None:
    assert analyse_bytes(b"def f(): pass\n", name="a.txt")["functions"] == []


@pytest.mark.parametrize(
    "source",
    [b"def f(:\n", b"x = (\n", b"\xef\xbb\xbf\xef\xbb\xbfx", b"(" * 10_000, b"x = 1\n" * 2000 + b"\0"],
    ids=["syntax", "open bracket", "two marks", "nested too deep", "late NUL"],
)
def test_python_that_does_not_parse_is_a_finding_and_its_text_still_counts(source: bytes) -> None:
    found = analyse_bytes(source, name="bad.py")
    assert [finding["kind"] for finding in found["findings"]] == ["syntax"]
    assert found["lines"] >= 1
    assert found["functions"] == []


def test_deeply_nested_python_is_read_without_recursion() -> None:
    source = "x = " + "+".join(["1"] * 5_000) + "\ndef f(): pass\n"
    found = analyse_bytes(source.encode(), name="deep.py")
    assert [span["name"] for span in found["functions"]] in (["f"], [])
    assert bool(found["functions"]) != bool(found["findings"])


def test_an_invalid_escape_in_a_file_warns_nobody() -> None:
    assert analyse_bytes(rb"x = '\d'", name="warns.py")["findings"] == []


def test_a_byte_order_mark_is_no_syntax_error() -> None:
    found = analyse_bytes(b"\xef\xbb\xbfdef f(): pass\n", name="bom.py")
    assert found["findings"] == []
    assert len(found["functions"]) == 1


@pytest.mark.parametrize("content", [b"text\0more", b"caf\xe9", b"x" * 100 + b"\xff\xfe"])
def test_a_nul_byte_early_on_or_other_than_utf8_is_binary(content: bytes) -> None:
    found = analyse_bytes(content, name="x.py")
    assert [finding["kind"] for finding in found["findings"]] == ["binary"]
    assert (found["lines"], found["words"], found["bytes"]) == (0, 0, len(content))
    assert found["sha256"] == hashlib.sha256(content).hexdigest()


def test_headings_in_fenced_code_are_not_headings() -> None:
    text = "# One\n\n```sh\n# comment\n~~~\n```\n## Two ##\n~~~\n# no\n```\n~~~\n"
    text += "#no space\n####### seven\n   ### Three\n#\n"
    assert [(h["level"], h["text"], h["line"]) for h in markdown_headings(text)] == [
        (1, "One", 1),
        (2, "Two", 7),
        (3, "Three", 14),
        (1, "", 15),
    ]


def test_a_fence_that_is_never_closed_holds_the_rest() -> None:
    assert markdown_headings("````\n# a\n```\n# b\n") == []


def test_a_file_that_is_gone_is_a_finding(tmp_path: Path) -> None:
    found = analyse_file(str(tmp_path / "gone"), name="gone")
    assert [(f["kind"], f["path"]) for f in found["findings"]] == [("unreadable", "gone")]
    assert (found["bytes"], found["sha256"]) == (0, None)


def test_a_pipe_is_a_finding_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [f["kind"] for f in analyse_file(str(tmp_path / "pipe"))["findings"]] == ["special"]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    found = analyse_file(str(tmp_path / "link"))
    assert [f["kind"] for f in found["findings"]] == ["unreadable"]
    assert found["bytes"] == 0


def test_a_very_long_file_is_hashed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyse, "LARGEST_TEXT", 100)
    monkeypatch.setattr(analyse, "_CHUNK", 64)
    content = b"word\n" * 50
    (tmp_path / "long.py").write_bytes(content)
    found = analyse_file(str(tmp_path / "long.py"))
    assert [f["kind"] for f in found["findings"]] == ["large"]
    assert (found["bytes"], found["sha256"]) == (250, hashlib.sha256(content).hexdigest())


def test_this_package_counts_the_same_by_other_means() -> None:
    for path in sorted(Path(analyse.__file__).parents[3].rglob("*.py")):
        found = analyse_file(str(path))
        text = path.read_text(encoding="utf-8")
        assert found["findings"] == []
        assert found["lines"] == len(text.splitlines())
        code = re.sub(r'"""(?s:.*?)"""', "", text)
        assert found["classes"] == len(re.findall(r"^ *class \w+", code, re.MULTILINE)), path
        assert len(found["functions"]) == len(re.findall(r"^ *(?:async )?def \w+", code, re.MULTILINE)), path
