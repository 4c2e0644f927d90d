"""The agents of a user's file: ``--app app.py`` is imported, what is decorated in it can run."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from openclaw_ray.cli.exits import CommandError
from openclaw_ray.cli.output import kept_for_data

__all__ = ["AppFile", "load_app"]


@dataclass(frozen=True, slots=True)
class AppFile:
    """An imported app file.

    Attributes:
        path: where it is.
        agents: its agents by id, in the order of the file; imported ones are among them.
        own: ids of those that the file itself defines.
    """

    path: Path
    agents: dict[str, object]
    own: tuple[str, ...]

    def pick(self, agent_id: str | None) -> str:
        """The id of the agent to run: the one asked for, else the only one, else the file's only own one.

        Raises:
            CommandError: there is none of this id, or there are several and none was asked for.
        """
        known = ", ".join(self.agents)
        if agent_id is None:
            for ids in (self.own, tuple(self.agents)):
                if len(ids) == 1:
                    return ids[0]
            raise CommandError(f"{self.path} has {len(self.agents)} agents: choose one with --agent ({known})")
        if agent_id not in self.agents:
            raise CommandError(f"{self.path} has no agent {agent_id!r}; --agent can be: {known}")
        return agent_id


def load_app(path: str) -> AppFile:
    """Import the file as a module named by its stem, with its folder on ``sys.path``; collect its agents.

    Raises:
        CommandError: it is not there, hides another module, does not import, or defines no agent.
    """
    file = Path(path).resolve()
    if not file.is_file():
        what = "is a folder; name the file in it" if file.is_dir() else "is not there"
        raise CommandError(f"app file {path} {what} (looked in {file.parent})")
    if file.suffix != ".py":
        raise CommandError(f"app file {path} is no Python file: its name must end with .py")
    _refuse_hiding(file)
    module = _import(file, path)
    agents: dict[str, object] = {}
    own = []
    for value in vars(module).values():
        agent_id = _agent_id(value, path)
        if agent_id is None:
            continue
        if agents.setdefault(agent_id, value) is not value:
            raise CommandError(f"{path} has two agents with the id {agent_id!r}; give one of them another id")
        if getattr(value, "__module__", None) == module.__name__ and agent_id not in own:
            own.append(agent_id)
    if not agents:
        raise CommandError(f"{path} defines no agent; decorate a function with @openclaw_ray.agent, or subclass Agent")
    return AppFile(path=Path(path), agents=agents, own=tuple(own))


def _refuse_hiding(file: Path) -> None:
    loaded = sys.modules.get(file.stem)
    origin = getattr(loaded, "__file__", None)
    taken = loaded is not None and (origin is None or Path(origin).resolve() != file)
    if taken or file.stem in sys.stdlib_module_names:
        where = f" ({origin})" if origin else ""
        raise CommandError(f"{file.name} would hide the module {file.stem}{where}; give the file another name")


def _import(file: Path, shown: str) -> ModuleType:
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise CommandError(f"{shown} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        with kept_for_data():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[file.stem]
        raise CommandError(f"{shown} does not import: {_describe(error, file)}") from error
    return module


def _describe(error: BaseException, file: Path) -> str:
    """What went wrong, where in the user's own code, and what to do."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        spots = [f"{error.filename}, line {error.lineno}", *_own_line(error, file)]
        return f"{type(error).__name__}: {error.msg} ({'; imported by '.join(spots)})"
    where = _where(error, file)
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        python = os.path.basename(sys.executable)
        return f"{text}{where}; install {error.name} for {sys.executable} ({python} -m pip install …)"
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r}) when it is imported{where}"
    return f"{text}{where}"


def _where(error: BaseException, file: Path) -> str:
    """The app file's own line, and the innermost one of the modules beside it, where the error is."""
    spots = _own_line(error, file)
    beside = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(file.parent) and "site-packages" not in frame.filename
    ]
    if beside and beside[-1].filename != str(file):
        inner = beside[-1]
        spots.insert(0, f"{Path(inner.filename).relative_to(file.parent)}, line {inner.lineno}")
    return f" ({'; imported by '.join(spots)})" if spots else ""


def _own_line(error: BaseException, file: Path) -> list[str]:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return [f"{file.name}, line {frames[-1].lineno}"] if frames else []


def _agent_id(value: object, shown: str) -> str | None:
    """The id of an agent function or class, else `None`."""
    from openclaw_ray.agents.info import agent_info

    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return None
    try:
        return agent_info(value).id
    except TypeError:
        return None
    except ValueError as error:
        raise CommandError(f"{shown}: {error}") from None
