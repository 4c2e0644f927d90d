"""Session keys: reading, normalising and minting them; depth and role (SPEC.md D, E1).

A key names a session: ``agent:<agent id>:<rest>``. Children have flat keys at every depth,
``agent:<id>:subagent:<uuid>``; how deep they are is in their record. The old nested form, in which a
grandchild's key has two ``subagent:`` segments, is understood but never minted. Keys from outside may be
spelt in any letter case; compare only normalised ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_ray.core.key_words import (
    ChatType,
    ControlScope,
    DmScope,
    KeyKind,
    KeyShape,
    KeyView,
    Role,
    RoleName,
)

__all__ = [
    "ChatType",
    "ControlScope",
    "DmScope",
    "KeyKind",
    "KeyShape",
    "KeyView",
    "Role",
    "RoleName",
    "depth",
    "driver_key",
    "inspect",
    "is_subagent",
    "main_key",
    "mint_child",
    "normalise_agent_id",
    "normalise_key",
    "peer_key",
    "role",
]

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Ids that a channel gave and in which letter case matters: the id after signal's group marker, and everything
# after matrix's room marker except for the thread marker. All else in a key is folded.
_OPAQUE = re.compile(
    r"(?:^|:)signal:group:(?P<id>[^:]+)|^(?:agent:[^:]+:)?matrix:(?:channel|group):(?P<tail>.+)", re.I
)
_THREAD = ":thread:"
_SEGMENT = re.compile(r"(?:^|:)subagent:(?=[^:])")


def normalise_key(key: str) -> str:
    """The canonical spelling of a key: trimmed and lower-case, but for ids in which letter case matters."""
    text = key.strip()
    low = text.lower()
    if low == text or ("signal:" not in low and "matrix:" not in low):
        return low
    found = _OPAQUE.search(text)
    if found is None:
        return low
    start, end = found.span(found.lastgroup or 0)
    kept = text[start:end]
    mark = kept.lower().rfind(_THREAD)
    if mark >= 0:
        kept = kept[:mark] + _THREAD + kept[mark + len(_THREAD) :]
    return text[:start].lower() + kept + text[end:].lower()


def normalise_agent_id(value: object) -> str | None:
    """The lower-case form of an agent id, or `None` if the value is none.

    An id has 1 to 64 letters, digits, ``_`` and ``-``, and begins with a letter or digit (SPEC.md A2).
    Nothing is repaired: an error message or a path that a model pastes as an id must not become an agent.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text.lower() if _AGENT_ID.fullmatch(text) else None


def is_subagent(key: str) -> bool:
    """Whether a *normalised* key is a spawned child's (SPEC.md D2)."""
    if key.startswith("subagent:"):
        return True
    parts = key.split(":", 3)
    return len(parts) == 4 and parts[0] == "agent" and parts[1] != "" and parts[2] == "subagent"


def inspect(key: str | None) -> KeyView:
    """Everything that a key says. Never raises: a malformed key has a shape of its own (SPEC.md D2)."""
    text = normalise_key(key or "")
    shape, agent_id, rest = _parse(text)
    body = rest if rest is not None else text if shape is KeyShape.LEGACY_OR_ALIAS else ""
    head, colon, tail = body.partition(":")
    base, mark, thread = text.rpartition(_THREAD)
    threaded = bool(mark and thread)
    return KeyView(
        shape=shape,
        agent_id=agent_id,
        rest=rest,
        kind=None if rest is None else _kind(head, colon),
        is_subagent=head == "subagent" and bool(colon),
        is_cron=rest is not None and head == "cron" and bool(colon),
        is_acp=head == "acp" and bool(colon),
        is_incognito=head in ("subagent", "dashboard") and tail.startswith("incognito-"),
        key_depth=len(_SEGMENT.findall(body)),
        thread_id=thread if threaded else None,
        base_key=base if threaded else text,
        normalised=text,
        chat_type=_chat_type(body),
    )


def _parse(text: str) -> tuple[KeyShape, str | None, str | None]:
    if not text:
        return KeyShape.MISSING, None, None
    if not text.startswith("agent:"):
        return KeyShape.LEGACY_OR_ALIAS, None, None
    agent_id, _, rest = text[len("agent:") :].partition(":")
    if not agent_id or not rest or rest.startswith(":"):
        return KeyShape.MALFORMED_AGENT, None, None
    return KeyShape.AGENT, agent_id, rest


def _kind(head: str, colon: str) -> KeyKind:
    if head == "main":
        return KeyKind.MAIN
    return KeyKind(head) if colon and head in ("subagent", "acp", "cron") else KeyKind.OTHER


def _chat_type(body: str) -> ChatType:
    parts = body.split(":")
    for word in ("group", "channel", "direct", "dm"):
        if word in parts:
            return ChatType.DIRECT if word == "dm" else ChatType(word)
    return ChatType.UNKNOWN


# --------------------------------------------------------------------------- depth and role


