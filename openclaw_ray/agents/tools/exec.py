"""``exec``: run a command in the workspace (group:runtime).

It is no sandbox: a command can read and write whatever this process's user can. What holds is where it starts, what it
is given of the environment, how long it runs, how much it writes, and that none of its processes outlives the turn.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.command import Command
from openclaw_ray.agents.tools.files import Fault
from openclaw_ray.agents.tools.rows import note_call
from openclaw_ray.agents.tools.running import running
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool, Within
from openclaw_ray.agents.tools.workspace import PathRefused, workspace
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.tool_params import Kind, Parameter
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["EXEC", "TIMEOUT", "ended_fields", "plain_environment", "running_fields"]

_NAME = "exec"
TIMEOUT = 1_800
"""Seconds that a command may run if the call says nothing."""
_LONGEST = 86_400
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WAITS = "it is ended with the call; use background, and process to look at it"


def plain_environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a command sees of this process's environment: a list of plain names, and no one else's secrets.

    Args:
        given: added to it.
    """
    kept = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith("LC_")}
    return {"PATH": os.defpath, **kept, "OPENCLAW_SHELL": "exec", **(given or {})}


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = EXEC.read(given)
    argv, shown = _command(values["command"])
    env = plain_environment(_environment(values.get("env", {})))
    background = values.get("background", False)
    command: Command | None = None
    try:
        try:
            inside = workspace(caller)
            command = running(caller).start(
                background,
                argv=argv,
                shown=shown,
                inside=inside,
                folder=inside.parts(values.get("workdir", "")),
                env=env,
                timeout=values.get("timeout", TIMEOUT),
            )
            yield Within((command.started,) if background else (command.ended,), math.inf)
            command.started.result()
            fields = running_fields(command) if background else ended_fields(command)
        except PathRefused as refused:
            fields = {"status": "forbidden" if refused.forbidden else "error", "error": str(refused)}
        except Fault as fault:
            fields = {"status": "error", "error": str(fault)}
        except (OSError, ValueError) as error:  # not there, not executable, too long
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            fields = {"status": "error", "error": f"cannot run {argv[0]}: {why}"}
    except GeneratorExit:
        note_call(caller, _NAME, given, "cancelled", "")
        if command is not None:
            command.end("its call was given up")
        raise
    result = ToolResult(_NAME, fields)
    note_call(caller, _NAME, given, result.status, _said(result))
    return result


def running_fields(command: Command) -> dict[str, Any]:
    """Of one that goes on."""
    return {"status": "running", "sessionId": command.id, "pid": command.pid, "command": command.shown}


def ended_fields(command: Command) -> dict[str, Any]:
    """Of one that has ended, its output as far as it is kept."""
    text, size, cut = command.output()
    fields: dict[str, Any] = {"status": "completed", "exitCode": command.exit_status}
    if command.why is not None or command.exit_status != 0:
        fields["status"] = "error"
        fields["error"] = f"exit status {command.exit_status}" if command.why is None else f"ended: {command.why}"
    fields |= {"output": text, "durationMs": round(command.runtime * 1000)}
    if cut:
        fields |= {"truncated": True, "outputBytes": size}
    if command.left_behind and command.why is None:
        fields["leftBehind"] = command.left_behind
    return fields


def _said(result: ToolResult) -> Any:
    shown = {name: value for name, value in result.fields.items() if name not in ("status", "output")}
    return f"{result.fields.get('output', '')}\n{shown}".strip()


def _command(given: Any) -> tuple[list[str], str]:
    """The program and its arguments; a text is a shell's."""
    if isinstance(given, str):
        argv = ["/bin/sh", "-c", given]
        shown = given
    elif isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        argv, shown = list(given), " ".join(given)
    else:
        raise ToolInputError(_NAME, "command", "it is a text for a shell, or a list of a program and its arguments")
    if not shown.strip() or any("\0" in each for each in argv):
        raise ToolInputError(_NAME, "command", "it is empty, or has a NUL in it")
    return argv, shown


def _environment(given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if not isinstance(name, str) or not _NAMES.fullmatch(name):
            raise ToolInputError(_NAME, "env", f"no variable can be called {name!r}")
        if not isinstance(value, str) or "\0" in value:
            raise ToolInputError(_NAME, f"env.{name}", "it is a text without NUL")
    return dict(given)


EXEC = Tool(
    _NAME,
    "Run a command in the workspace; returns when it has ended, with the beginning and the end of what it wrote. With "
    "background it goes on, until the turn ends: see process.",
    (
        Parameter("command", Kind.ANY, "A text for sh, or a list: a program and its arguments.", required=True),
        Parameter("workdir", Kind.TEXT, "A folder of the workspace to run in.", also=("cwd",)),
        Parameter("env", Kind.OBJECT, "Variables to set: texts by name."),
        Parameter("timeout", Kind.WHOLE, f"Seconds until it is ended; {TIMEOUT} if left out.", least=1, most=_LONGEST),
        Parameter("background", Kind.FLAG, "Return at once, and let it go on."),
    ),
    _steps,
    {"yieldMs": _WAITS, "pty": "there is no terminal", "elevated": "there is nothing to be elevated to"},
)
"""The tool."""
