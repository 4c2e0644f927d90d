"""The root, and the errors of configuration and agents. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = [
    "AgentImportError",
    "AgentNotPicklable",
    "ConfigError",
    "ConfigFault",
    "DuplicateAgent",
    "OpenClawRayError",
    "UnknownAgent",
    "name_list",
]


def name_list(values: tuple[str, ...], most: int = 8) -> str:
    """``a, b, c (+4)``, or ``none``."""
    more = f" (+{len(values) - most})" if len(values) > most else ""
    return ", ".join(values[:most]) + more if values else "none"


@dataclass(eq=False, repr=False)
class OpenClawRayError(Exception):
    """The root of all errors of this library; catch it to catch them all."""

    def __post_init__(self) -> None:
        super().__init__(*(getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One thing that is wrong in a configuration.

    Attributes:
        path: full dotted path of the key, list positions as ``[i]``; empty for the text as a whole.
        kind: ``file``, ``syntax``, ``root``, ``include``, ``duplicate``, ``unknown``, ``variable``, ``type``,
            ``range``, ``missing`` or ``value``.
        text: what is wrong and what would be right.
        near: for an unknown key, the accepted name that it resembles.
        line: line in the source text, counted from 1, where known.
        remedy: the way out.
        file: the file of ``line``, if that is an included one.
    """

    path: str
    kind: str
    text: str
    near: str | None = None
    line: int | None = None
    remedy: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        place = self.path or "configuration"
        spots = [self.file, None if self.line is None else f"line {self.line}"]
        where = f" ({', '.join(spot for spot in spots if spot)})" if any(spots) else ""
        way_out = f"did you mean {self.near}?" if self.near else self.remedy
        return f"{place}{where}: {self.text}{f'; {way_out}' if way_out else ''}"


@dataclass(eq=False, repr=False)
class ConfigError(OpenClawRayError):
    """`config.load` refused a configuration; all its faults at once."""

    faults: tuple[ConfigFault, ...]

    def __str__(self) -> str:
        if len(self.faults) == 1:
            return str(self.faults[0])
        head = f"{len(self.faults)} faults in the configuration:"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults)])


@dataclass(eq=False, repr=False)
class UnknownAgent(OpenClawRayError):
    """An agent id that is neither configured nor passed in code."""

    agent_id: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"unknown agent {self.agent_id!r} (known: {name_list(self.known)}); "
            "pass it in agents=[…], register it, or name it under agents.entries"
        )


@dataclass(eq=False, repr=False)
class DuplicateAgent(OpenClawRayError):
    """One agent id with two different pieces of code."""

    agent_id: str
    origin_a: str
    origin_b: str

    def __str__(self) -> str:
        return (
            f"agent id {self.agent_id!r} stands for two agents: {self.origin_a} and {self.origin_b}; "
            "give one of them another id"
        )


@dataclass(eq=False, repr=False)
class AgentImportError(OpenClawRayError):
    """A session process could not load an agent's code; raised at `register` (DESIGN.md 7)."""

    agent_id: str
    module: str
    file: str | None
    detail: str

    def __str__(self) -> str:
        return (
            f"agent {self.agent_id!r} cannot be loaded in a session process: module {self.module} "
            f"({self.file or 'no file'}): {self.detail}; "
            "install what it imports on every node, or pass runtime_env={'working_dir': …}"
        )


@dataclass(eq=False, repr=False)
class AgentNotPicklable(OpenClawRayError):
    """An agent's code cannot travel by value."""

    agent_id: str
    detail: str

    def __str__(self) -> str:
        return (
            f"agent {self.agent_id!r} cannot be pickled: {self.detail}; "
            "make open files, locks and connections inside the turn, not outside of it"
        )
