"""Errors of tool calls. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError, name_list

__all__ = ["DuplicateTool", "ToolFailed", "ToolInputError", "ToolSignatureError", "UnknownCall", "UnknownTool"]


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
