"""``process``: look at, feed and end the commands that ``exec`` has left in the background (group:runtime).

They belong to the turn: with it they end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from openclaw_ray.agents.tools.command import Command
from openclaw_ray.agents.tools.exec import ended_fields, running_fields
from openclaw_ray.agents.tools.rows import note_call
from openclaw_ray.agents.tools.running import running
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool, Within
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["PROCESS"]

_NAME = "process"
_LINES = 200
_KILL_WITHIN = 12.0


def _list(caller: Caller, values: Mapping[str, Any]) -> Steps:
    yield from ()
    return ToolResult(_NAME, {"processes": [_row(each) for each in running(caller).shown()]})


def _poll(caller: Caller, values: Mapping[str, Any]) -> Steps:
    command = _named(caller, values)
    if seconds := values.get("timeout", 0):
        yield Within((command.news(),), seconds)
    over = not command.runs
    fields = ended_fields(command) if over else running_fields(command)
    return ToolResult(_NAME, {**fields, "output": command.new_output()})


def _log(caller: Caller, values: Mapping[str, Any]) -> Steps:
    yield from ()
    text, size, cut = _named(caller, values).output()
    lines = text.splitlines(keepends=True)
    first = values.get("offset", 1 if "limit" in values else max(1, len(lines) - _LINES + 1))
    shown = lines[first - 1 : first - 1 + values["limit"]] if "limit" in values else lines[first - 1 :]
    fields: dict[str, Any] = {"output": "".join(shown), "offset": first, "lines": len(shown), "totalLines": len(lines)}
    if cut:
        fields |= {"truncated": True, "outputBytes": size}
    return ToolResult(_NAME, fields)


def _write(caller: Caller, values: Mapping[str, Any]) -> Steps:
    yield from ()
    command = _named(caller, values)
    try:
        data = values.get("data", "").encode("utf-8")
    except UnicodeEncodeError:
        raise ToolInputError(_NAME, "data", "UTF-8 cannot hold it") from None
    refused = command.write(data, values.get("eof", False))
    if refused is not None:
        return ToolResult(_NAME, {"status": "error", "error": f"{command.id}: {refused}"})
    return ToolResult(_NAME, {"status": "ok", "sessionId": command.id, "bytes": len(data)})


def _kill(caller: Caller, values: Mapping[str, Any]) -> Steps:
    command = _named(caller, values)
    if not command.runs:
        error = f"{command.id}: it has ended already (exit status {command.exit_status})"
        return ToolResult(_NAME, {"status": "error", "error": error})
    command.end("process kill")
    yield Within((command.ended,), _KILL_WITHIN)
    if not command.ended.done():
        return ToolResult(_NAME, {"status": "error", "error": f"{command.id}: its processes cannot be ended"})
    fields = ended_fields(command)
    fields.pop("error", None)
    return ToolResult(_NAME, {**fields, "status": "killed"})


_ACTION = Parameter("action", Kind.TEXT, "What to do.", words=("list", "poll", "log", "write", "kill"), required=True)
_ID = Parameter("sessionId", Kind.TEXT, "Which one, as exec said.", also=("id",), required=True)
_TIMEOUT = Parameter("timeout", Kind.WHOLE, "poll: seconds to wait for new output or its end.", least=0, most=600)
_OFFSET = Parameter("offset", Kind.WHOLE, "log: the first line, from 1; the last 200 if left out.", least=1)
_LIMIT = Parameter("limit", Kind.WHOLE, "log: how many lines.", least=1)
_DATA = Parameter("data", Kind.TEXT, "write: what its input is given.")
_EOF = Parameter("eof", Kind.FLAG, "write: close its input after that.")
_ANY_ID = Parameter("sessionId", Kind.TEXT, "Which one, as exec said; all but list need it.", also=("id",))
_ACTIONS: dict[str, tuple[Callable[[Caller, Mapping[str, Any]], Steps], tuple[Parameter, ...]]] = {
    "list": (_list, (_ACTION,)),
    "poll": (_poll, (_ACTION, _ID, _TIMEOUT)),
    "log": (_log, (_ACTION, _ID, _OFFSET, _LIMIT)),
    "write": (_write, (_ACTION, _ID, _DATA, _EOF)),
    "kill": (_kill, (_ACTION, _ID)),
}


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    action = read_params(_NAME, (_ACTION,), {"action": given.get("action")})["action"]
    steps, table = _ACTIONS[action]
    values = read_params(_NAME, table, given)
    try:
        result = yield from steps(caller, values)
    except GeneratorExit:
        note_call(caller, _NAME, given, "cancelled", "")
        raise
    note_call(caller, _NAME, given, result.status, {n: v for n, v in result.fields.items() if n != "status"})
    return result


def _named(caller: Caller, values: Mapping[str, Any]) -> Command:
    commands = running(caller).shown()
    for command in commands:
        if command.id == values["sessionId"]:
            return command
    there = ", ".join(each.id for each in commands) or "none"
    raise ToolInputError(_NAME, "sessionId", f"there is no {values['sessionId']!r} in this turn (there are: {there})")


def _row(command: Command) -> dict[str, Any]:
    row = {"sessionId": command.id, "pid": command.pid, "command": command.shown}
    state = {"status": "running"} if command.runs else {"status": "ended", "exitCode": command.exit_status}
    return {**row, **state, "runtimeMs": round(command.runtime * 1000)}


PROCESS = Tool(
    _NAME,
    "The commands that exec has left in the background in this turn: list them, poll one for new output, read its log, "
    "write to its input, kill it.",
    (_ACTION, _ANY_ID, _TIMEOUT, _OFFSET, _LIMIT, _DATA, _EOF),
    _steps,
)
"""The tool."""
