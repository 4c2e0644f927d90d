"""Errors of tool calls. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError, name_list

__all__ = ["ToolInputError", "UnknownTool"]


@dataclass(eq=False, repr=False)
class ToolInputError(OpenClawRayError, ValueError):
    """A call that no rule was asked about: a parameter is missing, unknown, or not of its type (SPEC.md C, stage 0)."""

    tool: str
    parameter: str
    detail: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.parameter}: {self.detail}"


@dataclass(eq=False, repr=False)
class UnknownTool(OpenClawRayError, AttributeError):
    """A tool that there is not; ``known`` are the names of those there are."""

    tool: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"there is no tool {self.tool!r} (tools: {name_list(self.known, 32)})"
