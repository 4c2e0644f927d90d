"""Errors of spawning, placing and the runtime itself. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from openclaw_ray.core.errors_base import OpenClawRayError, name_list
from openclaw_ray.core.results import Receipt

__all__ = [
    "AttachmentError",
    "CannotPlace",
    "DeleteRefused",
    "FolderError",
    "JournalError",
    "MapInUse",
    "PickleRefused",
    "PoolTooSmall",
    "ProtocolRefused",
    "RayClientUnsupported",
    "RayUnreachable",
    "RuntimeClosed",
    "RuntimeInUse",
    "RuntimeNotFound",
    "RuntimeUnavailable",
    "SandboxUnavailable",
    "SpawnError",
    "SpawnForbidden",
    "StateDirError",
    "StateTooLarge",
    "TaskTooLarge",
]


@dataclass(eq=False, repr=False)
class SpawnForbidden(OpenClawRayError):
    """A policy refused a spawn: depth, children, allowlist, a stop (SPEC.md C). ``receipt`` has the parts."""

    receipt: Receipt

    def __str__(self) -> str:
        return self.receipt.error or "spawn forbidden"


@dataclass(eq=False, repr=False)
class SpawnError(OpenClawRayError):
    """A spawn cannot be done as asked, or failed while starting. ``receipt`` has the parts."""

    receipt: Receipt

    def __str__(self) -> str:
        return self.receipt.error or "spawn failed"


@dataclass(eq=False, repr=False)
class InboxFull(SpawnError):
    """As many messages as ``ray.inbox.max`` allows wait for the session; this one was not stored.

    Attributes:
        receipt: ``value`` and ``maximum`` are messages, ``retry_after`` seconds until asking again may help.
    """

    @property
    def retry_after(self) -> float:
        """Seconds: about as long as the turn that runs has taken so far."""
        return self.receipt.retry_after or 0.0


@dataclass(eq=False, repr=False)
class SandboxUnavailable(SpawnError):
    """The session would have to run in a sandbox, and there is no backend for one; it is never run open (SPEC.md I2).

    Attributes:
        receipt: ``path`` is where its agent's sandbox mode is set.
    """


@dataclass(eq=False, repr=False)
class AttachmentError(OpenClawRayError):
    """Attachments cannot be written to disk, or are not there."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"attachments in {self.path}: {self.detail}"


@dataclass(eq=False, repr=False)
class FolderError(OpenClawRayError):
    """The folder that a session is to work in cannot be entered on the node where it runs."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"cannot work in {self.path}: {self.detail} (on this node; the folder is the session's cwd or workspace)"


@dataclass(eq=False, repr=False)
class TaskTooLarge(OpenClawRayError):
    """Task text over the limit; both in bytes of UTF-8."""

    size: int
    limit: int

    def __str__(self) -> str:
        return f"task text of {self.size} bytes is over the limit of {self.limit}; pass the data as input=…"


@dataclass(eq=False, repr=False)
class StateTooLarge(OpenClawRayError):
    """``turn.state`` over the limit; both in bytes of JSON."""

    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"turn.state of {self.size} bytes of JSON is over the limit of {self.limit}; use files for more"
        )


@dataclass(eq=False, repr=False)
class CannotPlace(OpenClawRayError):
    """No node of the cluster can ever hold what an agent asks for; amounts by resource name.

    Attributes:
        needs: of one session.
        has: the most that one node has.
        path: where that is set.
        held: what sessions hold that wait for this one to end; empty if that is not the reason.
    """

    needs: Mapping[str, float]
    has: Mapping[str, float]
    path: str = "agents.entries.<id>.ray"
    held: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        if any(self.held.values()):
            parts = [
                f"{k} {self.needs[k]:g} ({held:g} of {self.has.get(k, 0):g} held by sessions that wait for it)"
                for k, held in sorted(self.held.items())
                if held
            ]
            return (
                f"the session would wait for ever: needs {', '.join(parts)}; lower {self.path}, "
                "or have an agent spawn it that asks for less"
            )
        lacking = {k: v for k, v in self.needs.items() if v > self.has.get(k, 0)}
        together = "" if lacking else " together"
        parts = [self._part(k, v) for k, v in sorted((lacking or self.needs).items())]
        return f"no node can hold the session: needs {', '.join(parts)}{together}; lower {self.path} or add such a node"

    def _part(self, name: str, amount: float) -> str:
        if name.startswith("node:"):
            return f"node {name.removeprefix('node:')} (not there)"
        return f"{name} {amount:g} (largest node: {self.has.get(name, 0):g})"


@dataclass(eq=False, repr=False)
class PoolTooSmall(OpenClawRayError):
    """``ray.pool.max`` and ``maxSpawnDepth`` are both set and cannot both hold (PROTOCOL.md 3.3)."""

    pool_max: int
    max_spawn_depth: int

    def __str__(self) -> str:
        return (
            f"ray.pool.max {self.pool_max} is too small for agents.defaults.subagents.maxSpawnDepth "
            f"{self.max_spawn_depth}: waiting parents alone would fill it; "
            f"set pool.max to {self.max_spawn_depth + 1} or more, or lower maxSpawnDepth"
        )


@dataclass(eq=False, repr=False)
class RuntimeInUse(OpenClawRayError):
    """The state dir of this name has an opener already; ``since`` in seconds since the epoch."""

    name: str
    pid: int
    host: str
    since: float

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return (
            f"runtime {self.name!r} is in use by process {self.pid} on {self.host} since {when}; "
            f"Runtime.connect({self.name!r}), if_exists='connect', or another name"
        )


@dataclass(eq=False, repr=False)
class MapInUse(OpenClawRayError):
    """Another map of this name (``map_id``) is at work, by process ``pid`` on ``host``, under the root ``root``."""

    map_id: str
    pid: int
    host: str
    root: str

    def __str__(self) -> str:
        where = f"process {self.pid} on {self.host}" if self.pid else "another process"
        return (
            f"map {self.map_id!r} is being worked on by {where} (root {self.root or 'unknown'}): two at once would run "
            "its items twice; wait for its end, stop that root, or give another map_id"
        )


@dataclass(eq=False, repr=False)
class RuntimeNotFound(OpenClawRayError):
    """No runtime of this name is alive in the cluster, nor has one left its state where it was looked for.

    Attributes:
        name: the one that was wanted.
        known: those that are alive and can be reached from here.
        kept: where it was state on disk that was wanted: those that have some, alive or not.
    """

    name: str
    known: tuple[str, ...]
    kept: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.kept is not None:
            return f"no runtime {self.name!r} has left state on this machine (there is that of: {name_list(self.kept)})"
        return f"no runtime {self.name!r} is alive here (alive: {name_list(self.known)}); start it first"


@dataclass(eq=False, repr=False)
class RuntimeUnavailable(OpenClawRayError):
    """A part of the runtime did not answer for ``ray.registryTimeoutSeconds`` (PROTOCOL.md 1.5)."""

    what: str
    seconds: float
    detail: str

    def __str__(self) -> str:
        return (
            f"{self.what} did not answer for {self.seconds:g} s (ray.registryTimeoutSeconds): {self.detail}; "
            "what was accepted is kept, ask again when it is back"
        )


@dataclass(eq=False, repr=False)
class RuntimeClosed(OpenClawRayError):
    """The runtime object was closed; nothing can be asked of it any more."""

    name: str

    def __str__(self) -> str:
        return f"runtime {self.name!r} is closed; start or connect anew"


@dataclass(eq=False, repr=False)
class StateDirError(OpenClawRayError):
    """The state dir cannot be used."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"state dir {self.path}: {self.detail}; pass another state_dir=…"


