"""What a tool call gives back: the object that a model is shown, with what a program wants of it (DESIGN.md 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openclaw_ray.core.results import Receipt
from openclaw_ray.core.tool_params import snake_name

__all__ = ["ToolResult", "refusal_text"]

_FAILED = ("error", "forbidden", "rate_limited")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call. A refusal is a result too: its `status` and `error` say so.

    ``result["runId"]`` and ``result["run_id"]`` both give that field.

    Attributes:
        tool: which tool.
        fields: the JSON object, camelCase; not to be changed.
        receipt: of ``sessions_spawn``, for `Turn.join`; else `None`.
        value: what a tool of one's own has returned, as it is; a model is not shown it. `None` for built-in ones.
    """

    tool: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    receipt: Receipt | None = None
    value: Any = None

    @property
    def status(self) -> str:
        """The status word; ``ok`` where the tool has none of its own."""
        return str(self.fields.get("status", "ok"))

    @property
    def ok(self) -> bool:
        """False for ``error``, ``forbidden`` and ``rate_limited``."""
        return self.status not in _FAILED

    @property
    def error(self) -> str | None:
        """Why it was refused or failed."""
        error = self.fields.get("error")
        return None if error is None else str(error)

    def __getitem__(self, name: str) -> Any:
        if name in self.fields:
            return self.fields[name]
        for key, value in self.fields.items():
            if snake_name(key) == name:
                return value
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """JSON form, as a model is shown it."""
        return dict(self.fields)


def refusal_text(error: str, value: int | None = None, maximum: int | None = None) -> str:
    """A refusal as a model reads it: with the figures as ``5/5`` where a limit was reached (SPEC.md N14)."""
    if value is None or maximum is None:
        return error
    return f"{error} [{value}/{maximum}]"
