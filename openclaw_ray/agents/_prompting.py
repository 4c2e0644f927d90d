"""``turn.prompt()``: the parts of `openclaw_ray.core.prompts`, with what has to be read for them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from openclaw_ray.agents.session_view import SessionView
from openclaw_ray.core.prompts import (
    BOOTSTRAP_FILES,
    BOOTSTRAP_MAX,
    BootstrapFile,
    Prompt,
    PromptScene,
    ambient_block,
    system_prompt,
)
from openclaw_ray.core.protocol.messages import Spec
from openclaw_ray.core.subagent_rows import ChildFacts

__all__ = ["prompt_of"]


def prompt_of(
    spec: Spec,
    session: SessionView,
    children: Sequence[ChildFacts],
    awaiting: Sequence[tuple[str, str]],
    tools: tuple[str, ...],
) -> Prompt:
    """The prompt of a session as it is now.

    Args:
        children: as the registry knows them.
        awaiting: (session key, text) of children that ended and that the program was not told of.
        tools: names of those that it may call.
    """
    facts = spec.facts
    files = () if facts is None or facts.light_context else _bootstrap(facts.home)
    scene = PromptScene(
        key=session.key,
        agent_id=session.agent_id,
        depth=session.depth,
        role=session.role,
        requester_key=session.requester_key,
        depth_cap=spec.depth_cap,
        can_spawn=spec.can_spawn,
        cwd=session.cwd,
        attachments=session.attachments,
        facts=facts,
        tools=tools,
    )
    return Prompt(
        system=system_prompt(scene, files),
        ambient=ambient_block(children, awaiting, round(time.time() * 1000)),
        bootstrap=files,
        model=session.model,
        thinking=session.thinking,
        tools=tools,
    )


def _bootstrap(home: str | None) -> tuple[BootstrapFile, ...]:
    """The agent's files, as far as they are there and can be read."""
    if home is None:
        return ()
    found = []
    for name in BOOTSTRAP_FILES:
        try:
            with open(os.path.join(os.path.expanduser(home), name), encoding="utf-8", errors="replace") as file:
                text = file.read(BOOTSTRAP_MAX + 1)
        except OSError:  # an agent need not have one
            continue
        cut = text if len(text) <= BOOTSTRAP_MAX else f"{text[:BOOTSTRAP_MAX]}\n[the rest of the file was cut]"
        found.append(BootstrapFile(name, cut))
    return tuple(found)
