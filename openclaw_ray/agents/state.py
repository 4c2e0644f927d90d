"""``turn.state``: a small JSON dict that stays with the session from turn to turn (DESIGN.md 7)."""

from __future__ import annotations

import json
from typing import Any

from openclaw_ray.core.bounds import STATE_MAX_BYTES
from openclaw_ray.core.errors import StateTooLarge

__all__ = ["dump_state", "load_state"]


def load_state(data: bytes | None) -> dict[str, Any]:
    """The dict of a journaled state; a new one if there is none."""
    state: dict[str, Any] = json.loads(data) if data else {}
    return state


def dump_state(state: Any, before: bytes | None, limit: int = STATE_MAX_BYTES) -> bytes | None:
    """JSON to commit, or `None` if it is as it was.

    Raises:
        TypeError: it is no dict, or a key's value is not JSON; the text names the key.
        StateTooLarge: more than ``limit`` bytes.
    """
    if not isinstance(state, dict):
        raise TypeError(f"turn.state is a dict that JSON can hold; it was replaced by {type(state).__name__}")
    if not state and before is None:
        return None
    for key in state:
        if not isinstance(key, str):
            raise TypeError(f"turn.state has the key {key!r}; JSON keys are text, it would come back as another")
    try:
        data = _dumps(state)
    except (TypeError, ValueError, RecursionError) as exc:
        raise TypeError(_blame(state, exc)) from exc
    if len(data) > limit:
        raise StateTooLarge(len(data), limit)
    return None if data == before else data


def _dumps(value: Any) -> bytes:
    # not a number is not JSON, and surrogates are escaped: any reader can read it back
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _blame(state: dict[str, Any], exc: Exception) -> str:
    for key, value in state.items():
        try:
            _dumps(value)
        except (TypeError, ValueError, RecursionError) as why:
            return f"turn.state[{key!r}] is not JSON: {why}"
    return f"turn.state is not JSON: {exc}"
