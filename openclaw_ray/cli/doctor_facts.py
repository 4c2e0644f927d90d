"""What `doctor` looks at, as plain facts; `openclaw_ray.cli.doctor_gather` gathers them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Cluster", "CredentialStore", "Facts", "Leftover", "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """What a task on one node said of it; ``error`` if it did not.

    Attributes:
        name: its host's name and address.
        ray, python, package: versions there; ``package`` is that of openclaw_ray, empty if it does not import.
        ahead: seconds by which its clock is ahead of this machine's, give or take ``unsure``.
        open_files: hard limit; `None` is no limit.
        memory_available, memory_total: bytes, of the machine or its container.
    """

    name: str
    error: str = ""
    ray: str = ""
    python: str = ""
    package: str = ""
    ahead: float = 0.0
    unsure: float = 0.0
    open_files: int | None = None
    memory_available: int = 0
    memory_total: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster at an address said of itself; ``error`` if it could not be reached.

    Attributes:
        error: why it could not be reached, empty if it was.
        ray, python: its versions, empty while unknown.
        nodes, cpus: alive nodes and their CPUs.
        per_node: what each said of itself; nobody is asked where there is one alone.
    """

    error: str = ""
    ray: str = ""
    python: str = ""
    nodes: int = 0
    cpus: float = 0.0
    per_node: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Leftover:
    """State of a runtime that nobody has open any more.

    Attributes:
        name, path: the runtime and its state dir.
        size: bytes.
        unended: runs that had not ended when it died; `None` if its journal cannot be read.
        kept: it is a named one, whose state is meant to stay.
    """

    name: str
    path: str
    size: int
    unended: int | None
    kept: bool

    def to_json(self) -> dict[str, object]:
        """JSON form."""
        fields = {"name": self.name, "path": self.path, "sizeBytes": self.size, "unendedRuns": self.unended}
        return {**fields, "kept": self.kept}


@dataclass(frozen=True, slots=True)
class CredentialStore:
    """A credential store that the configuration leads to, and that is there.

    Attributes:
        path: the file.
        error: why it cannot be used, empty if it can; never what is in it.
        wide: (path, mode, mode that it should have) of the file or its folder, where others can get at them.
    """

    path: str
    error: str = ""
    wide: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """This machine, this installation, and the cluster that was asked for. Sizes are bytes.

    Attributes:
        python: version of this interpreter.
        ray: Ray's version, empty if it does not import; then ``ray_error`` says why.
        address: of the cluster to look at; empty means that commands start a Ray of their own.
        auth_mode, has_token: ``RAY_AUTH_MODE``, and whether a token is where Ray looks for one.
        cluster: what it said, `None` if it was not asked.
        open_files: the hard limit that Ray raises its own to; `None` is no limit.
        pool_max: the ceiling of session processes, `None` if the configuration is wrong.
        pool_max_set: False if it follows from the memory that is available.
        session_bytes: what one session process takes; ``session_measured`` if that was seen in a live one here.
        memory_available, memory_total: of this machine, or of the container.
        shm_free: free in ``/dev/shm``, `None` if there is none.
        state_dir, state_error, state_free: where state goes, why it cannot, and the room there.
        config_source, config_error, config_tolerated: the configuration, and keys in it that we do not implement.
        stale_allowed: what its allowlists name that is no agent of it; a sentence each.
        leftovers: state that nobody has open.
        stores: credential stores.
    """

    python: str = ""
    ray: str = ""
    ray_error: str = ""
    address: str = ""
    auth_mode: str = ""
    has_token: bool = False
    cluster: Cluster | None = None
    open_files: int | None = None
    pool_max: int | None = None
    pool_max_set: bool = False
    session_bytes: int = 0
    session_measured: bool = False
    memory_available: int = 0
    memory_total: int = 0
    shm_free: int | None = None
    state_dir: str = ""
    state_error: str = ""
    state_free: int | None = None
    config_source: str = ""
    config_error: str = ""
    config_tolerated: int = 0
    stale_allowed: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = field(default=())
    stores: tuple[CredentialStore, ...] = ()
