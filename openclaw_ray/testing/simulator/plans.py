"""What scripted sessions and clients do, as data that can be printed, replayed and shrunk.

A run's task text is the number of its plan. The first turn of a run does the plan's first list of operations, a
follow-up turn the next one; where none is left, a turn just returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "Ask",
    "Chat",
    "Die",
    "Fail",
    "Hang",
    "Join",
    "Map",
    "Operation",
    "Plan",
    "Program",
    "Rebind",
    "Reset",
    "Say",
    "Send",
    "Serve",
    "Spawn",
    "Steer",
    "Stop",
    "Take",
    "Tell",
    "Use",
    "Work",
    "Yield",
    "describe",
]


@dataclass(frozen=True, slots=True)
class Work:
    """Be busy for that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Spawn:
    """Spawn children with these plans, all in one go, and go on once they are accepted or refused.

    Attributes:
        plans: numbers of plans.
        timeout: run timeout of each, in seconds; `None` is the configured one.
        expects: whether they announce.
        thread: the mode of children that get a conversation each, ``session`` or ``run``; empty for none.
    """

    plans: tuple[int, ...]
    timeout: float | None = None
    expects: bool = True
    thread: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """Wait for ``all`` children spawned so far, or for the ``first``; then the others are stopped."""

    until: str = "all"


@dataclass(frozen=True, slots=True)
class Map:
    """Map items with these plans, at most ``width`` at a time; a client may give the map a name."""

    plans: tuple[int, ...]
    width: int
    timeout: float | None = None
    map_id: str = ""


@dataclass(frozen=True, slots=True)
class Yield:
    """End the turn and be woken once when its children have ended; or, with ``message``, by a message, too."""

    message: bool = False


@dataclass(frozen=True, slots=True)
class Steer:
    """Steer the ``child``-th one spawned; it goes on with ``plan``."""

    child: int
    plan: int


@dataclass(frozen=True, slots=True)
class Tell:
    """A client's message to the session of the ``child``-th one spawned, which has ``plan`` if it is a run of its own.
    """

    child: int
    plan: int


@dataclass(frozen=True, slots=True)
class Send:
    """A message to the main session of ``agent``, or, of 0 or more, to the session of the ``child``-th one spawned.

    Attributes:
        plan: what its turn does.
        wait: seconds for which the reply is waited for.
        mode: a word of `MessageMode`, empty for the usual one.
    """

    agent: str
    plan: int
    wait: float = 0.0
    mode: str = ""
    child: int = -1


@dataclass(frozen=True, slots=True)
class Take:
    """Take messages with mode ``steer``, after waiting ``wait`` seconds for one."""

    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a child: the ``child``-th one spawned, -1 for all that is below, or a client's: the session ``key``.

    ``wait``: until the report is there. ``scope``: how much of that session, as in `StopAsk`.
    """

    child: int = -1
    wait: bool = False
    key: str = ""
    scope: str = "tree"


@dataclass(frozen=True, slots=True)
class Say:
    """Report progress, and write a row to the transcript."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """Report that many tokens as used."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Wait for something that never comes."""


@dataclass(frozen=True, slots=True)
class Die:
    """Take the own process down."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A client's message to the main session of ``agent``, or one of another ``name``, which it opens; it waits
    ``patience`` seconds for the answer."""

    agent: str
    plan: int
    patience: float = 60.0
    name: str = "main"


@dataclass(frozen=True, slots=True)
class Reset:
    """A client's reset of the main session of ``agent``: stop it, then begin it anew."""

    agent: str = "worker"


@dataclass(frozen=True, slots=True)
class Serve:
    """A client serves a channel from now on, with one conversation that is nobody's: number 0. Those that are made for
    sessions have the numbers after it; of more than there are, the rest counts."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A user says something in a conversation of the client's channel; its turn does ``plan``."""

    conversation: int
    plan: int


@dataclass(frozen=True, slots=True)
class Rebind:
    """A user changes whose a conversation is: ``focus`` on the ``child``-th one spawned, ``unfocus``, ``leave``, or
    ``idle``, after half a second of silence; or the operator does: ``unbind`` of that child's session."""

    what: str
    conversation: int = 0
    child: int = 0


Operation: TypeAlias = (
    Work
    | Spawn
    | Join
    | Map
    | Yield
    | Steer
    | Tell
    | Send
    | Take
    | Stop
    | Say
    | Use
    | Fail
    | Hang
    | Die
    | Ask
    | Reset
    | Serve
    | Chat
    | Rebind
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run does.

    Attributes:
        turns: operations by turn.
        agent: which agent.
        follow_up: ask for a further turn when children have settled.
        deaf: ignore being cancelled.
        slow: seconds before the first operation, in which the agent's code is loaded.
        held: bytes of a value that stays in the process until it is taken.
        unclean: leave something behind in the process.
        again: each turn does the first list of operations, as a function does that is called again.
        cleanup: of its session, where it is spawned.
    """

    turns: tuple[tuple[Operation, ...], ...] = ((),)
    agent: str = "worker"
    follow_up: bool = False
    deaf: bool = False
    slow: float = 0.0
    held: int = 0
    unclean: bool = False
    again: bool = False
    cleanup: str = "keep"

    def operations(self, turn: int) -> tuple[Operation, ...]:
        """What turn number ``turn`` (from 1) does."""
        if self.again:
            return self.turns[0]
        return self.turns[turn - 1] if turn <= len(self.turns) else ()


@dataclass(frozen=True, slots=True)
class Program:
    """All plans of a schedule, by number, and what each client does with them."""

    plans: Mapping[int, Plan] = field(default_factory=dict)
    clients: tuple[tuple[Operation, ...], ...] = ()

    @property
    def size(self) -> int:
        """Number of plans, which is about the number of runs."""
        return len(self.plans)

    @property
    def endless(self) -> bool:
        """True if something in it may never end by itself."""
        return any(isinstance(op, Hang) for plan in self.plans.values() for ops in plan.turns for op in ops)


def describe(program: Program) -> str:
    """The program as an indented tree, for the report of a broken schedule."""
    lines: list[str] = []
    above: list[int] = []

    def operations(ops: tuple[Operation, ...], indent: str) -> None:
        for op in ops:
            lines.append(f"{indent}{op}")
            one = (op.plan,) if isinstance(op, (Ask, Chat, Send, Steer, Tell)) else ()
            below = op.plans if isinstance(op, (Spawn, Map)) else one
            for number in below:
                plan(number, indent + "    ")

    def plan(number: int, indent: str) -> None:
        found = program.plans[number]
        if number in above:  # messages may go round
            lines.append(f"{indent}plan {number} again")
            return
        above.append(number)
        marks = [
            word
            for word in ("follow_up", "deaf", "slow", "held", "unclean", "again")
            if getattr(found, word)
        ]
        marks += ["cleanup=delete"] if found.cleanup == "delete" else []
        lines.append(f"{indent}plan {number} ({found.agent}{''.join(' ' + m for m in marks)})")
        for i, ops in enumerate(found.turns):
            if i:
                lines.append(f"{indent}  turn {i + 1}:")
            operations(ops, indent + "  ")
        above.pop()

    for i, ops in enumerate(program.clients):
        lines.append(f"client {i}")
        operations(ops, "  ")
    return "\n".join(lines)
