"""What is asked of the registry's process about credentials: group ``auth``, one thread, which alone reads stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.actors.auth_desk import AuthDesk
from openclaw_ray.actors.auth_wire import pack_answer
from openclaw_ray.actors.wire import unpack
from openclaw_ray.core.auth import AuthRules

__all__ = ["AuthEntries"]


class AuthEntries:
    """The entries of that group."""

    auth_desk: AuthDesk

    def auth(self, key: str, activation: str, packed: bytes) -> bytes:
        """What a turn asks, see `AuthDesk.answer`."""
        return pack_answer(self.auth_desk.answer(key, activation, unpack(packed)))

    def auth_look(self, agents: Mapping[str, AuthRules | None]) -> None:
        """Agents that are about to be known, or have other rules from now on."""
        self.auth_desk.look(agents)

    def auth_view(self, target: str) -> dict[str, Any]:
        """See `AuthDesk.view`.

        Raises:
            KeyError: there is no such session.
            UnknownAgent: there is no such agent.
        """
        return self.auth_desk.view(target)
