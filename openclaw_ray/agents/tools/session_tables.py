"""The parameters of the session tools; the gateway's names and the command line take the same (SPEC.md B5-B7)."""

from __future__ import annotations

from openclaw_ray.core.history import LIMIT_MAX
from openclaw_ray.core.session_rows import KINDS, LIST_MAX
from openclaw_ray.core.tool_params import Kind, Parameter

__all__ = ["CHANGED", "HISTORY", "LINEAGE", "LISTED", "STATUS"]

_OF_SESSION = "A session key, a session id, current, or main."

LISTED = (
    Parameter("kinds", Kind.LIST, f"Only these: {', '.join(KINDS)}."),
    Parameter("limit", Kind.WHOLE, "At most so many; 100 if left out.", least=1, most=LIST_MAX),
    Parameter("offset", Kind.WHOLE, "Leave out the first so many; nextOffset of the page before.", least=0),
    Parameter("activeMinutes", Kind.WHOLE, "Only what changed in the last so many minutes.", least=1),
    Parameter("activeOnly", Kind.FLAG, "Only what is at work, or has something below it that is."),
    Parameter("excludeSubagents", Kind.FLAG, "Only top-level sessions."),
    Parameter("label", Kind.TEXT, "Only of this label."),
    Parameter("agentId", Kind.TEXT, "Only of this agent."),
    Parameter("spawnedBy", Kind.TEXT, "Only children of this session."),
    Parameter("search", Kind.TEXT, "Only where key, label, task name or task has this text."),
    Parameter("archived", Kind.ANY, 'true: only deleted ones. "all": those, too.'),
    Parameter("messageLimit", Kind.WHOLE, "Show so many of each one's last messages.", least=0, most=20),
    Parameter("includeLastMessage", Kind.FLAG, "Show each one's last message, cut."),
    Parameter("includeDerivedTitles", Kind.FLAG, "Show a title made from what each one was asked."),
)

HISTORY = (
    Parameter("sessionKey", Kind.TEXT, _OF_SESSION, also=("key",), required=True),
    Parameter("limit", Kind.WHOLE, "At most so many rows; 100 if left out.", least=1, most=LIMIT_MAX),
    Parameter("offset", Kind.WHOLE, "Leave out the newest so many; nextOffset of the page before.", least=0),
    Parameter("includeTools", Kind.FLAG, "With the rows of tools."),
    Parameter("messageId", Kind.TEXT, "The page around this message; with sessionId."),
    Parameter("sessionId", Kind.TEXT, "The transcript that it must be."),
)

STATUS = (
    Parameter("sessionKey", Kind.TEXT, f"{_OF_SESSION} The own one if left out.", also=("key",)),
    Parameter("model", Kind.TEXT, "A model for it from now on; default takes that away."),
    Parameter("changesSince", Kind.TEXT, "The stateVersion that you know: says whether anything has changed."),
)

_SEEN = (
    Parameter("sessionId", Kind.TEXT, "Only if it is this session still.", also=("expectedSessionId",)),
    Parameter(
        "lifecycleRevision",
        Kind.WHOLE,
        "Only if it is of this revision still.",
        also=("expectedLifecycleRevision",),
        least=0,
    ),
)
_KEY = Parameter("key", Kind.TEXT, _OF_SESSION, also=("sessionKey", "session_key"), required=True)

CHANGED = {
    "patch": (_KEY, *_SEEN, Parameter("label", Kind.TEXT, "patch: its label; empty takes it away.", required=True)),
    "reset": (_KEY, *_SEEN),
    "delete": (_KEY, *_SEEN),
}
"""What each change takes."""

_BY_HOST = (
    "spawnedBy",
    "spawnDepth",
    "parentSessionKey",
    "completionOwnerSessionKey",
    "subagentRole",
    "subagentControlScope",
    "inheritedToolAllow",
    "inheritedToolDeny",
    "spawnedBySessionId",
    "spawnedBySenderIsOwner",
    "parentSessionLifecycleRevision",
    "spawnedWorkspaceDir",
    "spawnedCwd",
)
LINEAGE = {
    **dict.fromkeys(_BY_HOST, "it is set by the host when the session is made, and never after that"),
    "model": "there is nothing here that a session's own model could govern: its agent is a program",
}
"""Names that a patch refuses, with the reason (R42)."""
