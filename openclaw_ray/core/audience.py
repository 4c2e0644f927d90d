"""Whose memory a session may see: the audience of its tree's root, proved hop by hop (SPEC.md I3).

1. The host stamps a child when it is made: who spawned it, that session's id and revision at that time, and whether the
   turn that made the call was the owner's. No argument of a tool and no patch sets any of it.
2. `resolve` walks from the session to its root, at most `MOST_HOPS` up. Every parent must be of the same agent, and be
   the very session that is in the stamp: same id, same revision. A reset or a delete changes one of them, so that every
   audience below is void from the next operation on; the child has to be spawned anew. A child's own reset changes
   nothing above it.
3. The root decides. A direct chat with the owner is the owner's private memory; any other conversation is that
   conversation's; a root that is neither is ``ineligible``.
4. The owner's flag must be true at every hop; missing or false gives no owner's access.
5. A provider of memory is given the audience that came out, and never walks itself. It asks anew at each protected
   operation (`Lease`); a lease that was void once stays so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.keys import ChatType, KeyKind, inspect

__all__ = ["MOST_HOPS", "Audience", "AudienceKind", "Denial", "DenialReason", "Lease", "Line", "Stamp", "resolve"]

MOST_HOPS: Final = 64
"""Parents that are walked at most."""


@compact
@dataclass(frozen=True, slots=True)
class Stamp:
    """What the host wrote on a child when it was made (1). Of an older journal a field may be `None`: unknown.

    Attributes:
        spawned_by: session key of the parent.
        spawned_by_session_id: the parent's session id then.
        parent_revision: the parent's revision then; `None` only equals a parent that has none.
        sender_is_owner: whether the turn that made the call was the owner's; never inferred from the start itself.
    """

    spawned_by: str
    spawned_by_session_id: str | None = None
    parent_revision: int | None = None
    sender_is_owner: bool | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A session, as the walk sees it.

    Attributes:
        key, session_id, agent_id: which one.
        revision: how often it was made anew under its key; `None` if that was never counted.
        requester: key of its parent, empty for a root.
        stamp: what was written on it; `None` for a root, or a child of before there were stamps.
        owner: of a root: whether it is the owner who talks to it.
        gone: it was deleted or archived.
    """

    key: str
    session_id: str
    agent_id: str
    revision: int | None
    requester: str = ""
    stamp: Stamp | None = None
    owner: bool = False
    gone: bool = False


class AudienceKind(StrEnum):
    """Whose memory it is."""

    OWNER_PRIVATE = "owner-private"
    """The owner's own."""
    CONVERSATION = "conversation"
    """That of one direct chat, group or channel."""


class DenialReason(StrEnum):
    """Why there is none. Source: SPEC.md I3."""

    STALE_LINEAGE = "stale-lineage"
    """A session above is not the one that spawned this one any more, or the line runs in a circle or is too long."""
    INELIGIBLE = "ineligible"
    """The root is no conversation."""
    UNVERIFIED = "unverified"
    """A session on the way has no full stamp: it is of before there were stamps."""


@compact
@dataclass(frozen=True, slots=True)
class Audience:
    """Whose memory a session may see.

    Attributes:
        kind: the owner's, or a conversation's.
        root_key: the conversation: session key of the root.
        agent_id: whose memory store it is.
        lineage: (key, session id, revision) of each session from this one to the root, as it was proved.
    """

    kind: AudienceKind
    root_key: str
    agent_id: str
    lineage: tuple[tuple[str, str, int | None], ...]


@compact
@dataclass(frozen=True, slots=True)
class Denial:
    """Why a session has no audience.

    Attributes:
        reason: in a word.
        at: session key at which it failed.
        text: what is wrong there, and the way out.
    """

    reason: DenialReason
    at: str
    text: str


def resolve(key: str, find: Callable[[str], Line | None]) -> Audience | Denial:
    """The audience of a session, or why it has none.

    Args:
        key: session key.
        find: gives a session by key, `None` for one that there is not.
    """
    line = find(key)
    if line is None:
        return _stale(key, "there is no such session")
    lineage: list[tuple[str, str, int | None]] = []
    seen: set[str] = set()
    owner = True
    while True:
        if line.gone:
            return _stale(line.key, "it was deleted or archived")
        if line.key in seen:
            return _stale(line.key, "its lineage runs in a circle")
        seen.add(line.key)
        lineage.append((line.key, line.session_id, line.revision))
        if not line.requester:
            return _of_root(line, owner, tuple(lineage))
        if len(lineage) > MOST_HOPS:
            return _stale(line.key, f"it is more than {MOST_HOPS} spawns below its root")
        above = _parent(line, find)
        if isinstance(above, Denial):
            return above
        assert line.stamp is not None
        owner = owner and line.stamp.sender_is_owner is True
        line = above


def _parent(line: Line, find: Callable[[str], Line | None]) -> Line | Denial:
    """The session above, if it is the one that spawned this one (2)."""
    stamp = line.stamp
    if stamp is None or stamp.spawned_by_session_id is None or stamp.sender_is_owner is None:
        text = "it was made before sessions were stamped; spawn it again to give it memory"
        return Denial(DenialReason.UNVERIFIED, line.key, text)
    above = find(stamp.spawned_by)
    if stamp.spawned_by != line.requester or above is None or above.gone:
        return _stale(line.key, f"{stamp.spawned_by}, which spawned it, is gone")
    if above.agent_id != line.agent_id:
        text = f"it is of agent {line.agent_id}, spawned by agent {above.agent_id}; memory is not shared between agents"
        return Denial(DenialReason.STALE_LINEAGE, line.key, text)
    if (above.session_id, above.revision) != (stamp.spawned_by_session_id, stamp.parent_revision):
        return _stale(line.key, f"{above.key} was reset since it spawned it")
    return above


def _of_root(root: Line, owner: bool, lineage: tuple[tuple[str, str, int | None], ...]) -> Audience | Denial:
    info = inspect(root.key)
    direct = info.kind is KeyKind.MAIN or info.chat_type is ChatType.DIRECT
    if direct and root.owner and owner:
        return Audience(AudienceKind.OWNER_PRIVATE, root.key, root.agent_id, lineage)
    # the bucket of all direct chats is nobody's conversation in particular: without the owner it is not shared
    if info.chat_type in (ChatType.DIRECT, ChatType.GROUP, ChatType.CHANNEL):
        return Audience(AudienceKind.CONVERSATION, root.key, root.agent_id, lineage)
    text = "its root is neither a chat nor a group or channel, or it is not the owner who asks"
    return Denial(DenialReason.INELIGIBLE, root.key, text)


def _stale(at: str, why: str) -> Denial:
    return Denial(DenialReason.STALE_LINEAGE, at, f"{why}; spawn a new session")


class Lease:
    """An audience that is proved anew at each use; void once, void for good (5).

    Args:
        found: the audience as it was resolved first.
    """

    def __init__(self, found: Audience) -> None:
        self.audience = found
        self._void: Denial | None = None

    def renewed(self, found: Audience | Denial) -> Audience | Denial:
        """What holds now that it was resolved again: the same audience over the same sessions, or a denial."""
        if self._void is None:
            if isinstance(found, Denial):
                self._void = found
            elif found != self.audience:
                self._void = _stale(found.root_key, "a session of its lineage was reset since the lease was given")
        return self.audience if self._void is None else self._void
