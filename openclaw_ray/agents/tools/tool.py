"""What a tool is: a name, a table of parameters, and steps between which its caller waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openclaw_ray.agents.port import TurnPort
from openclaw_ray.agents.session_view import SessionView
from openclaw_ray.agents.within import Coro, Within
from openclaw_ray.core.attachments import AttachmentLimits
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_rules import Bindings
from openclaw_ray.core.tool_params import Parameter, read_params, schema
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["Caller", "Coro", "Steps", "Tool", "Within"]


Steps: TypeAlias = Generator[Future[Any] | Within | Coro, Any, ToolResult]
"""What a tool does: each future that it yields is waited for, and sent back as its result; of the others, `None`. The
generator is closed when the wait ends otherwise, by a stop or a failed future."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The turn that calls.

    Attributes:
        session: its session.
        keeps_transcript: False if there is no transcript of it while it runs.
        port: its way to the runtime.
        children: gives the children whose ends no program has been given.
        unheard: is told of a child whose end nobody is to be told.
        turn: the turn itself, for tools that are given it.
        attachments: bounds of what its spawns may hand on as files; `None` where that is not enabled.
        bindings: thread bindings in force for its spawns; `None` where there is no channel for any.
    """

    session: SessionView
    keeps_transcript: bool
    port: TurnPort
    children: Callable[[], list[Receipt]]
    unheard: Callable[[str], None]
    turn: Any = None
    attachments: AttachmentLimits | None = None
    bindings: Bindings | None = None


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: as a model calls it.
        about: what it is for, for the model.
        parameters: its table.
        steps: what it does with a call, as it was given; reads it by `read` before anything else happens.
        refused: names that are always refused, with the reason.
    """

    name: str
    about: str
    parameters: Sequence[Parameter]
    steps: Callable[[Caller, Mapping[str, Any]], Steps]
    refused: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """``name``, ``description`` and ``parameters`` (JSON schema), as model APIs take them."""
        return {"name": self.name, "description": self.about, "parameters": schema(self.parameters)}

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a call by camelCase name.

        Raises:
            ToolInputError: something in it is not in the table.
        """
        return read_params(self.name, self.parameters, given, self.refused)