@dataclass(eq=False, repr=False)
class JournalError(OpenClawRayError):
    """The registry's journal cannot be read or written."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"journal {self.path}: {self.detail}; `openclaw-ray doctor` looks into it"


@dataclass(eq=False, repr=False)
class RayUnreachable(OpenClawRayError):
    """There is no Ray cluster at this address."""

    address: str
    detail: str

    def __str__(self) -> str:
        return f"no Ray cluster at {self.address}: {self.detail}; check RAY_ADDRESS, or leave it out"


@dataclass(eq=False, repr=False)
class RayClientUnsupported(OpenClawRayError):
    """``ray://`` is refused: through Ray Client, actors have other owners and lifetimes (DESIGN.md 5)."""

    address: str

    def __str__(self) -> str:
        return (
            f"{self.address}: Ray Client is not supported; use `ray job submit`, "
            "or connect from a process on the cluster"
        )


@dataclass(eq=False, repr=False)
class DeleteRefused(OpenClawRayError):
    """A session was not deleted (SPEC.md G3); nothing of it was changed but what a stop has stopped.

    Attributes:
        key: the session.
        why: ``main``, ``root``, ``changed`` or ``busy``.
    """

    key: str
    why: str

    def __str__(self) -> str:
        why = {
            "main": "it is an agent's main session, which is never deleted; stop it, or reset it",
            "root": "it is a client's root, which ends with its client",
            "changed": "it has changed meanwhile; look at it and delete it again",
            "busy": f"{_BUSY} delete it again",
        }.get(self.why, self.why)
        return f"session {self.key} was not deleted: {why}"


_BUSY = "something of it, or below it, has not ended; see what with `openclaw-ray sessions list`, then"


@dataclass(eq=False, repr=False)
class ResetRefused(OpenClawRayError):
    """A session was not reset (SPEC.md G3); its conversation is as it was, but for what a stop has stopped.

    Attributes:
        key: the session.
        why: ``root``, ``archived``, ``changed`` or ``busy``.
    """

    key: str
    why: str

    def __str__(self) -> str:
        why = {
            "root": "it is a client's root, which has no conversation; stop it instead",
            "archived": "it was deleted; spawn or ask anew",
            "changed": "it has changed meanwhile; look at it and reset it again",
            "busy": f"{_BUSY} reset it again",
        }.get(self.why, self.why)
        return f"session {self.key} was not reset: {why}"


@dataclass(eq=False, repr=False)
class PickleRefused(OpenClawRayError):
    """An object that is bound to its process was about to be pickled."""

    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.what} cannot be pickled: {self.detail}; use Runtime.connect in the other process"


@dataclass(eq=False, repr=False)
class ProtocolRefused(OpenClawRayError):
    """A message between our processes was refused: stale, out of order or malformed."""

    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.what} refused: {self.detail}"
