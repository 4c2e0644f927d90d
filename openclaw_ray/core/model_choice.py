"""Which model and which thinking level a new child gets (SPEC.md A1, A6 row 21).

Model, the first that is there: the call's, the target agent's for sub-agents, the defaults' for sub-agents, then for
one's own agent the caller's active one, for another agent that agent's own.

Thinking, the first that is there: the call's, the requester agent's for sub-agents, the target agent's, the defaults',
then the caller's active level. What is no level is an error where somebody wrote it; a caller's is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.limits import AgentSettings

__all__ = ["THINKING_LEVELS", "Choice", "choose", "thinking_level"]

THINKING_LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra")
"""The words of ``thinking``."""
_ALIASES: Final = {
    "none": "off",
    "min": "minimal",
    "on": "low",
    "med": "medium",
    "mid": "medium",
    "extrahigh": "xhigh",
    "auto": "adaptive",
    "maximum": "max",
}
_MODEL: Final = re.compile(r"[^\s/\x00-\x1f]+(/[^\s/\x00-\x1f]+)*")
_MODEL_MAX: Final = 256
_SHOWN: Final = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """What a child gets; `None` where nobody said anything."""

    model: str | None = None
    thinking: str | None = None


def choose(
    requester: AgentSettings,
    target: AgentSettings,
    *,
    same_agent: bool,
    model: str | None = None,
    thinking: str | None = None,
    caller_model: str | None = None,
    caller_thinking: str | None = None,
) -> Choice | Refusal:
    """Model and level of a child.

    Args:
        requester, target: settings of the agents that ask and are asked for.
        same_agent: they are one.
        model, thinking: as the call has them.
        caller_model, caller_thinking: of the turn that calls.
    """
    inherited = (caller_model or target.model) if same_agent else target.model
    picked = model or target.child_model or inherited
    if picked is not None and (_MODEL.fullmatch(picked) is None or len(picked) > _MODEL_MAX):
        where = "the call" if model else target.child_model_path if target.child_model else "the agent's model"
        text = f"not a model: {_quote(picked)} ({where}); say model or provider/model, without blanks"
        return Refusal("error", text, "model")
    written = (
        (thinking, "the call"),
        (requester.child_thinking, requester.child_thinking_path),
        (target.child_thinking, target.child_thinking_path),
        (target.default_thinking, "agents.defaults.subagents.thinking"),
    )
    for word, where in written:
        if word:
            level = thinking_level(word)
            if level is None:
                text = f"no such level: {_quote(word)} ({where}; levels: {', '.join(THINKING_LEVELS)})"
                return Refusal("error", text, "thinking")
            return Choice(picked, level)
    return Choice(picked, thinking_level(caller_thinking or ""))


def thinking_level(word: str) -> str | None:
    """The canonical level that a word means, `None` if it means none."""
    plain = re.sub(r"[\s_-]+", "", word).lower()
    plain = _ALIASES.get(plain, plain)
    return plain if plain in THINKING_LEVELS else None


def _quote(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
