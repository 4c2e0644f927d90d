"""The values in force: what is written, what stands in for it, and where each comes from (SPEC.md A).

Names: those of the file for the global settings; ``agents.ids`` and ``agents.default``; ``agent:<id>.<rest>`` for what
holds for one agent; ``a2a.*`` for the agent-to-agent settings after joining both places;
``channel:<id>.threadBindings.*`` (an account: ``channel:<id>:<account>.…``) after falling back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from openclaw_ray.config._fields import Leaf, leaves, plain
from openclaw_ray.config._keys import is_named
from openclaw_ray.config._model import AgentDefaults, AgentEntry, Root, Section
from openclaw_ray.config._model_sessions import ThreadBindings
from openclaw_ray.config._model_tools import AgentToAgent
from openclaw_ray.config._text import join
from openclaw_ray.core.thread_rules import Bindings, ThreadRules

if TYPE_CHECKING:
    from openclaw_ray.config._config import Config

__all__ = ["A2A", "DEFAULT", "Bindings", "Setting", "a2a", "a2a_path", "settings", "thread_bindings", "thread_rules"]

DEFAULT: Final = "default"
_NO_CHANNELS: Final = frozenset({"defaults", "modelByChannel"})
_OWN_ONLY: Final = ("tools.", "ray.", "identity.", "default", "name", "agentDir")
_JOINED: Final = ("agents.entries", "agents.list", "channels", "session.agentToAgent", "tools.agentToAgent")


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in force.

    Attributes:
        name: see the module.
        value: as JSON has it, `None` where nothing is set.
        origin: path where it is set; ``default`` if nowhere.
    """

    name: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class A2A:
    """Agent-to-agent settings (SPEC.md A3): ``tools.agentToAgent``, else ``session.agentToAgent``, field by field.

    Attributes:
        enabled: whether agents may use each other's sessions.
        allow: both agents must be on it; `None` if it is not set.
        max_ping_pong_turns: turns of replies after a send.
    """

    enabled: bool = True
    allow: tuple[str, ...] | None = None
    max_ping_pong_turns: int = 5


def a2a(root: Root) -> A2A:
    """The agent-to-agent settings in force."""
    places = (root.tools.agent_to_agent, root.session.agent_to_agent)
    found: dict[str, Any] = {}
    for leaf in leaves(AgentToAgent):
        value = next((v for place in places if (v := getattr(place, leaf.names[0])) is not None), None)
        if value is not None:
            found[leaf.names[0]] = value
    return A2A(**found)


def a2a_path(root: Root, field: str) -> str:
    """Where one of the agent-to-agent settings is set; where it is best set if it is not."""
    (leaf,) = (leaf for leaf in leaves(AgentToAgent) if leaf.names[0] == field)
    places = (("tools", root.tools.agent_to_agent), ("session", root.session.agent_to_agent))
    at = next((name for name, place in places if getattr(place, field) is not None), "tools")
    return f"{at}.agentToAgent.{leaf.path}"


def thread_bindings(root: Root, channel: str | None = None, account: str | None = None) -> Bindings:
    """The thread bindings in force: of the account, else of the channel, else of ``session``, else built in."""
    return Bindings(**{name: value for name, (value, origin) in _bindings(root, channel, account).items() if origin})


def thread_rules(root: Root) -> ThreadRules:
    """The thread bindings of every place that has some of its own."""
    places = []
    for channel, one in root.channels.items():
        if channel not in _NO_CHANNELS:
            places.append((channel, "", thread_bindings(root, channel)))
            places += [(channel, account, thread_bindings(root, channel, account)) for account in one.accounts]
    return ThreadRules(thread_bindings(root), tuple(places))


def _bindings(root: Root, channel: str | None, account: str | None) -> dict[str, tuple[Any, str]]:
    """Field -> its value and the path where it is set, ``""`` for a built-in one."""
    places: list[tuple[str, ThreadBindings]] = [("session", root.session.thread_bindings)]
    if channel is not None and (found := root.channels.get(channel)) is not None:
        places.insert(0, (f"channels.{channel}", found.thread_bindings))
        if account is not None and (one := found.accounts.get(account)) is not None:
            places.insert(0, (f"channels.{channel}.accounts.{account}", one.thread_bindings))
    usual = Bindings()
    made: dict[str, tuple[Any, str]] = {
        name: (getattr(usual, name), "") for name in Bindings.__slots__
    }
    for path, place in reversed(places):
        for leaf in leaves(ThreadBindings):
            name, value = leaf.names[0], getattr(place, leaf.names[0])
            if value is None:
                continue
            if name == "spawn_subagent_sessions":
                name = "spawn_sessions"
                if place.spawn_sessions is not None:
                    continue
            made[name] = plain(value), f"{path}.threadBindings.{leaf.path}"
    return made


