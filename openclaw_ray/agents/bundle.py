"""Agents' code on its way to other processes: made once, loaded afresh for every activation (DESIGN.md 7).

1. An agent is pickled by Ray's cloudpickle with its defining module by value. Modules of this package, of the
   standard library and of installed packages go by reference, and so do sibling modules: session processes
   import those from the bundle's paths.
2. Its identity is a hash of its module's source and its qualified name. Pickles of one function differ
   between processes, so they count only where there is no source, and for what a function made inside another
   has closed over.
3. Each activation loads the pickle anew. Functions get module globals of their own, and classes are made
   again, so that one session does not see what another did to them. Should a session have imported the very
   module that an agent is defined in, that module is forgotten before the next one. Others that were imported
   are shared.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from openclaw_ray.agents._blame import why_not_picklable
from openclaw_ray.agents._by_value import by_value
from openclaw_ray.agents._class_memory import ClassMemory
from openclaw_ray.agents._identity import identity
from openclaw_ray.agents._origin import is_installed, module_of, origin_of
from openclaw_ray.agents.info import AgentInfo, agent_info
from openclaw_ray.agents.pickling import dumps
from openclaw_ray.agents.text import said
from openclaw_ray.core.errors import AgentImportError, AgentNotPicklable, DuplicateAgent, UnknownAgent

__all__ = ["AgentCode", "Bundle", "LoadedBundle", "import_check", "load_bundle", "make_bundle"]


@dataclass(frozen=True, slots=True)
class AgentCode:
    """One agent of a bundle.

    Attributes:
        id: agent id.
        hash: its identity, see the module.
        origin: ``module:qualname (file)``.
        resumable, spawns, follow_up: see `openclaw_ray.agents.info.AgentInfo`.
        tools: names of those that it lists.
    """

    id: str
    hash: str
    origin: str
    resumable: bool
    spawns: bool
    follow_up: bool
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one ``start`` or ``register`` passed.

    Attributes:
        id: hash of the agents' identities and the paths.
        agents: sorted by id.
        paths: folders for the session processes' ``sys.path``, in order.
        modules: those that go by value. Inputs for these agents are to be pickled with them by value, too
            (`openclaw_ray.agents.pickling.pickle_value`): by reference, a class is not the agent's.
        data: what `load_bundle` reads.
    """

    id: str
    agents: tuple[AgentCode, ...]
    paths: tuple[str, ...]
    modules: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class _Packed:
    module: str
    file: str | None
    pickle: bytes


class LoadedBundle:
    """A bundle in a session process; nothing of its code has run yet."""

    def __init__(self, packed: dict[str, tuple[str, str | None, bytes]], paths: tuple[str, ...]) -> None:
        self._packed = {agent_id: _Packed(*parts) for agent_id, parts in packed.items()}
        self._paths = paths
        self._classes = ClassMemory()
        self._own_modules = {
            each.module
            for each in self._packed.values()
            if each.module not in sys.modules and _is_below(each.file, paths)
        }

    @property
    def ids(self) -> tuple[str, ...]:
        """The agents' ids, sorted."""
        return tuple(sorted(self._packed))

    def agent(self, agent_id: str) -> Any:
        """A fresh agent function or `Agent` class, sharing nothing with those loaded before.

        Puts the bundle's folders at the front of ``sys.path`` (the clean check takes them off again). Inputs
        with instances of the agent's own classes are to be unpickled after this.

        Raises:
            UnknownAgent: it is not in the bundle.
            AgentImportError: its code does not load here; names module, file and what to do.
        """
        packed = self._packed.get(agent_id)
        if packed is None:
            raise UnknownAgent(agent_id, self.ids)
        sys.path[:0] = [path for path in self._paths if path not in sys.path]
        for module in self._own_modules:
            _forget(module)
        try:
            with self._classes.made_anew():
                return pickle.loads(packed.pickle)
        except (Exception, SystemExit) as exc:
            detail = f"{type(exc).__name__}: {said(exc, 2_000)}"
            raise AgentImportError(agent_id, packed.module, packed.file, detail) from exc

    def origin(self, agent_id: str) -> tuple[str, str | None]:
        """An agent's module, and the file of its source."""
        packed = self._packed[agent_id]
        return packed.module, packed.file

    def construct(self, agent_id: str) -> None:
        """Load an agent and, if it is a class, make it once, as an activation would.

        Raises:
            AgentImportError: that did not work.
        """
        made = self.agent(agent_id)
        if isinstance(made, type):
            try:
                made()
            except (Exception, SystemExit) as exc:
                packed = self._packed[agent_id]
                detail = f"{made.__name__}() raised {type(exc).__name__}: {said(exc, 2_000)}"
                raise AgentImportError(agent_id, packed.module, packed.file, detail) from exc


