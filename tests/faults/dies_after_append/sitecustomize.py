"""In front of a driver's PYTHONPATH: its first hub dies between the append of an announce and the answer to the push.

``DIES_AFTER_APPEND`` names a file that is made by the one that dies, so that the next hub lives.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import signal
import sys
from types import ModuleType
from typing import Any

_HUB = "openclaw_ray.actors.hub_actor"


class _Watch(importlib.abc.MetaPathFinder):
    """Waits for the hub's module, in whichever process that is imported."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != _HUB:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _dies_after_append(module)

        loader.exec_module = exec_module
        return spec


def _dies_after_append(module: Any) -> None:
    write = module.HubActor._write

    def then_die(self: Any, agent: str, rows: list[Any]) -> None:
        write(self, agent, rows)
        if not any((getattr(row, "key", None) or "").startswith("announce:") for row in rows):
            return
        try:
            os.close(os.open(os.environ["DIES_AFTER_APPEND"], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    module.HubActor._write = then_die


if "DIES_AFTER_APPEND" in os.environ:
    sys.meta_path.insert(0, _Watch())
