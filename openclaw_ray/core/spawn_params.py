"""The parameters of ``sessions_spawn``: which there are, and what each may be (SPEC.md B1).

This is the form alone: names, types, words. What the parameters mean together, and whether this runtime does it, is
in `openclaw_ray.core.spawn_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.core.errors_tools import ToolInputError
from openclaw_ray.core.policy.rules import Names, ToolLists
from openclaw_ray.core.tool_params import Kind, Parameter, read_params, snake_name

__all__ = [
    "PARAMETERS",
    "REFUSED",
    "SWARM",
    "TOOL",
    "VISIBLE_ONLY",
    "SpawnCleanup",
    "SpawnContext",
    "SpawnMode",
    "SpawnParams",
    "parse_spawn",
    "program_names",
]

TOOL: Final = "sessions_spawn"


class SpawnMode(StrEnum):
    """What a child is for."""

    RUN = "run"
    """One task, one result."""
    SESSION = "session"
    """A conversation that goes on in a thread."""


class SpawnCleanup(StrEnum):
    """What becomes of a child's session after its end."""

    KEEP = "keep"
    """It stays until it is archived."""
    DELETE = "delete"
    """It is archived as soon as it has announced."""


class SpawnContext(StrEnum):
    """What a child knows of its requester's conversation."""

    ISOLATED = "isolated"
    """Nothing but the task."""
    FORK = "fork"
    """It begins with a branch of the requester's transcript."""


VISIBLE_ONLY: Final = (
    "group",
    "projectId",
    "projectGitUrl",
    "worktree",
    "worktreeName",
    "worktreeBaseRef",
    "placement",
)
"""Parameters that say something about a dashboard session only."""
SWARM: Final = ("collect", "outputSchema", "fastMode", "groupId")
"""Parameters of collector runs, which there are none of here."""

_WHOSE = "where results go is the parent's affair: they come back to it, and it answers"
_DELIVERY = ("target", "transport", "channel", "to", "threadId", "thread_id", "replyTo", "reply_to")
_OLD_TIMEOUT = "it is the old name; say runTimeoutSeconds"
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(_DELIVERY, _WHOSE),
    **dict.fromkeys(("timeoutSeconds", "timeout_seconds"), _OLD_TIMEOUT),
}
"""Names that are refused outright, with the reason."""


def _words(words: type[StrEnum]) -> tuple[str, ...]:
    return tuple(word.value for word in words)


PARAMETERS: Final = (
    Parameter("task", Kind.TEXT, "What the child is to do; all that it knows of it.", required=True),
    Parameter(
        "taskName",
        Kind.TEXT,
        "A short handle for it: a-z, then a-z, 0-9, _ and -, at most 64 characters; not last, not all.",
    ),
    Parameter("label", Kind.TEXT, "Display title, at most 512 characters; no other running child may have it."),
    Parameter("agentId", Kind.TEXT, "Which agent; see agents_list. Your own if left out.", also=("agent",)),
    Parameter("runTimeoutSeconds", Kind.WHOLE, "Seconds until it is stopped; 0 is never.", least=0),
    Parameter("expectsCompletionMessage", Kind.FLAG, "False if you are not to be told of its end."),
    Parameter("completionTarget", Kind.TEXT, "Say parent to have its end told to you alone.", words=("parent",)),
    Parameter(
        "cleanup",
        Kind.TEXT,
        "keep: it stays for a while; delete: it is archived as soon as its end was told.",
        words=_words(SpawnCleanup),
    ),
    Parameter(
        "tools",
        Kind.OBJECT,
        "Lists allow and deny of tool names, patterns with * and groups: it and all below it have no more than that.",
    ),
    Parameter("model", Kind.TEXT, "Its model, as provider/model; what is configured, or your own, if left out."),
    Parameter("thinking", Kind.TEXT, "Its thinking level; what is configured, or your own, if left out."),
    Parameter("cwd", Kind.TEXT, "Absolute path of the folder it works in; yours, or that of the other agent."),
    Parameter(
        "context",
        Kind.TEXT,
        "isolated: it knows the task alone; fork: it begins with a copy of this conversation, of up to 512 KiB.",
        words=_words(SpawnContext),
    ),
    Parameter("lightContext", Kind.FLAG, "True for a shorter prompt without the agent's files."),
    Parameter(
        "attachments",
        Kind.LIST,
        "Files for it: objects of name, content and encoding (utf8 or base64); copied now.",
    ),
    Parameter("attachAs", Kind.OBJECT, "mountPath: where you would have the files appear; a hint."),
    Parameter("sandbox", Kind.TEXT, "require: refuse unless it is sandboxed.", words=("inherit", "require")),
    Parameter(
        "thread",
        Kind.FLAG,
        "True to give it a conversation with the user; needs a channel that can bind one. Answers go there.",
    ),
    Parameter(
        "mode",
        Kind.TEXT,
        "run: one task, one result; session, with thread: it stays, and its conversation goes on.",
        words=_words(SpawnMode),
    ),
    # known, and answered, but of no use yet: not shown to a model
    Parameter("runtime", Kind.TEXT, words=("subagent", "acp"), offered=False),
    Parameter("visible", Kind.FLAG, offered=False),
    *(Parameter(name, Kind.ANY, offered=False) for name in (*VISIBLE_ONLY, *SWARM)),
)
"""Every parameter of SPEC.md B1."""