def make_bundle(agents: Iterable[Any], app_dir: str | None = None) -> Bundle:
    """Pack agent functions and `Agent` classes.

    Args:
        agents: the same one twice is one.
        app_dir: folder of the program that they belong to; put first on the session processes' ``sys.path``.

    Raises:
        TypeError, ValueError: something is no agent, or its id cannot be one.
        DuplicateAgent: two agents with one id; names both origins.
        DuplicateTool: two tools of an agent with one name; names both origins.
        AgentNotPicklable: names what in it cannot be pickled.
    """
    from openclaw_ray.agents.tools.catalog import checked_tools, tool_name

    codes: dict[str, AgentCode] = {}
    packed: dict[str, tuple[str, str | None, bytes]] = {}
    paths = [] if app_dir is None else [os.path.abspath(app_dir)]
    given: dict[str, Any] = {}
    travelling: set[str] = set()
    for agent in agents:
        info = agent_info(agent)
        if given.setdefault(info.id, agent) is agent and info.id in codes:
            continue
        origin = origin_of(agent)
        checked_tools(info.tools)
        modules = _travels(agent)
        data = _pickled(agent, info.id, modules)
        marks = (info.resumable, info.spawns, info.follow_up)
        names = tuple(tool_name(tool) for tool in info.tools)
        code = AgentCode(info.id, identity(agent, data), str(origin), *marks, names)
        known = codes.setdefault(info.id, code)
        if known.hash != code.hash:
            raise DuplicateAgent(info.id, known.origin, code.origin)
        if known is code:
            packed[info.id] = (origin.module, origin.file, data)
            travelling.update(modules)
            for root in (origin.root, *_tool_roots(info)):
                if root is not None and root not in paths:
                    paths.append(root)
    ordered = tuple(codes[agent_id] for agent_id in sorted(codes))
    name = repr(([(code.id, code.hash) for code in ordered], paths))
    return Bundle(
        id=hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest(),
        agents=ordered,
        paths=tuple(paths),
        modules=tuple(sorted(travelling)),
        data=pickle.dumps({code.id: packed[code.id] for code in ordered}, protocol=5),
    )


def load_bundle(data: bytes, paths: Iterable[str]) -> LoadedBundle:
    """What a session process keeps of a bundle; runs none of its code."""
    return LoadedBundle(pickle.loads(data), tuple(paths))


def import_check(bundle: Bundle) -> None:
    """Load every agent of a bundle in this process, and make those that are classes.

    Raises:
        AgentImportError: for the first that does not work.
    """
    loaded = load_bundle(bundle.data, bundle.paths)
    for agent_id in loaded.ids:
        loaded.construct(agent_id)


# --------------------------------------------------------------------------- inside


def _is_below(file: str | None, folders: tuple[str, ...]) -> bool:
    return file is not None and any(file.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _forget(name: str) -> None:
    """Have the next import of a module make it anew."""
    module = sys.modules.pop(name, None)
    package, _, short = name.rpartition(".")
    if module is not None and getattr(sys.modules.get(package), short, None) is module:
        delattr(sys.modules[package], short)


def _pickled(agent: Any, agent_id: str, modules: Iterable[str]) -> bytes:
    with by_value(modules):
        try:
            return dumps(agent)
        except Exception as exc:
            raise AgentNotPicklable(agent_id, why_not_picklable(agent, exc, dumps)) from exc


def _tool_roots(info: AgentInfo) -> list[str | None]:
    """Folders that an agent's tools are to be imported from, where they are not in its own module."""
    return [origin_of(tool).root for tool in info.tools if not isinstance(tool, str)]


def _travels(agent: Any) -> list[str]:
    """The name of its module, if that has to go by value: not ``__main__``, which does so anyway."""
    module = module_of(agent)
    if module is None or module.__name__ == "__main__" or is_installed(module):
        return []
    return [module.__name__]
