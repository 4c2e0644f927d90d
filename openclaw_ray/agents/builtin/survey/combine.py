"""Merging what was found in files into what is known of a folder. Pure, and in any order the same.

A `Summary` is small whatever it sums up: figures, the longest few of each list, one entry for each different
content, and the findings. ``leaf`` makes one of a file, ``merge`` one of many, ``report`` the final answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TypedDict

from openclaw_ray.agents.builtin.survey.analyse import Analysis, Finding

__all__ = [
    "KEPT",
    "Content",
    "FolderRow",
    "FunctionRow",
    "Report",
    "SizeRow",
    "Summary",
    "empty",
    "folder_row",
    "leaf",
    "merge",
    "report",
]

KEPT = 10
"""How many entries the lists of largest files and longest functions keep."""

_FIGURES = ("files", "bytes", "lines", "words", "functions", "classes", "todos", "headings")


class SizeRow(TypedDict):
    """One of the largest files."""

    path: str
    bytes: int


class FunctionRow(TypedDict):
    """One of the longest functions."""

    path: str
    name: str
    line: int
    lines: int


class Content(TypedDict):
    """Files of one content."""

    bytes: int
    paths: list[str]


class Summary(TypedDict):
    """What is known of a set of files; ``contents`` is keyed by sha256."""

    figures: dict[str, int]
    largest: list[SizeRow]
    longest: list[FunctionRow]
    contents: dict[str, Content]
    findings: list[Finding]
    skipped: dict[str, int]


class FolderRow(TypedDict):
    """The figures of one top folder; ``.`` stands for the files beside the folders."""

    folder: str
    files: int
    bytes: int
    lines: int
    words: int
    functions: int
    classes: int
    todos: int
    headings: int


class DuplicateRow(TypedDict):
    """Files of one content; ``wasted`` is the bytes that all but one of them take."""

    sha256: str
    bytes: int
    wasted: int
    files: list[str]


class Report(TypedDict):
    """The final answer. ``totals["duplicates"]`` counts the files beyond the first of each content."""

    totals: dict[str, int]
    largest: list[SizeRow]
    longestFunctions: list[FunctionRow]
    duplicates: list[DuplicateRow]
    findings: list[Finding]
    folders: list[FolderRow]


def empty(*, findings: Iterable[Finding] = (), skipped: Mapping[str, int] | None = None) -> Summary:
    """The summary of no files, with what a walk had to say."""
    return {
        "figures": dict.fromkeys(_FIGURES, 0),
        "largest": [],
        "longest": [],
        "contents": {},
        "findings": list(findings),
        "skipped": dict(skipped or {}),
    }


def leaf(found: Analysis) -> Summary:
    """The summary of one file."""
    path = found["path"]
    functions: list[FunctionRow] = [{"path": path, **span} for span in found["functions"]]
    summary = empty(findings=found["findings"])
    summary["figures"] = {
        "files": 1,
        "bytes": found["bytes"],
        "lines": found["lines"],
        "words": found["words"],
        "functions": len(functions),
        "classes": found["classes"],
        "todos": found["todos"],
        "headings": len(found["headings"]),
    }
    summary["largest"] = [{"path": path, "bytes": found["bytes"]}]
    summary["longest"] = _longest(functions)
    if found["sha256"] is not None:
        summary["contents"] = {found["sha256"]: {"bytes": found["bytes"], "paths": [path]}}
    return summary


def merge(summaries: Iterable[Summary]) -> Summary:
    """The summary of all files of all ``summaries``; these are not changed."""
    figures: Counter[str] = Counter(dict.fromkeys(_FIGURES, 0))
    skipped: Counter[str] = Counter()
    whole = empty()
    for part in summaries:
        figures.update(part["figures"])
        skipped.update(part["skipped"])
        whole["largest"] = _largest(whole["largest"] + part["largest"])
        whole["longest"] = _longest(whole["longest"] + part["longest"])
        whole["findings"].extend(part["findings"])
        for sha256, content in part["contents"].items():
            same = whole["contents"].setdefault(sha256, {"bytes": content["bytes"], "paths": []})
            same["paths"].extend(content["paths"])
    whole["figures"], whole["skipped"] = dict(figures), dict(skipped)
    whole["findings"].sort(key=itemgetter("path", "kind"))
    for content in whole["contents"].values():
        content["paths"].sort()
    return whole


def folder_row(folder: str, summary: Summary) -> FolderRow:
    """The figures of one top folder, ``""`` being the files beside the folders."""
    figures = summary["figures"]
    return {
        "folder": folder or ".",
        "files": figures["files"],
        "bytes": figures["bytes"],
        "lines": figures["lines"],
        "words": figures["words"],
        "functions": figures["functions"],
        "classes": figures["classes"],
        "todos": figures["todos"],
        "headings": figures["headings"],
    }


def report(summary: Summary, folders: Iterable[FolderRow] = ()) -> Report:
    """The final answer: totals, the longest of each list, duplicates by the bytes they waste, findings."""
    duplicates: list[DuplicateRow] = [
        {
            "sha256": sha256,
            "bytes": content["bytes"],
            "wasted": content["bytes"] * (len(content["paths"]) - 1),
            "files": content["paths"],
        }
        for sha256, content in summary["contents"].items()
        if len(content["paths"]) > 1
    ]
    duplicates.sort(key=lambda row: (-row["wasted"], row["files"]))
    totals = {name: count for name, count in summary["figures"].items() if name != "headings"}
    totals["duplicates"] = sum(len(row["files"]) - 1 for row in duplicates)
    passed_over: list[Finding] = [
        {"kind": "skipped", "path": ".", "detail": f"{what}, passed over", "count": count}
        for what, count in sorted(summary["skipped"].items())
    ]
    return {
        "totals": totals,
        "largest": summary["largest"],
        "longestFunctions": summary["longest"],
        "duplicates": duplicates,
        "findings": summary["findings"] + passed_over,
        "folders": sorted(folders, key=itemgetter("folder")),
    }


def _largest(rows: list[SizeRow]) -> list[SizeRow]:
    return sorted(rows, key=lambda row: (-row["bytes"], row["path"]))[:KEPT]


def _longest(rows: list[FunctionRow]) -> list[FunctionRow]:
    return sorted(rows, key=lambda row: (-row["lines"], row["path"], row["line"]))[:KEPT]
