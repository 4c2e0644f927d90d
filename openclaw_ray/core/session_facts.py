"""What a spawn asks for beyond task and target, and what is settled about the child when it is made (SPEC.md D5).

The courier prepares a `ChildAsk` before the step (PROTOCOL.md 3.6). The registry makes `SessionFacts` of it in the step
that admits the child, from the requester's own facts and the configuration in force; nothing changes them later. Both
are `None` where there is nothing to say, which is the rule: most sessions pay nothing for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_ray.core.compact import compact

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import Attached
    from openclaw_ray.core.policy.inherited import Inherited
    from openclaw_ray.core.policy.rules import ToolLists

__all__ = ["ChildAsk", "SessionFacts"]


@compact
@dataclass(frozen=True, slots=True)
class ChildAsk:
    """What one spawn asks for, checked as far as that can be without the registry.

    Attributes:
        cwd: absolute folder to work in.
        model, thinking: as asked for; an empty text is never passed.
        sandbox_required: the child must be sandboxed.
        context: ``isolated`` or ``fork``.
        light_context: a shorter prompt is asked for.
        tools: lists that are to bind the child and all below it.
        attachments: what is told of the files that come along.
        thread: it is to be bound to a conversation.
        mode: ``run`` or ``session``.
    """

    cwd: str | None = None
    model: str | None = None
    thinking: str | None = None
    sandbox_required: bool = False
    context: str = "isolated"
    light_context: bool = False
    tools: ToolLists | None = None
    attachments: Attached | None = None
    thread: bool = False
    mode: str = "run"


@compact
@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What holds for a session from its birth on.

    Attributes:
        workspace: folder of its agent, or the one that it has taken over from its requester.
        cwd: folder that its turns run in; `None` for that of its process.
        model: as it is applied, with the provider in front if it was given so.
        thinking: canonical level.
        sandboxed: whether it has to run in a sandbox.
        context: ``isolated`` or ``fork``: whether it began with a branch of its requester's transcript.
        light_context: its prompt is the shorter one.
        inherited: tool lists that it and all below it are bound to, whatever the configuration says.
        home: folder that the configuration gives its agent: bootstrap files are read there, whatever ``cwd`` is.
        attachments: what is told of the files that came along.
        delegation: ``suggest`` or ``prefer`` if the configuration says.
        mode: ``session`` if it is a conversation with a user, who is answered in a thread; else ``run``.
    """

    workspace: str | None = None
    cwd: str | None = None
    model: str | None = None
    thinking: str | None = None
    sandboxed: bool = False
    context: str = "isolated"
    light_context: bool = False
    inherited: Inherited | None = None
    home: str | None = None
    attachments: Attached | None = None
    delegation: str | None = None
    mode: str = "run"
