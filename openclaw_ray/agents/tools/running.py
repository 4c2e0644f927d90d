"""The commands of one turn: what is still at work when it ends, or is to end, is ended."""

from __future__ import annotations

import threading
from typing import Any

from openclaw_ray.agents.tools.command import Command
from openclaw_ray.agents.tools.files import Fault
from openclaw_ray.agents.tools.tool import Caller

__all__ = ["MOST_COMMANDS", "Running", "running"]

MOST_COMMANDS = 16
"""Commands of one turn that run side by side."""
_KEPT = 64  # ended ones that can still be asked about
_ENDS_WITHIN = 12.0


class Running:
    """The commands of one turn, by id, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commands: dict[str, Command] = {}
        self._number = 0
        self._closed = False

    def start(self, background: bool, **command: Any) -> Command:
        """Start one.

        Raises:
            Fault: there are too many, or the turn has ended.
        """
        with self._lock:
            at_work = sum(each.runs for each in self._commands.values())
            if self._closed:
                raise Fault("the turn has ended")
            if at_work >= MOST_COMMANDS:
                raise Fault(f"{at_work} commands run already, the limit is {MOST_COMMANDS}; end one with process kill")
            for id in [id for id, each in self._commands.items() if not each.runs][:-_KEPT]:
                del self._commands[id]
            self._number += 1
            made = Command(f"p{self._number}", background=background, **command)
            self._commands[made.id] = made
            return made

    def shown(self) -> list[Command]:
        """Those in the background."""
        with self._lock:
            return [each for each in self._commands.values() if each.background]

    def end_soon(self, why: str) -> None:
        """The turn is to end: so are they, at once. Waits for nothing."""
        with self._lock:
            self._closed = True
            commands = list(self._commands.values())
        for each in commands:
            each.end(why)

    def end(self) -> None:
        """The turn has ended: end them, and wait until they have."""
        self.end_soon("the turn ended")
        for each in list(self._commands.values()):
            each.join(_ENDS_WITHIN)


def running(caller: Caller) -> Running:
    """The commands of the turn that calls."""
    held = caller.turn._held
    found: Running | None = held.get("running")
    if found is None:
        found = held.setdefault("running", Running())
        caller.turn._at_end.append(found.end)
        caller.port.on_cancel(found.end_soon)
    return found
