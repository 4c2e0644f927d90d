"""Agents that allowlists name and that the configuration does not have (SPEC.md B7; R129).

1. Looked at are ``allowAgents`` of the defaults and of each agent, and ``allow`` of both places of ``agentToAgent``;
   ``*`` and patterns name nobody.
2. Such an id is refused at a spawn and left out of ``agents_list``, so that it does no harm; it is told of because it
   is most often an agent that was renamed or removed.
3. Agents that are passed in code are not in a file. A configuration that names no agent leaves all of them to code:
   nothing in it is stale.
4. It is only said what to take out, and where: a file is its author's, with its comments, includes and trailing
   commas, and is never written by us.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from openclaw_ray.config._config import Config
from openclaw_ray.config._include import read_text
from openclaw_ray.config._text import positions
from openclaw_ray.core.keys import normalise_agent_id

__all__ = ["StaleId", "stale_ids"]


@dataclass(frozen=True, slots=True)
class StaleId:
    """An id in an allowlist that names no agent.

    Attributes:
        path: of the entry, as ``agents.defaults.subagents.allowAgents[1]``.
        agent_id: as it is written.
        near: the configured id that it resembles.
        file, line: where it stands, if that is in the file itself; counted from 1.
    """

    path: str
    agent_id: str
    near: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line is not None else ""
        meant = f"; did you mean {self.near!r}?" if self.near else ""
        return f"{where}{self.path} names {self.agent_id!r}, which is no agent of this configuration{meant}"


def stale_ids(config: Config, known: Iterable[str] = ()) -> tuple[StaleId, ...]:
    """Ids in allowlists that name no agent, in the order of the lists (1).

    Args:
        known: normalised ids of agents that are passed in code.
    """
    if not config.named_agents:
        return ()
    there = {*config.agent_ids, *known}
    lines = _lines(config.source)
    found = []
    for path, ids in _lists(config):
        for at, written in enumerate(ids):
            agent = normalise_agent_id(written)
            if "*" in written or not written.strip() or agent in there:
                continue
            here = f"{path}[{at}]"
            line = lines.get(here)
            near = difflib.get_close_matches((agent or written).lower(), sorted(there), n=1)
            file = config.source if line is not None else None
            found.append(StaleId(here, written, near[0] if near else None, file, line))
    return tuple(found)


def _lists(config: Config) -> Iterator[tuple[str, tuple[str, ...]]]:
    root = config.root
    places = [("agents.defaults.subagents.allowAgents", root.agents.defaults.subagents.allow_agents)]
    for path, entry in config.entries():
        places.append((f"{path}.subagents.allowAgents", entry.subagents.allow_agents))
    places.append(("tools.agentToAgent.allow", root.tools.agent_to_agent.allow))
    places.append(("session.agentToAgent.allow", root.session.agent_to_agent.allow))
    return ((path, tuple(str(one) for one in ids)) for path, ids in places if ids is not None)


def _lines(source: str) -> dict[str, int]:
    """Path -> line, of the file that the configuration is from; nothing if it is from none."""
    path = Path(source)
    try:
        return positions(read_text(path)).lines if path.is_file() else {}
    except (OSError, UnicodeDecodeError):
        return {}
