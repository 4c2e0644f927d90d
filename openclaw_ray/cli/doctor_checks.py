"""The rules of `doctor`: from facts to findings, each with its remedy. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from openclaw_ray.cli.doctor_facts import Facts
from openclaw_ray.cli.doctor_nodes import check_nodes
from openclaw_ray.cli.doctor_verdict import FILES_BASE, FILES_PER_SESSION, Check, Verdict, size

__all__ = ["RAY_AT_LEAST", "RAY_BELOW", "Check", "Verdict", "check_all"]

RAY_AT_LEAST = (2, 55)
RAY_BELOW = (3,)
_BASE_BYTES = 200 << 20
"""Registry, hub and pool together."""
_STORE_SHARE = 0.3
"""The part of memory that Ray's object store takes by default, in ``/dev/shm``."""
_STORE_LEAST = 1 << 30
_DISK_LEAST = 100 << 20
_DISK_ENOUGH = 1 << 30
_LEFT_MUCH = 1 << 30


def check_all(facts: Facts) -> list[Check]:
    """All findings, in the order in which they are best mended."""
    return [
        _ray(facts),
        *_cluster(facts),
        *check_nodes(facts),
        _config(facts),
        *_credentials(facts),
        *_allowlists(facts),
        *_pool(facts),
        _shared_memory(facts),
        _state_dir(facts),
        _leftovers(facts),
    ]


def _ray(facts: Facts) -> Check:
    wanted = f"ray>={'.'.join(map(str, RAY_AT_LEAST))},<{RAY_BELOW[0]}"
    remedy = f"pip install '{wanted}'"
    if not facts.ray:
        return Check("ray", Verdict.FAIL, f"Ray does not import: {facts.ray_error}", remedy)
    version = _numbers(facts.ray)
    if not RAY_AT_LEAST <= version[:2] < RAY_BELOW:
        return Check("ray", Verdict.FAIL, f"Ray {facts.ray} is outside of {wanted}", remedy)
    return Check("ray", Verdict.OK, f"Ray {facts.ray} on Python {facts.python}")


def _cluster(facts: Facts) -> Iterator[Check]:
    if facts.auth_mode.lower() == "token" and not facts.has_token and facts.address:
        detail = "RAY_AUTH_MODE=token, and there is no token here"
        remedy = "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH, or put the cluster's token into ~/.ray/auth_token"
        yield Check("token", Verdict.FAIL, detail, remedy)
    cluster = facts.cluster
    if cluster is None:
        if not facts.address:
            yield Check("cluster", Verdict.OK, "no address is set: commands start a Ray of their own")
        return
    where = f"Ray cluster at {facts.address}"
    if cluster.python and (cluster.python, cluster.ray) != (facts.python, facts.ray):
        theirs, ours = f"Python {cluster.python}, Ray {cluster.ray}", f"Python {facts.python}, Ray {facts.ray}"
        remedy = f"use an environment with Python {cluster.python} and ray=={cluster.ray} here"
        yield Check("cluster", Verdict.FAIL, f"{where} has {theirs}; here is {ours}", remedy)
    elif cluster.error:
        remedy = "check --address or RAY_ADDRESS (host:port of the head's GCS), and that `ray status` works there"
        yield Check("cluster", Verdict.FAIL, cluster.error, remedy)
    else:
        there = f"{cluster.nodes} nodes, {cluster.cpus:g} CPUs"
        yield Check("cluster", Verdict.OK, f"{where}: {there}, Python {cluster.python}, Ray {cluster.ray}")


def _config(facts: Facts) -> Check:
    if facts.config_error:
        return Check("config", Verdict.FAIL, facts.config_error, f"mend {facts.config_source}")
    more = f"; {facts.config_tolerated} keys in it are OpenClaw's and not ours" if facts.config_tolerated else ""
    return Check("config", Verdict.OK, f"{facts.config_source}{more}")


def _credentials(facts: Facts) -> Iterator[Check]:
    if not facts.stores:
        return
    broken = [store for store in facts.stores if store.error]
    wide = [each for store in facts.stores for each in store.wide]
    if broken:
        detail = "; ".join(f"{store.path} {store.error}" for store in broken)
        yield Check("credential stores", Verdict.FAIL, detail, "mend it: sessions that ask for a credential fail")
    if wide:
        detail = "; ".join(f"{path} has mode {mode:04o}" for path, mode, _ in wide)
        remedy = "; ".join(f"chmod {fitting:o} {shlex.quote(path)}" for path, _, fitting in wide)
        yield Check("credential stores", Verdict.WARN, f"others on this machine can get at them: {detail}", remedy)
    if not broken and not wide:
        yield Check("credential stores", Verdict.OK, f"{len(facts.stores)} that their owner alone can read")


