"""What the file tools have in common: their work is done in a thread, and its end is a result and a row.

A file system may hang. The wait for it ends with the turn; the thread that hangs costs the process its further use.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from openclaw_ray.agents.tools.function_tool import in_thread
from openclaw_ray.agents.tools.rows import note_call
from openclaw_ray.agents.tools.tool import Caller, Steps
from openclaw_ray.agents.tools.workspace import PathRefused, Workspace, check_file, workspace
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["CHANGING", "Fault", "as_text", "in_workspace", "replace_file"]

CHANGING = threading.RLock()
"""Held while a file is changed: two edits of one file, side by side, are both made."""


class Fault(Exception):
    """Why a file tool could not do it; the text is the result's ``error``."""


def in_workspace(
    tool: str, caller: Caller, given: Mapping[str, Any], work: Callable[[Workspace], dict[str, Any]]
) -> Steps:
    """Do ``work`` with the session's workspace, and make a result of what it returns or raises."""
    done = in_thread(tool, partial(_result, tool, caller, work))
    try:
        result: ToolResult = yield done
    except GeneratorExit:
        note_call(caller, tool, given, "cancelled", "")
        raise
    shown = {name: value for name, value in result.fields.items() if name != "status"}
    note_call(caller, tool, given, result.status, shown)
    return result


def _result(tool: str, caller: Caller, work: Callable[[Workspace], dict[str, Any]]) -> ToolResult:
    try:
        return ToolResult(tool, work(workspace(caller)))
    except PathRefused as refused:
        return ToolResult(tool, {"status": "forbidden" if refused.forbidden else "error", "error": str(refused)})
    except Fault as fault:
        return ToolResult(tool, {"status": "error", "error": str(fault)})
    except OSError as error:
        return ToolResult(tool, {"status": "error", "error": error.strerror or str(error)})


def as_text(data: bytes, path: str) -> str:
    """UTF-8 as it is, line ends included.

    Raises:
        Fault: it is none; says where.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault(f"{path}: it is no UTF-8 text (byte {error.start} is 0x{data[error.start]:02x})") from None


def replace_file(folder: int, name: str, shown: str, data: bytes, expected: os.stat_result | None = None) -> bool:
    """Write a file in one step: whoever reads it sees what it was or what it is now.

    Args:
        folder, name: where, from `Workspace.place`.
        expected: what was there when it was read; what has changed since is left alone.

    Returns:
        Whether it is new.

    Raises:
        PathRefused: something else is there.
        Fault: it is not what was expected.
        OSError: it cannot be written.
    """
    before: os.stat_result | None = None
    try:
        before = check_file(folder, name, shown)
    except PathRefused as refused:
        if refused.forbidden or _is_there(folder, name):
            raise
    if expected is not None and (before is None or _version(before) != _version(expected)):
        raise Fault(f"{shown}: it has changed since it was read; read it again")
    temporary = f".{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            if before is not None:
                os.fchmod(fd, stat.S_IMODE(before.st_mode))
            file.write(data)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return before is None


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _version(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
