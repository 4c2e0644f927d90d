"""The demo's three agents: ``main`` → one ``surveyor`` per top folder → one ``reader`` session per file.

1. ``main`` lists the top of the folder and maps the surveyors over it; the files beside the folders are a
   group of their own.
2. A surveyor lists its folder and maps the readers over its files.
3. A reader reads one file and hands up a summary of it.
4. Surveyors and main merge what comes back. A session that failed is a finding, with its reason; the rest
   goes on.

Both maps take ``maxChildrenPerAgent`` as back-pressure, so folders and files may be many more than the cap.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypedDict, cast

from openclaw_ray.agents.builtin.survey import combine
from openclaw_ray.agents.builtin.survey.analyse import Finding, analyse_file
from openclaw_ray.agents.builtin.survey.walk import list_files
from openclaw_ray.agents.decorator import agent
from openclaw_ray.agents.sync_turn import SyncTurn
from openclaw_ray.core.results import Result

__all__ = ["SURVEY_AGENTS", "Survey", "main", "reader", "surveyor"]


class Survey(TypedDict):
    """``main``'s input: the folder's absolute path, and how many top folders and files of each at once."""

    root: str
    folders_at_once: int
    files_at_once: int


@agent(id="main")
def main(turn: SyncTurn) -> combine.Report:
    """Survey the whole folder; returns the report."""
    job = cast(Survey, turn.input)
    top = list_files(job["root"], recursive=False)
    groups: list[dict[str, Any]] = [{**job, "folder": folder} for folder in top.folders]
    if top.files:
        groups.append({**job, "folder": "", "files": top.files})
    turn.progress(text=os.path.basename(job["root"]) or job["root"], done=0, total=len(groups))
    results = turn.map("surveyor", groups, width=job["folders_at_once"])
    names = [str(group["folder"]) for group in groups]
    parts, lost = _gather(results, names)
    whole = combine.merge([combine.empty(findings=top.findings + lost, skipped=top.skipped), *parts.values()])
    return combine.report(whole, (combine.folder_row(name, part) for name, part in parts.items()))


@agent(id="surveyor")
def surveyor(turn: SyncTurn) -> combine.Summary:
    """Survey one top folder, or the given files beside the folders; returns their summary."""
    group = cast("dict[str, Any]", turn.input)
    root, folder = str(group["root"]), str(group["folder"])
    findings: list[Finding] = []
    skipped: dict[str, int] = {}
    if "files" in group:
        files: list[str] = group["files"]
    else:
        listing = list_files(root, folder)
        files, findings, skipped = listing.files, listing.findings, listing.skipped
    turn.progress(text=f"{folder}/" if folder else "./", done=0, total=len(files))
    items = [{"root": root, "path": path} for path in files]
    parts, lost = _gather(turn.map("reader", items, width=group["files_at_once"]), files)
    return combine.merge([combine.empty(findings=findings + lost, skipped=skipped), *parts.values()])


@agent(id="reader", spawns=False)
def reader(turn: SyncTurn) -> combine.Summary:
    """Read one file; returns its summary."""
    item = cast("dict[str, str]", turn.input)
    return combine.leaf(analyse_file(os.path.join(item["root"], item["path"]), name=item["path"]))


SURVEY_AGENTS = (main, surveyor, reader)
"""All three, as ``Runtime.start(agents=...)`` takes them."""


def _gather(results: Sequence[Result[Any]], names: Sequence[str]) -> tuple[dict[str, combine.Summary], list[Finding]]:
    """The summaries by name, and a finding for each session that brought none."""
    parts: dict[str, combine.Summary] = {}
    lost: list[Finding] = []
    for name, result in zip(names, results, strict=True):
        if result.ok and result.value is not None:
            parts[name] = cast(combine.Summary, result.value)
        else:
            reason = result.error.message if result.error else "no value came back"
            lost.append({"kind": "session", "path": name or ".", "detail": f"{result.status.value}: {reason}"})
    return parts, lost