def _allowlists(facts: Facts) -> Iterator[Check]:
    if not facts.stale_allowed:
        return
    first, *more = facts.stale_allowed
    detail = first + (f" (and {len(more)} more)" if more else "")
    remedy = "take it out, or correct it (`doctor --fix` prints each); leave it if that agent is passed in code"
    yield Check("allowlists", Verdict.WARN, detail, remedy)


def _pool(facts: Facts) -> Iterator[Check]:
    if facts.pool_max is None:
        return
    need = FILES_BASE + FILES_PER_SESSION * facts.pool_max
    pool = f"ray.pool.max {facts.pool_max}"
    if facts.open_files is None or facts.open_files >= need:
        limit = "no limit" if facts.open_files is None else str(facts.open_files)
        yield Check("open files", Verdict.OK, f"limit {limit}, {pool} needs about {need}")
    else:
        most = max(1, (facts.open_files - FILES_BASE) // FILES_PER_SESSION)
        remedy = f"raise the hard limit (ulimit -Hn {need}), or set ray.pool.max to {most} or less"
        detail = f"the hard limit is {facts.open_files}, and {pool} needs about {need}"
        yield Check("open files", Verdict.FAIL if facts.open_files < FILES_BASE else Verdict.WARN, detail, remedy)
    yield _memory(facts, facts.pool_max)


def _memory(facts: Facts, pool_max: int) -> Check:
    need = _BASE_BYTES + pool_max * facts.session_bytes
    how = "measured here" if facts.session_measured else "as measured for an idle one"
    detail = f"ray.pool.max {pool_max} × {size(facts.session_bytes)} a session ({how}) needs {size(need)}"
    detail += f"; {size(facts.memory_available)} of {size(facts.memory_total)} are available"
    if need <= facts.memory_available or not facts.pool_max_set:  # not set, it is what memory allows
        return Check("memory", Verdict.OK, detail)
    most = max(1, (facts.memory_available - _BASE_BYTES) // max(1, facts.session_bytes))
    verdict = Verdict.FAIL if need > facts.memory_total else Verdict.WARN
    return Check("memory", verdict, detail, f"set ray.pool.max to {most} or less, or free memory")


def _shared_memory(facts: Facts) -> Check:
    if facts.shm_free is None:
        remedy = "mount it, or pass --shm-size to the container; Ray uses /tmp meanwhile, which is slower"
        return Check("/dev/shm", Verdict.WARN, "there is none", remedy)
    wanted = min(_STORE_LEAST, int(_STORE_SHARE * facts.memory_total))
    detail = f"{size(facts.shm_free)} free"
    if facts.shm_free >= wanted:
        return Check("/dev/shm", Verdict.OK, detail)
    remedy = f"give the container --shm-size={wanted >> 20}m or more: Ray's object store lives"
    return Check("/dev/shm", Verdict.WARN, f"only {detail}", f"{remedy} there, and falls back to /tmp, which is slower")


def _state_dir(facts: Facts) -> Check:
    remedy = "choose another place with --state or OPENCLAW_STATE_DIR"
    if facts.state_error:
        return Check("state dir", Verdict.FAIL, f"{facts.state_dir}: {facts.state_error}", remedy)
    free = facts.state_free or 0
    detail = f"{facts.state_dir}: {size(free)} free"
    if free < _DISK_LEAST:
        return Check("state dir", Verdict.FAIL, detail, f"free some room, or {remedy}")
    if free < _DISK_ENOUGH:
        return Check("state dir", Verdict.WARN, detail, f"free some room, or {remedy}")
    return Check("state dir", Verdict.OK, detail)


def _leftovers(facts: Facts) -> Check:
    left = facts.leftovers
    if not left:
        return Check("leftovers", Verdict.OK, "none of dead runtimes")
    taken = sum(each.size for each in left)
    unended = [each for each in left if each.unended != 0]
    detail = f"state of {len(left)} runtimes that nobody has open, {size(taken)}"
    if not unended and taken < _LEFT_MUCH:
        return Check("leftovers", Verdict.OK, detail)
    first = (unended or list(left))[0]
    if unended:
        detail += f"; {len(unended)} of them died with runs un-ended, or cannot be read"
    remedy = f"look with `openclaw-ray runs --state {first.path}`; remove the folders that you do not need"
    return Check("leftovers", Verdict.WARN, detail, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
