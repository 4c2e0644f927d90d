"""What a turn sees of its own session, and of what made it start."""

from __future__ import annotations

import os
from dataclasses import dataclass

from openclaw_ray.agents.folders import folder_of
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.message import MessageSource, News
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.messages import Spec
from openclaw_ray.core.results import Completion
from openclaw_ray.core.sent import Sent
from openclaw_ray.core.session_facts import SessionFacts

__all__ = ["SessionView", "TurnEvent", "session_view", "turn_events"]

_PLAIN = SessionFacts()


@dataclass(frozen=True, slots=True)
class SessionView:
    """The session that a turn belongs to (DESIGN.md 7).

    Attributes:
        key: session key.
        session_id: names the transcript; a reset session keeps its key and gets a new one.
        agent_id: which agent it runs.
        depth: spawn depth; a root is 0.
        role: ``main``, ``orchestrator`` or ``leaf`` (SPEC.md E1).
        label: display title, or `None`.
        cwd: folder that its turns run in: that of its process, unless it was given one.
        requester_key: who hears of its end; empty for a top-level session.
        attachments: paths of the files that came with the task.
        workspace: folder of its agent, or the one that it has taken over from its requester; `None` if neither has one.
        model, thinking: what it is to be run with, as provider/model and as a level; `None` where nobody said.
        context: ``fork`` if it began with a branch of its requester's transcript, else ``isolated``.
        sandboxed: whether it runs in a sandbox.
        mode: ``session`` if it is a conversation with a user, which goes on after its task; else ``run``.
        conversation: where the answer of this turn is said to users, by its channel's id; empty for nowhere.
    """

    key: str
    session_id: str
    agent_id: str
    depth: int
    role: str
    label: str | None
    cwd: str
    requester_key: str
    attachments: tuple[str, ...] = ()
    workspace: str | None = None
    model: str | None = None
    thinking: str | None = None
    context: str = "isolated"
    sandboxed: bool = False
    mode: str = "run"
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One of the things that a turn was started with, oldest first (PROTOCOL.md 5.1).

    Attributes:
        kind: `RunKind`; ``completion`` for a child's end, ``wake`` once for a yielded batch, after its ends.
        text: the task, the message, or the child's text, which is data and never instruction; empty for a wake.
        completion: the child's end, for ``completion``.
        source: of a message that another session sent: where it came from. It is no user's text.
        sent: how a message of this session's own ended.
    """

    kind: RunKind
    text: str
    completion: Completion | None = None
    source: MessageSource | None = None
    sent: Sent | None = None


def session_view(spec: Spec, attachments: tuple[str, ...] = ()) -> SessionView:
    """The view of the session that ``spec`` starts.

    Args:
        attachments: paths, on this node.
    """
    facts = spec.facts or _PLAIN
    try:
        cwd = os.getcwd() if facts.cwd is None else folder_of(facts.cwd)
    except OSError:  # it was deleted under us
        cwd = ""
    return SessionView(
        key=spec.session_key,
        session_id=spec.session_id,
        agent_id=spec.agent_id,
        depth=spec.depth,
        role=spec.role,
        label=spec.label,
        cwd=cwd,
        requester_key=spec.requester,
        attachments=attachments,
        workspace=None if facts.workspace is None else folder_of(facts.workspace),
        model=facts.model,
        thinking=facts.thinking,
        context=facts.context,
        sandboxed=facts.sandboxed,
        mode=facts.mode,
        conversation=spec.conversation,
    )


def turn_events(
    kind: RunKind,
    text: str,
    completions: tuple[Completion, ...],
    source: MessageSource | None = None,
    news: tuple[News, ...] = (),
    told: tuple[Told, ...] = (),
) -> tuple[TurnEvent, ...]:
    """Children's ends, ends of messages and notices, then what made the turn start, unless that is the ends themselves:
    the task, a message (or those that a waiting run was ``told``), the wake of a batch that is complete, the word that
    a run goes on after a restart."""
    ends = tuple(TurnEvent(RunKind.COMPLETION, done.text, done) for done in completions)
    heard = tuple(TurnEvent(RunKind.MESSAGE, one.text, None, one.source, one.sent) for one in news)
    if kind is RunKind.COMPLETION and (ends or heard):
        return (*ends, *heard)
    if told:
        return (*ends, *heard, *(TurnEvent(RunKind.MESSAGE, one.text, None, one.source) for one in told))
    return (*ends, *heard, TurnEvent(kind, text, None, source))
