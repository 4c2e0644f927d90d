"""``read``: a text file of the workspace, whole or by lines (group:fs).

Files that came with the task are read by the paths that ``turn.session.attachments`` gives, wherever they are kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from openclaw_ray.agents.tools.files import Fault, as_text, in_workspace
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.agents.tools.workspace import Workspace
from openclaw_ray.core.tool_params import Kind, Parameter

__all__ = ["MOST_BYTES", "MOST_LINES", "READ"]

_NAME = "read"
MOST_BYTES = 128 << 10
"""Bytes that one call gives."""
MOST_LINES = 2_000
"""Lines that one call gives."""
_LARGEST = 64 << 20  # bytes of a file that is looked through for its lines


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = READ.read(given)
    return in_workspace(_NAME, caller, given, partial(_read, values, caller.session.attachments))


def _read(values: Mapping[str, Any], attachments: tuple[str, ...], inside: Workspace) -> dict[str, Any]:
    path, first, most = values["path"], values.get("offset", 1), values.get("limit", MOST_LINES)
    name = path
    if path in attachments:
        folder, name = os.path.split(path)
        inside = Workspace(folder)
    with inside.file(name) as fd:
        size = os.fstat(fd).st_size
        if size > _LARGEST:
            raise Fault(f"{path}: it has {size} bytes, more than the {_LARGEST} that read looks through; use exec")
        lines: list[bytes] = []
        kept = number = 0
        whole = True
        with open(fd, "rb", closefd=False) as file:
            while (line := file.readline(MOST_BYTES + 1)) and whole:
                number += 1
                if number < first:
                    while not line.endswith(b"\n") and (line := file.readline(MOST_BYTES)):
                        pass
                    continue
                whole = len(lines) < min(most, MOST_LINES) and kept + len(line) <= MOST_BYTES
                if whole:
                    lines.append(line)
                    kept += len(line)
    if not whole and not lines:
        raise Fault(f"{path}: line {first} alone has more than {MOST_BYTES} bytes; use exec")
    if not lines and first > 1:
        raise Fault(f"{path}: there is no line {first}; it has {number}")
    fields: dict[str, Any] = {"text": as_text(b"".join(lines), path), "lines": len(lines), "size": size}
    if not whole:
        fields["truncated"] = True
        fields["nextOffset"] = first + len(lines)
    return fields


READ = Tool(
    _NAME,
    f"Read a UTF-8 text file of the workspace, at most {MOST_LINES} lines or {MOST_BYTES >> 10} KB at a time. If it is "
    "cut, nextOffset is the line to go on with.",
    (
        Parameter("path", Kind.TEXT, "Relative to the workspace.", also=("file_path",), required=True),
        Parameter("offset", Kind.WHOLE, "The first line, from 1.", least=1),
        Parameter("limit", Kind.WHOLE, "How many lines.", least=1, most=MOST_LINES),
    ),
    _steps,
)
"""The tool."""
