"""What is in one file, as a plain dict. Pure: a path goes in, no session is needed.

The figures, exactly:

* ``bytes``: length of the content; ``sha256`` is its hash in hex. A file that cannot be read has 0 bytes and
  no hash.
* ``lines``: number of ``\\n``, plus one if the last line is unterminated and nonempty.
* ``words``: whitespace-separated tokens of the decoded text (`str.split`).
* ``todos``: how often ``TODO``, ``FIXME`` or ``XXX`` stands as a word of its own, in capitals.
* ``functions``: every ``def`` and ``async def`` of a ``.py`` file, anywhere, methods and nested ones
  included; its length counts the lines from ``def`` to its last statement, decorators not included.
* ``classes``: every ``class`` statement of a ``.py`` file, anywhere.
* ``headings``: ``#`` headings of a ``.md`` or ``.markdown`` file; those in fenced code are not headings.

A file is *binary* if it has a NUL byte in its first 8 KB or is not UTF-8; of it, and of one over 64 MB, only
bytes and hash are told. Whatever cannot be read or parsed is a finding, never an exception.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import stat
import threading
import warnings
from typing import NotRequired, TypedDict

__all__ = [
    "LARGEST_TEXT",
    "Analysis",
    "Finding",
    "FunctionSpan",
    "Heading",
    "analyse_bytes",
    "analyse_file",
    "count_lines",
    "markdown_headings",
]

_parsing = threading.Lock()
"""CPython 3.11 counts the depth of trees that are being built in one place for all threads, and raises if two mix."""

LARGEST_TEXT = 64 << 20
"""Bytes; a longer file is hashed but not read as text."""

_BINARY_PREFIX = 8192
_CHUNK = 1 << 20
_TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")


class Finding(TypedDict):
    """Something worth telling about a file; ``count`` where it stands for several."""

    kind: str
    path: str
    detail: str
    count: NotRequired[int]


class FunctionSpan(TypedDict):
    """One function: its dotted name within the file, first line, and number of lines."""

    name: str
    line: int
    lines: int


class Heading(TypedDict):
    """One Markdown heading."""

    level: int
    text: str
    line: int


class Analysis(TypedDict):
    """All that is known about one file; the module docstring defines the figures."""

    path: str
    bytes: int
    sha256: str | None
    lines: int
    words: int
    todos: int
    functions: list[FunctionSpan]
    classes: int
    headings: list[Heading]
    findings: list[Finding]


def analyse_file(path: str, *, name: str | None = None) -> Analysis:
    """Read the file at ``path`` and tell what is in it.

    Symbolic links are not followed and special files (pipes, sockets, devices) are not read: both are
    findings.

    Args:
        path: where the file is.
        name: the path to report; ``path`` if not given.
    """
    shown = path if name is None else name
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return _with_finding(_nothing(shown), "special", "not a regular file; not read")
            if status.st_size <= LARGEST_TEXT:
                return analyse_bytes(file.read(), name=shown)
            prefix = chunk = file.read(_CHUNK)
            digest, size = hashlib.sha256(), 0
            while chunk:
                digest.update(chunk)
                size += len(chunk)
                chunk = file.read(_CHUNK)
    except (OSError, ValueError) as error:
        return _with_finding(_nothing(shown), "unreadable", _reason(error))
    found = _nothing(shown)
    found["bytes"], found["sha256"] = size, digest.hexdigest()
    if b"\0" in prefix[:_BINARY_PREFIX]:
        return _with_finding(found, "binary", "NUL byte in the first 8 KB")
    return _with_finding(found, "large", f"over {LARGEST_TEXT >> 20} MB; hashed, not read as text")


def analyse_bytes(content: bytes, *, name: str) -> Analysis:
    """Tell what is in ``content``, as the content of a file called ``name``."""
    found = _nothing(name)
    found["bytes"], found["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    if b"\0" in content[:_BINARY_PREFIX]:
        return _with_finding(found, "binary", "NUL byte in the first 8 KB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return _with_finding(found, "binary", f"not UTF-8 at byte {error.start}")
    found["lines"] = count_lines(text)
    found["words"] = len(text.split())
    found["todos"] = len(_TODO.findall(text))
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".py":
        _read_python(content, found)
    elif suffix in (".md", ".markdown"):
        found["headings"] = markdown_headings(text)
    return found


def count_lines(text: str) -> int:
    """Number of ``\\n``, plus one if the last line is unterminated and nonempty."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def markdown_headings(text: str) -> list[Heading]:
    """The ``#`` headings of a Markdown text, in order; fenced code is ignored."""
    headings: list[Heading] = []
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif heading := _HEADING.match(line):
            headings.append({"level": len(heading[1]), "text": heading[2] or "", "line": number})
    return headings


def _read_python(content: bytes, found: Analysis) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file's own invalid escapes are not this job's business
            with _parsing:
                tree = ast.parse(content)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        _with_finding(found, "syntax", f"{error.msg}{where}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        _with_finding(found, "syntax", f"cannot be parsed: {_reason(error)}")
        return
    # a stack of its own: source may nest deeper than Python's recursion limit allows a visitor to follow
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + node.name
            prefix = name + "."
            if isinstance(node, ast.ClassDef):
                found["classes"] += 1
            else:
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                found["functions"].append({"name": name, "line": node.lineno, "lines": length})
        waiting.extend((child, prefix) for child in ast.iter_child_nodes(node))
    found["functions"].sort(key=lambda span: (span["line"], span["name"]))


def _nothing(path: str) -> Analysis:
    return {
        "path": path,
        "bytes": 0,
        "sha256": None,
        "lines": 0,
        "words": 0,
        "todos": 0,
        "functions": [],
        "classes": 0,
        "headings": [],
        "findings": [],
    }


def _with_finding(found: Analysis, kind: str, detail: str) -> Analysis:
    found["findings"].append({"kind": kind, "path": found["path"], "detail": detail})
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