# --------------------------------------------------------------------------- all of them


def settings(config: Config, *, agent: str | None = None, shown: bool = True) -> Iterator[Setting]:
    """Every value in force, in the order of the model.

    Args:
        agent: only what holds for this agent, by its normalised id.
        shown: whether people see them; then what the environment put in stays as it is written.
    """
    if agent is not None:
        yield from _of_agent(config, agent, shown)
        return
    root = config.root
    yield Setting("agents.ids", list(config.agent_ids), "agents" if config.named_agents else DEFAULT)
    yield Setting("agents.default", config.default_agent, config.default_origin)
    stand_ins = {
        "agents.defaults.subagents.maxSpawnDepth": config.max_spawn_depth,
        "session.mainKey": "main",
    }
    for leaf in leaves(Root):
        if leaf.path.startswith(_JOINED) or leaf.path.startswith("session.threadBindings"):
            continue
        value, is_set = _value(root, leaf)
        if value == {} and is_named(leaf.info.alias or ""):
            continue
        yield from _rows(leaf.path, stand_ins.get(leaf.path, value), leaf.path if is_set else DEFAULT, shown)
    yield from _bound("session", _bindings(root, None, None))
    yield from _joined(root)
    for channel, one in root.channels.items():
        if channel not in _NO_CHANNELS:
            yield from _bound(f"channel:{channel}", _bindings(root, channel, None))
            for account in one.accounts:
                yield from _bound(f"channel:{channel}:{account}", _bindings(root, channel, account))
    for name in config.agent_ids:
        yield from _of_agent(config, name, shown)


def _value(section: Section, leaf: Leaf) -> tuple[Any, bool]:
    """The value of a leaf, and whether the file has it."""
    value: Any = section
    is_set = True
    for name in leaf.names:
        is_set = is_set and name in value.model_fields_set
        value = getattr(value, name)
    return value, is_set


def _rows(name: str, value: Any, origin: str, shown: bool) -> Iterator[Setting]:
    """One row, or one for each part of an object by id."""
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            here = join(name, str(key))
            if isinstance(one, Section):
                for leaf in leaves(type(one)):
                    part, is_set = _value(one, leaf)
                    where = join(join(origin, str(key)), leaf.path) if is_set else DEFAULT
                    yield from _rows(join(here, leaf.path), part, where, shown)
            else:
                yield Setting(here, plain(one, shown=shown), join(origin, str(key)))
        return
    made = plain(value, shown=shown)
    yield Setting(name, None if made == {} else made, origin)


def _bound(name: str, found: Mapping[str, tuple[Any, str]]) -> Iterator[Setting]:
    paths = {leaf.names[0]: leaf.path for leaf in leaves(ThreadBindings)}
    for field, (value, origin) in found.items():
        yield Setting(f"{name}.threadBindings.{paths[field]}", plain(value), origin or DEFAULT)


def _joined(root: Root) -> Iterator[Setting]:
    places = (("tools", root.tools.agent_to_agent), ("session", root.session.agent_to_agent))
    joined = a2a(root)
    for leaf in leaves(AgentToAgent):
        field = leaf.names[0]
        where = [f"{at}.agentToAgent.{leaf.path}" for at, place in places if getattr(place, field) is not None]
        yield Setting(f"a2a.{leaf.path}", plain(getattr(joined, field)), where[0] if where else DEFAULT)


def _of_agent(config: Config, agent: str, shown: bool) -> Iterator[Setting]:
    defaults = {leaf.path: leaf for leaf in leaves(AgentDefaults)}
    own = {leaf.path: leaf for leaf in leaves(AgentEntry)}
    for path, leaf in {**defaults, **own}.items():
        name = f"agent:{agent}.{path}"
        value, at = config.own(agent, *leaf.names) if path in own else (None, "")
        if at:
            yield from _rows(name, value, join(at, path), shown)
        elif path in defaults and not path.startswith(_OWN_ONLY):
            value, is_set = _value(config.root.agents.defaults, defaults[path])
            value = config.max_spawn_depth if path == "subagents.maxSpawnDepth" else value
            yield from _rows(name, value, f"agents.defaults.{path}" if is_set else DEFAULT, shown)
        else:
            yield from _rows(name, leaf.info.get_default(call_default_factory=True), DEFAULT, shown)
