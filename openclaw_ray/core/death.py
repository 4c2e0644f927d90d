"""How a process of the runtime died: the true cause, told apart from what is only known to look like it (DESIGN.md 8).

What is known of a death comes from up to four sides:

1. Ray's own word. It is true of a node, of an owner, of Ray's memory monitor and of `ray.kill`; of all other ends Ray
   only saw a connection close, and says so in many words that name no cause.
2. The system's word, an `Exit`: the code that the process ended with, or the signal that ended it.
3. Whether the pool is gone, too: Ray ends what it owned by a signal, before it says that the owner has died.
4. The kernel's count of processes that it ended for want of memory: a SIGKILL with which that count rises was one.

`tell` weighs them in this order. What nobody knows is said to be unknown, with Ray's own words.
"""

from __future__ import annotations

import re
import signal
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.core.compact import compact

__all__ = ["Death", "DeathKind", "Exit", "of_node", "says_enough", "tell"]

_TEXT_MAX = 600  # characters
_NODE = re.compile(r"node (?:has )?died|node death|node was (?:terminated|drained|preempted)|NodeDied", re.IGNORECASE)
_NODE_ID = re.compile(r"node id: ?([0-9a-f]{8,})", re.IGNORECASE)
_MEMORY = re.compile(r"low on memory|NODE_OUT_OF_MEMORY|OutOfMemory")
_MEMORY_FIGURES = re.compile(r"was ([\d.]+ ?GB used / [\d.]+ ?GB)")
_OWNER = re.compile(r"owner has died|owner (?:worker|process) (?:has )?died|OWNER_DIED", re.IGNORECASE)
_KILLED = "killed by `ray.kill`"
_HAD_TO_EXIT = 1
"""The code with which a process leaves when Ray tells it to."""
_FROM_OUTSIDE = (signal.SIGTERM, signal.SIGKILL)


class DeathKind(StrEnum):
    """What ended a process."""

    EXIT = "exit"
    """It ended itself, with an exit code."""
    SIGNAL = "signal"
    """A signal ended it, its own fault (SIGSEGV) or from outside (SIGKILL)."""
    OUT_OF_MEMORY = "out_of_memory"
    """The runtime, Ray's memory monitor or the kernel ended it, as its node was short of memory."""
    NODE = "node"
    """Its node died, or the cluster lost it."""
    POOL = "pool"
    """The pool, which owns it, died; Ray ends what it owned."""
    ENDED = "ended"
    """The runtime itself, or somebody by `ray.kill`, had Ray end it."""
    UNKNOWN = "unknown"
    """Nobody has seen how it ended."""


@compact
@dataclass(frozen=True, slots=True)
class Exit:
    """How the system saw a process end: by its own exit code, or by a signal; exactly one of them is given."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of_status(cls, status: int) -> Exit:
        """From a wait status, as `os.waitpid` gives it."""
        number = status & 0x7F
        return cls(signal=number) if number else cls(code=status >> 8 & 0xFF)


@compact
@dataclass(frozen=True, slots=True)
class Death:
    """The end of one process.

    Attributes:
        kind: `DeathKind`.
        text: one readable line, the end of a sentence that began with the process.
        exit_code: if it ended itself.
        signal: name of the signal that ended it.
        node: id of the node that died.
    """

    kind: DeathKind
    text: str
    exit_code: int | None = None
    signal: str | None = None
    node: str | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form, without the text, which is in the error's message."""
        from openclaw_ray.core.results import camel_dict

        return camel_dict({**asdict(self), "kind": self.kind.value, "text": None})


def says_enough(ray_says: str) -> bool:
    """True if Ray's word names the cause by itself, and the system need not be asked (1)."""
    return any(pattern.search(ray_says) for pattern in (_MEMORY, _OWNER, _NODE)) or _KILLED in ray_says


def tell(
    ray_says: str, exit_: Exit | None = None, *, pool_gone: bool = False, starved: int = 0, node: str = ""
) -> Death:
    """The cause of a death.

    Args:
        ray_says: the text of Ray's error.
        exit_: how the system saw it end, if anybody looked.
        pool_gone: the pool had died before.
        starved: processes that the kernel of its node has ended for want of memory since the last death.
        node: id of the node that it was on, if it is known.
    """
    if _MEMORY.search(ray_says):
        figures = _MEMORY_FIGURES.search(ray_says)
        of = f" ({figures[1]})" if figures else ""
        text = f"Ray's memory monitor ended it, as its node was low on memory{of}"
        return Death(DeathKind.OUT_OF_MEMORY, text, None, "SIGKILL")
    from_outside = exit_ is None or exit_.signal in _FROM_OUTSIDE or exit_.code == _HAD_TO_EXIT
    if _OWNER.search(ray_says) or (pool_gone and from_outside):
        return Death(DeathKind.POOL, "the pool, which owns it, died")
    if _NODE.search(ray_says):
        found = _NODE_ID.search(ray_says)
        lost = (found[1] if found else "") or node
        return of_node(lost)
    if _KILLED in ray_says:
        return Death(DeathKind.ENDED, "it was ended by `ray.kill`")
    if exit_ is not None and exit_.signal is not None:
        return _by_signal(exit_.signal, starved)
    if exit_ is not None and exit_.code is not None:
        return Death(DeathKind.EXIT, f"it ended itself with exit code {exit_.code}", exit_code=exit_.code)
    text = " ".join(ray_says.split())[:_TEXT_MAX]
    return Death(DeathKind.UNKNOWN, text or "nobody has seen how it ended")


def of_node(node: str) -> Death:
    """The death of a process with its whole node."""
    return Death(DeathKind.NODE, f"its node {node[:8] or '?'} died", node=node or None)


def _by_signal(number: int, starved: int) -> Death:
    name = _signal_name(number)
    if number == signal.SIGKILL and starved > 0:
        text = "the kernel's out-of-memory killer ended it (SIGKILL, and the count of such ends on its node has risen)"
        return Death(DeathKind.OUT_OF_MEMORY, text, None, name)
    return Death(DeathKind.SIGNAL, f"it was ended by signal {number} ({name})", None, name)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
