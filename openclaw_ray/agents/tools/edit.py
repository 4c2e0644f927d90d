"""``edit``: replace a text that is in a file exactly once (group:fs).

The text is looked for as it is, white space and line ends included. One that is not there, or there more than once,
changes nothing, and the answer says which lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from openclaw_ray.agents.tools.files import CHANGING, Fault, as_text, in_workspace, replace_file
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.agents.tools.workspace import Workspace
from openclaw_ray.agents.tools.write import MOST_BYTES, encoded
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.tool_params import Kind, Parameter

__all__ = ["EDIT"]

_NAME = "edit"
_SHOWN = 8  # lines that are named


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = EDIT.read(given)
    old, new = values["oldText"], values["newText"]
    if not old:
        raise ToolInputError(_NAME, "oldText", "it is empty; write makes a file")
    if old == new:
        raise ToolInputError(_NAME, "newText", "it is the same as oldText")
    encoded(_NAME, "newText", new)
    return in_workspace(_NAME, caller, given, partial(_edit, values["path"], old, new))


def _edit(path: str, old: str, new: str, inside: Workspace) -> dict[str, Any]:
    with CHANGING:
        with inside.file(path) as fd:
            found = os.fstat(fd)
            if found.st_size > MOST_BYTES:
                raise Fault(f"{path}: it has {found.st_size} bytes, the limit of edit is {MOST_BYTES}; use exec")
            with open(fd, "rb", closefd=False) as file:
                text = as_text(file.read(MOST_BYTES + 1), path)
        places = _places(text, old)
        if not places:
            windows = "\r\n" in text and "\n" in old and "\r\n" not in old
            hint = "its lines end in \\r\\n" if windows else "read it, and take the text as it stands there"
            raise Fault(f"{path}: oldText is not in it; {hint}")
        lines = [text.count("\n", 0, place) + 1 for place in places]
        if len(lines) > 1:
            named = ", ".join(map(str, lines[:_SHOWN])) + (" …" if len(lines) > _SHOWN else "")
            raise Fault(f"{path}: oldText is in it {len(lines)} times (lines {named}); take in more of what is around")
        edited = text[: places[0]] + new + text[places[0] + len(old) :]
        data = edited.encode("utf-8")
        if len(data) > MOST_BYTES:
            raise Fault(f"{path}: it would have {len(data)} bytes, the limit is {MOST_BYTES}")
        with inside.place(path) as (folder, name):
            replace_file(folder, name, path, data, found)
    return {"status": "ok", "path": path, "line": lines[0], "bytes": len(data)}


def _places(text: str, old: str) -> list[int]:
    """Where it is, overlapping ones included: which of them is meant nobody can tell."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) <= 1_000:
        places.append(at)
        at = text.find(old, at + 1)
    return places


EDIT = Tool(
    _NAME,
    "Replace a text in a file of the workspace. oldText must be there exactly once, white space and all.",
    (
        Parameter("path", Kind.TEXT, "Relative to the workspace.", also=("file_path",), required=True),
        Parameter("oldText", Kind.TEXT, "What is there.", also=("old_string",), required=True),
        Parameter("newText", Kind.TEXT, "What is to be there.", also=("new_string",), required=True),
    ),
    _steps,
)
"""The tool."""