_ATTACHMENT: Final = (
    Parameter("name", Kind.TEXT, required=True),
    Parameter("content", Kind.TEXT, required=True),
    Parameter("encoding", Kind.TEXT, words=("utf8", "base64")),
    Parameter("mimeType", Kind.TEXT),
)
_PROGRAM_ATTACHMENT: Final = tuple(
    replace(parameter, kind=Kind.ANY) if parameter.name == "content" else parameter for parameter in _ATTACHMENT
)
_ATTACH_AS: Final = (Parameter("mountPath", Kind.TEXT),)
_TOOLS: Final = (Parameter("allow", Kind.LIST), Parameter("deny", Kind.LIST))


@dataclass(frozen=True, slots=True)
class SpawnParams:
    """A call of ``sessions_spawn`` that is well formed; texts are trimmed, blank ones are `None`.

    Attributes:
        task: as written; not blank.
        task_name, label, agent_id, model, thinking, cwd: as given.
        acp: an external harness is asked for.
        run_timeout_seconds: 0 is none at all, `None` what is configured.
        thread: it is to be bound to a conversation.
        mode, cleanup, context: `None` where the call does not say.
        sandbox_required: the child must be sandboxed.
        expects_completion: somebody is to be told of its end.
        completion_target: ``parent`` or `None`.
        light_context: a shorter prompt is asked for.
        attachments: (name, content, encoding) of each file; names and contents have not been looked at.
        attach_as: where they are to appear; a hint.
        visible: a dashboard session is asked for.
        others: names of `VISIBLE_ONLY` and `SWARM` that were given.
        tools: lists that are to bind it and all below it.
    """

    task: str
    task_name: str | None = None
    label: str | None = None
    agent_id: str | None = None
    acp: bool = False
    model: str | None = None
    thinking: str | None = None
    run_timeout_seconds: int | None = None
    cwd: str | None = None
    thread: bool = False
    mode: SpawnMode | None = None
    cleanup: SpawnCleanup | None = None
    context: SpawnContext | None = None
    sandbox_required: bool = False
    expects_completion: bool = True
    completion_target: str | None = None
    light_context: bool = False
    attachments: tuple[tuple[str, Any, str], ...] = ()
    attach_as: str | None = None
    visible: bool = False
    others: tuple[str, ...] = ()
    tools: ToolLists | None = None


