"""How the facts for `doctor` are gathered. Nothing is changed, nothing is deleted.

Ray is reached from a process of its own with a time limit: Ray's own tries to connect can last for minutes, and a
process that has connected once keeps threads and settings of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from openclaw_ray.cli.doctor_facts import Cluster, CredentialStore, Facts, Leftover, Node

__all__ = ["REACH_WITHIN", "gather", "measured_session_bytes", "state_facts"]

REACH_WITHIN = 30.0
"""Seconds that reaching the cluster may take, imports included."""
_LOOKED_INTO = 50
_UNENDED = ("queued", "running", "paused")


def gather(address: str | None, config_file: str | None, state_dir: str | None) -> Facts:
    """Look at everything. Takes at most about `REACH_WITHIN`.

    Args:
        address: of a cluster; ``RAY_ADDRESS`` if not given.
        config_file: what ``--config`` says.
        state_dir: where state is to go; that of named runtimes if not given.
    """
    import psutil

    from openclaw_ray.runtime.cluster import has_auth_token
    from openclaw_ray.runtime.starting import ACTOR_BYTES
    from openclaw_ray.store.places import base_dir

    memory = psutil.virtual_memory()
    ray_version, ray_error = _ray()
    cluster_at = address or os.environ.get("RAY_ADDRESS", "")
    configured = _configuration(config_file, memory.available)
    place = Path(state_dir).expanduser().absolute() if state_dir is not None else base_dir()
    state_error, free = state_facts(place)
    measured = measured_session_bytes()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Facts(
        python=platform.python_version(),
        ray=ray_version,
        ray_error=ray_error,
        address=cluster_at,
        auth_mode=os.environ.get("RAY_AUTH_MODE", ""),
        has_token=has_auth_token(os.environ),
        cluster=_reach(cluster_at) if cluster_at and ray_version else None,
        open_files=None if hard == resource.RLIM_INFINITY else hard,
        pool_max=configured.pool_max,
        pool_max_set=configured.pool_max_set,
        session_bytes=measured or ACTOR_BYTES,
        session_measured=bool(measured),
        memory_available=memory.available,
        memory_total=memory.total,
        shm_free=_free("/dev/shm"),
        state_dir=str(place),
        state_error=state_error,
        state_free=free,
        config_source=configured.source,
        config_error=configured.error,
        config_tolerated=configured.tolerated,
        stale_allowed=configured.stale,
        leftovers=_leftovers(),
        stores=_stores(configured.stores),
    )


def state_facts(place: Path) -> tuple[str, int | None]:
    """Why ``place`` cannot take state (empty if it can), and the free bytes there; nothing is left behind."""
    above = place
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        return f"{above} is not a directory", None
    probe = above / f".openclaw-probe-{token_hex(4)}"
    try:
        probe.touch(mode=0o600, exist_ok=False)
        probe.unlink()
    except OSError as error:
        return f"{above} cannot be written to: {error.strerror}", _free(above)
    return "", _free(above)


def measured_session_bytes() -> int:
    """The largest session process of a live runtime on this machine, as proportional memory; 0 if there is none."""
    import psutil

    from openclaw_ray.runtime.stats import memory_of

    largest = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, IndexError):
            title = process.cmdline()[0]
            if title.startswith("ray::") and ("SessionActor" in title or "/session-" in title):
                largest = max(largest, memory_of([process.pid]))
    return largest


def _ray() -> tuple[str, str]:
    try:
        import ray
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is what is told
        return "", f"{type(error).__name__}: {error}"
    return str(ray.__version__), ""


class _Configured(NamedTuple):
    source: str
    error: str = ""
    tolerated: int = 0
    stale: tuple[str, ...] = ()
    pool_max: int | None = None
    pool_max_set: bool = False
    stores: tuple[str, ...] = ()


def _configuration(file: str | None, memory: int) -> _Configured:
    from openclaw_ray.cli.opening import config_source
    from openclaw_ray.config import load, stale_ids
    from openclaw_ray.core.errors import ConfigError, PoolTooSmall
    from openclaw_ray.runtime.starting import fit_limits

    source = config_source(file)
    shown = str(source or os.environ.get("OPENCLAW_CONFIG_PATH") or "defaults")
    cpus = len(os.sched_getaffinity(0))
    try:
        config = load(source)
        limits = config.runtime_limits(cpus=cpus)
        _, ceiling, _ = fit_limits(limits, cpus, memory)
    except (ConfigError, PoolTooSmall) as error:
        return _Configured(shown, str(error))
    stale = tuple(str(each) for each in stale_ids(config))
    known = (len(config.tolerated), stale, ceiling, limits.pool_max is not None)
    return _Configured(shown, "", *known, config.auth_stores())


def _stores(paths: tuple[str, ...]) -> tuple[CredentialStore, ...]:
    from openclaw_ray.core.errors import CredentialStoreError
    from openclaw_ray.store.credentials import read_store, too_open

    found = []
    for path in paths:
        try:
            if read_store(path).data is None:
                continue
            found.append(CredentialStore(path, "", too_open(path)))
        except CredentialStoreError as error:
            found.append(CredentialStore(path, error.detail, too_open(path)))
    return tuple(found)


def _reach(address: str) -> Cluster:
    env = {**os.environ, "RAY_ADDRESS": address}
    env["PYTHONPATH"] = os.pathsep.join(part for part in (_package_root(), env.get("PYTHONPATH", "")) if part)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "openclaw_ray.cli.ray_probe"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=REACH_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Cluster(error=f"no answer within {REACH_WITHIN:g} s")
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return Cluster(**{**answer, "per_node": tuple(Node(**each) for each in answer.get("per_node", ()))})
    except (ValueError, TypeError, IndexError):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Cluster(error=f"exit status {done.returncode}: {said[-1] if said else 'nothing said'}")


def _package_root() -> str:
    import openclaw_ray

    return str(Path(openclaw_ray.__file__).parent.parent)


def _free(place: str | Path) -> int | None:
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None


def _leftovers() -> tuple[Leftover, ...]:
    from openclaw_ray.store.places import base_dir, list_runtimes

    found = []
    dead = [place for place in list_runtimes() if place.owner is None]
    for place in dead[:_LOOKED_INTO]:
        kept = place.path.parent == base_dir()
        unended = _unended(place.path)
        if not kept or unended != 0:
            found.append(Leftover(place.name, str(place.path), _size(place.path), unended, kept))
    return tuple(found)


def _unended(state_dir: Path) -> int | None:
    from openclaw_ray.core.errors import JournalError
    from openclaw_ray.store.reading import Reading

    try:
        with Reading[bytes, bytes, bytes](state_dir, run=bytes, session=bytes, event=bytes) as reading:
            return reading.count_runs(state=list(_UNENDED))
    except JournalError:
        return None


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total
