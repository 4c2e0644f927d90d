"""Errors of tool calls. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError, name_list

__all__ = [
    "DuplicateTool",
    "NoToolsLeft",
    "ToolDenied",
    "ToolFailed",
    "ToolInputError",
    "ToolSignatureError",
    "UnknownCall",
    "UnknownTool",
]


@dataclass(eq=False, repr=False)
class NoToolsLeft(OpenClawRayError):
    """A session asks for its tools, allow lists are set, and they leave none (SPEC.md E3).

    Attributes:
        session_key: whose tools.
        paths: where allow lists are set.
        tools: the tools that there are.
    """

    session_key: str
    paths: tuple[str, ...]
    tools: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"no tool is left to {self.session_key or 'the session'}: {', '.join(self.paths)} "
            f"(tools: {name_list(self.tools, 32)}); name one of these there, or take the list away"
        )


@dataclass(eq=False, repr=False)
class ToolDenied(OpenClawRayError):
    """A call of a tool that the session may not have, refused at dispatch (SPEC.md E3).

    Attributes:
        tool: its name.
        rule: the step that decided (`openclaw_ray.core.policy.Rule`).
        path: the configuration key that decided; empty for what is built in.
        entry: the entry of that list which means the tool; empty if it is on no list that it would have to be on.
        session_key: whose call.
    """

    tool: str
    rule: str
    path: str = ""
    entry: str = ""
    session_key: str = ""

    def __str__(self) -> str:
        who = self.session_key or "the session"
        if self.entry:
            where = f"{self.path} names {self.entry}" if self.path else f"built in: {self.entry}"
        else:
            where = f"{self.path or 'the built-in list'} does not name it"
        return f"tool {self.tool!r} is denied to {who} by the {self.rule} rule ({where}); {self._way_out()}"

    def _way_out(self) -> str:
        if not self.path:
            return "leave it to the session that spawned this one" if self.rule == "sub-agent" else "do without it"
        if self.path.endswith("maxSpawnDepth"):
            return "a session at that depth is a leaf; raise it there"
        if self.rule == "inherited":
            return "the requester has to spawn another session for it"
        return "take it out there" if self.entry else "name it there"


@dataclass(eq=False, repr=False)
class ToolInputError(OpenClawRayError, ValueError):
    """A call that no rule was asked about: a parameter is missing, unknown, or not of its type (SPEC.md C, stage 0)."""

    tool: str
    parameter: str
    detail: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.parameter}: {self.detail}"


@dataclass(eq=False, repr=False)
class ToolSignatureError(OpenClawRayError, TypeError):
    """`@tool` on what cannot be one: a parameter has no type, or one that no JSON value stands for."""

    tool: str
    parameter: str
    detail: str

    def __str__(self) -> str:
        return f"tool {self.tool}: {self.parameter + ': ' if self.parameter else ''}{self.detail}"


@dataclass(eq=False, repr=False)
class ToolFailed(OpenClawRayError, RuntimeError):
    """A tool of one's own has raised: ``kind`` and ``message`` are its exception's, ``traceback`` where that is known.

    Raised by ``turn.call``; the exception itself is its ``__cause__`` if it was raised in this process.
    """

    tool: str
    kind: str
    message: str
    traceback: str | None = None

    def __str__(self) -> str:
        return f"tool {self.tool} raised {self.kind}: {self.message}"


@dataclass(eq=False, repr=False)
class DuplicateTool(OpenClawRayError, ValueError):
    """One name for two tools of an agent, or for a tool of its own and a built-in one."""

    tool: str
    origin_a: str
    origin_b: str

    def __str__(self) -> str:
        return (
            f"tool {self.tool!r} stands for two tools: {self.origin_a} and {self.origin_b}; "
            "give one of them another name: @tool(name=…)"
        )


@dataclass(eq=False, repr=False)
class UnknownCall(OpenClawRayError, LookupError):
    """``Runtime.call`` of a name that there is not; ``known`` are those there are."""

    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        from difflib import get_close_matches  # a session process does not pay for it

        near = get_close_matches(self.name, self.known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"there is no call {self.name!r}{hint} (calls: {name_list(self.known, 32)})"


@dataclass(eq=False, repr=False)
class UnknownTool(OpenClawRayError, AttributeError):
    """A tool that there is not; ``known`` are the names of those there are."""

    tool: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"there is no tool {self.tool!r} (tools: {name_list(self.known, 32)})"
