"""Keys under which a client may open a session of an agent's beside its main one (SPEC.md D1, K 1; DESIGN.md 7).

1. ``agent:<id>:<name>``: a session that nobody spawned, at depth 0, with a transcript and a state of its own: one for
   each user, group or room, as the keys of conversations are (``agent:main:direct:42``). It is made by the first
   message of a client; what a session sends to a key that is nobody's is an error, as it always was (SPEC.md B2).
2. It is not the agent's *main* session: it sees what was spawned from it and, by visibility ``tree``, nothing else; the
   sandbox mode ``non-main`` is about it; and it can be deleted, and opened anew after that.
3. Names that mean something else are not to be had: those of children, jobs, clients' roots, dashboards, threads, and
   what begins as ``main`` does. So no message can make a session that is taken for one of those.
"""

from __future__ import annotations

from typing import Final

from openclaw_ray.core import keys

__all__ = ["KEY_MOST", "is_opened", "why_not_opened"]

KEY_MOST: Final = 512
"""Characters of a key."""
_MEANT: Final = {
    "main": "means the agent's main session",
    "subagent": "is a child's, which is spawned",
    "acp": "is an external harness's",
    "cron": "is a scheduled job's",
    "driver": "is a client's root",
    "dashboard": "is a dashboard's",
}


def why_not_opened(key: str) -> str:
    """Why no client's message opens a session under ``key`` (3); empty if one does."""
    seen = keys.inspect(key)
    if seen.shape is not keys.KeyShape.AGENT or seen.agent_id is None or seen.rest is None:
        return f"{key!r:.80} is no session key; a key is agent:<agent id>:<name>"
    if keys.normalise_agent_id(seen.agent_id) is None:
        return f"{seen.agent_id!r:.80} is no agent id"
    if seen.thread_id is not None:
        return f"it is a thread of {seen.base_key}"
    head = seen.rest.partition(":")[0]
    if head in _MEANT:
        return f"a name that begins with {head!r} {_MEANT[head]}"
    if len(seen.normalised) > KEY_MOST:
        return f"it has {len(seen.normalised)} characters of at most {KEY_MOST}"
    if not seen.normalised.isprintable() or any(letter.isspace() for letter in seen.normalised):
        return "a key has no spaces and no control characters"
    return ""


def is_opened(key: str) -> bool:
    """Whether a session under this key, which is there and at depth 0, is one that a client has opened."""
    return not why_not_opened(key)