def depth(key: str, store: Mapping[str, Mapping[str, Any]], default_agent: str = "main") -> int:
    """How deep a session is in its tree; a root is at 0 (SPEC.md D3).

    The stored ``spawnDepth`` counts if it is a whole number of 0 or more; else the spawner's depth plus one,
    through ``spawnedBy``; else the ``subagent:`` segments of the key. Navigation parents add nothing. A
    lineage that runs in a circle ends where it closes.

    Args:
        key: a key in any spelling, or a session id.
        store: entries by key, as OpenClaw writes them.
        default_agent: whose a key without ``agent:`` is.
    """
    name, hops, seen = _in_store(key, store, default_agent), 0, set[str]()
    while name not in seen:
        seen.add(name)
        entry = store.get(name, {})
        stored = _stored_depth(entry.get("spawnDepth"))
        if stored is not None:
            return hops + stored
        spawner = entry.get("spawnedBy")
        if not isinstance(spawner, str) or not spawner.strip():
            break
        name, hops = _in_store(spawner, store, default_agent), hops + 1
    return hops + len(_SEGMENT.findall(name))


def _in_store(key: str, store: Mapping[str, Mapping[str, Any]], default_agent: str) -> str:
    if key in store:
        return key
    name = normalise_key(key)
    for candidate in (name, f"agent:{default_agent}:{name}"):
        if candidate in store:
            return candidate
    for candidate, entry in store.items():
        if entry.get("sessionId") == key:
            return candidate
    return name


def _stored_depth(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_MAIN = Role(RoleName.MAIN, ControlScope.CHILDREN, True)
_ORCHESTRATOR = Role(RoleName.ORCHESTRATOR, ControlScope.CHILDREN, True)
_LEAF = Role(RoleName.LEAF, ControlScope.NONE, False)


def role(depth: int, max_spawn_depth: int) -> Role:
    """The role at a depth under a cap (SPEC.md E1)."""
    return _MAIN if depth <= 0 else _ORCHESTRATOR if depth < max_spawn_depth else _LEAF


# --------------------------------------------------------------------------- making keys


def main_key(agent_id: str) -> str:
    """The key of an agent's main session. The id must be normalised; nothing is checked (hot path)."""
    return f"agent:{agent_id}:main"


def driver_key(agent_id: str, uuid: str) -> str:
    """The key of a client's root (DESIGN.md 7). The id must be normalised; nothing is checked (hot path)."""
    return f"agent:{agent_id}:driver:{uuid}"


def mint_child(agent_id: str, uuid: str, *, incognito: bool = False) -> str:
    """A child's key, flat at every depth. The id must be normalised; nothing is checked (hot path)."""
    return f"agent:{agent_id}:subagent:incognito-{uuid}" if incognito else f"agent:{agent_id}:subagent:{uuid}"


def peer_key(
    agent_id: str,
    channel: str,
    peer_kind: ChatType | str,
    peer_id: str | None,
    *,
    dm_scope: DmScope | str = DmScope.MAIN,
    account_id: str | None = None,
    identity_links: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The key of the session in which a conversation on a channel is held (SPEC.md D1).

    Args:
        agent_id: whose session.
        channel: the channel's name.
        peer_kind: ``direct``, ``group`` or ``channel``.
        peer_id: who or where; without one a direct message goes to the main session.
        dm_scope: which direct messages share a session; groups and rooms always have their own.
        account_id: our account on the channel; ``default`` if there is none.
        identity_links: one name for a person -> ids on channels, bare or as ``<channel>:<id>``.

    Raises:
        ValueError: the agent id, the kind or the scope is none.
    """
    agent = normalise_agent_id(agent_id)
    if agent is None:
        raise ValueError(f"not an agent id: {agent_id!r}")
    kind, scope = ChatType(peer_kind), DmScope(dm_scope)
    where, who = channel.strip().lower() or "unknown", (peer_id or "").strip()
    if kind is not ChatType.DIRECT:
        return normalise_key(f"agent:{agent}:{where}:{kind}:{who or 'unknown'}")
    if scope is DmScope.MAIN or not who:
        return main_key(agent)
    who = _linked(where, who, identity_links or {}).lower()
    if scope is DmScope.PER_PEER:
        return f"agent:{agent}:direct:{who}"
    if scope is DmScope.PER_CHANNEL_PEER:
        return f"agent:{agent}:{where}:direct:{who}"
    account = re.sub(r"[^a-z0-9_-]+", "-", (account_id or "").strip().lower()).strip("-")[:64] or "default"
    return f"agent:{agent}:{where}:{account}:direct:{who}"


def _linked(channel: str, peer_id: str, links: Mapping[str, Sequence[str]]) -> str:
    spellings = {peer_id.lower(), f"{channel}:{peer_id}".lower()}
    for name, ids in links.items():
        if name.strip() and any(one.strip().lower() in spellings for one in ids):
            return name.strip()
    return peer_id