def parse_spawn(given: Mapping[str, Any], tool: str = TOOL, *, program: bool = False) -> SpawnParams:
    """Read one call.

    Args:
        program: it is one of a program, whose attachments may be bytes or references, too.

    Raises:
        ToolInputError: an unknown or refused name, a value of another type, no task. No rule was asked about it.
    """
    values = read_params(tool, PARAMETERS, given, REFUSED)
    task = values["task"]
    if not task.strip():
        raise ToolInputError(tool, "task", "it is empty: say what is to be done")
    mode, cleanup, context = values.get("mode"), values.get("cleanup"), values.get("context")
    attach_as = values.get("attachAs")
    if attach_as is not None:
        attach_as = read_params(f"{tool}.attachAs", _ATTACH_AS, attach_as)
    return SpawnParams(
        task=task,
        task_name=_text(values, "taskName"),
        label=_text(values, "label"),
        agent_id=_text(values, "agentId"),
        acp=values.get("runtime") == "acp",
        model=_text(values, "model"),
        thinking=_text(values, "thinking"),
        run_timeout_seconds=values.get("runTimeoutSeconds"),
        cwd=_text(values, "cwd"),
        thread=values.get("thread", False),
        mode=None if mode is None else SpawnMode(mode),
        cleanup=None if cleanup is None else SpawnCleanup(cleanup),
        context=None if context is None else SpawnContext(context),
        sandbox_required=values.get("sandbox") == "require",
        expects_completion=values.get("expectsCompletionMessage", True),
        completion_target=values.get("completionTarget"),
        light_context=values.get("lightContext", False),
        attachments=_attachments(tool, values.get("attachments", ()), program),
        attach_as=None if attach_as is None else str(attach_as.get("mountPath", "")).strip() or None,
        visible=values.get("visible", False),
        others=tuple(name for name in (*VISIBLE_ONLY, *SWARM) if name in values),
        tools=_tools(tool, values.get("tools")),
    )


def program_names() -> frozenset[str]:
    """The parameters by the names that a program writes, snake_case."""
    return frozenset(snake_name(parameter.name) for parameter in PARAMETERS)


def _text(values: Mapping[str, Any], name: str) -> str | None:
    return values.get(name, "").strip() or None


def _tools(tool: str, given: Mapping[str, Any] | None) -> ToolLists | None:
    """An empty ``allow`` could mean everything or nothing: it is refused."""
    if given is None:
        return None
    lists = read_params(f"{tool}.tools", _TOOLS, given)
    for word, entries in lists.items():
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                raise ToolInputError(tool, f"tools.{word}", f"its entries are names of tools, not {entry!r}")
    if "allow" in lists and not lists["allow"]:
        raise ToolInputError(tool, "tools.allow", 'it is empty: leave it out for no limit, or deny ["*"]')
    found = {word: Names.of(entries) for word, entries in lists.items() if entries}
    return ToolLists(allow=found.get("allow"), deny=found.get("deny")) if found else None


def _attachments(tool: str, given: Sequence[Any], program: bool) -> tuple[tuple[str, Any, str], ...]:
    files = []
    table = _PROGRAM_ATTACHMENT if program else _ATTACHMENT
    for at, item in enumerate(given):
        where = f"{tool}.attachments[{at}]"
        if not isinstance(item, Mapping):
            raise ToolInputError(tool, f"attachments[{at}]", "it is an object with name and content")
        file = read_params(where, table, item)
        content = file["content"]
        if isinstance(content, bytearray | memoryview):
            content = bytes(content)
        if not isinstance(content, str | bytes) and type(content).__name__ != "ObjectRef":
            why = f"it is text, bytes or an ObjectRef, not {type(content).__name__}"
            raise ToolInputError(tool, f"attachments[{at}].content", why)
        if "encoding" in file and not isinstance(content, str):
            raise ToolInputError(tool, f"attachments[{at}].encoding", "it is of a text, and the content is none")
        files.append((file["name"], content, file.get("encoding", "utf8")))
    return tuple(files)
