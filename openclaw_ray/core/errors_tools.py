"""Errors of tool calls. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError, name_list

__all__ = ["ToolInputError", "UnknownCall", "UnknownTool"]


@dataclass(eq=False, repr=False)
class ToolInputError(OpenClawRayError, ValueError):
    """A call that no rule was asked about: a parameter is missing, unknown, or not of its type (SPEC.md C, stage 0)."""

    tool: str
    parameter: str
    detail: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.parameter}: {self.detail}"


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
