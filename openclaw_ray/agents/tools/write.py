"""``write``: a whole file of the workspace, in one step (group:fs)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from openclaw_ray.agents.tools.files import CHANGING, in_workspace, replace_file
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.agents.tools.workspace import Workspace
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.tool_params import Kind, Parameter

__all__ = ["MOST_BYTES", "WRITE", "encoded"]

_NAME = "write"
MOST_BYTES = 8 << 20
"""Bytes of a file that is written or edited."""


def encoded(tool: str, parameter: str, text: str) -> bytes:
    """A text as it is stored.

    Raises:
        ToolInputError: UTF-8 cannot hold it, or it is too large.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolInputError(tool, parameter, f"UTF-8 cannot hold character {error.start}") from None
    if len(data) > MOST_BYTES:
        raise ToolInputError(tool, parameter, f"it has {len(data)} bytes, the limit is {MOST_BYTES}; use exec")
    return data


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = WRITE.read(given)
    data = encoded(_NAME, "content", values["content"])
    return in_workspace(_NAME, caller, given, partial(_write, values["path"], data))


def _write(path: str, data: bytes, inside: Workspace) -> dict[str, Any]:
    with CHANGING, inside.place(path, make=True) as (folder, name):
        created = replace_file(folder, name, path, data)
    return {"status": "ok", "path": path, "bytes": len(data), "created": created}


WRITE = Tool(
    _NAME,
    "Write a text file of the workspace: what was there is replaced, folders on the way are made.",
    (
        Parameter("path", Kind.TEXT, "Relative to the workspace.", also=("file_path",), required=True),
        Parameter("content", Kind.TEXT, "The whole text.", required=True),
    ),
    _steps,
)
"""The tool."""
