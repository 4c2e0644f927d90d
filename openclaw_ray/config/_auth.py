"""Where an agent's credentials are (SPEC.md A5, I1; DESIGN.md 7).

1. An agent's own store is in its ``agentDir``; without one in ``<ray.auth.dir>/<agent id>/agent``.
2. If neither is set, ``~/.openclaw/agents`` stands for ``ray.auth.dir`` only where the configuration itself is
   ``~/.openclaw/openclaw.json`` (``$OPENCLAW_STATE_DIR`` for ``~/.openclaw``): a library does not look there by itself.
3. The shared store is the default agent's. Without either store nothing is read, and nothing costs anything.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_ray.config._fields import plain
from openclaw_ray.core.auth._rules import AuthRules

if TYPE_CHECKING:
    from openclaw_ray.config._config import Config

__all__ = ["auth_rules"]

_FILE = "auth-profiles.json"


def auth_rules(config: Config, agent: str) -> AuthRules | None:
    """What the configuration says of the credentials of an agent, by its normalised id; `None` if there are none."""
    base = _base(config)
    own, theirs = _store(config, agent, base), _store(config, config.default_agent, base)
    if own is None and theirs is None:
        return None
    isolated = bool(config.own(agent, "ray", "auth_isolation")[0])
    auth = config.root.auth
    return AuthRules(
        own=own,
        shared=None if isolated or theirs == own else theirs,
        isolated=isolated,
        order={str(plain(of)): tuple(plain(ids)) for of, ids in auth.order.items()},
        profiles={str(name): (str(plain(one.provider)), str(one.mode.value)) for name, one in auth.profiles.items()},
    )


def _store(config: Config, agent: str, base: str | None) -> str | None:
    own = config.own(agent, "agent_dir")[0]
    if own is not None:
        return os.path.join(_absolute(str(plain(own))), _FILE)
    return None if base is None else os.path.join(base, agent, "agent", _FILE)


def _base(config: Config) -> str | None:
    named = config.root.ray.auth.dir
    if named is not None:
        return _absolute(str(plain(named)))
    state = os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw"
    usual = os.path.join(_absolute(state), "openclaw.json")
    if not config.source.startswith("<") and _absolute(config.source) == usual:
        return os.path.join(_absolute(state), "agents")
    return None


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # there is no home
        return str(Path(path).absolute())
