"""What stands for the memory of a process: which classes it has, of those that travel by value.

1. Ray's cloudpickle is one file that needs nothing of Ray. It is loaded once more, under a name of its own.
2. It remembers the classes that went out and came in. A real process has a memory of its own; here each `ProcessMemory`
   has one, which takes that place while something is pickled or unpickled for it.
3. So a class that an agent sets an attribute on is not the next session's, and a value that comes home is of the class
   that it left with, as on a cluster.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["ProcessMemory"]

_NAME = "openclaw_ray_cloudpickle"
_lock = threading.RLock()
_loading = threading.Lock()
"""Apart from the other: the registry makes sessions under its lock, and who is inside a memory may ask it for code."""


class ProcessMemory:
    """Stands in for cloudpickle in one process that is none, see `openclaw_ray.agents._cloudpickle.standing_in`."""

    def __init__(self) -> None:
        self._pickles: Any = _cloudpickle()
        self.__name__ = _NAME
        self._DYNAMIC_CLASS_TRACKER_BY_ID: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.register_pickle_by_value: Callable[[ModuleType], None] = self._pickles.register_pickle_by_value
        self.unregister_pickle_by_value: Callable[[ModuleType], None] = self._pickles.unregister_pickle_by_value
        self.list_registry_pickle_by_value: Callable[[], set[str]] = self._pickles.list_registry_pickle_by_value

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Whatever is pickled or unpickled inside is so for this process (2)."""
        with _lock:
            before = self._pickles._DYNAMIC_CLASS_TRACKER_BY_ID
            self._pickles._DYNAMIC_CLASS_TRACKER_BY_ID = self._DYNAMIC_CLASS_TRACKER_BY_ID
            try:
                yield
            finally:
                self._pickles._DYNAMIC_CLASS_TRACKER_BY_ID = before

    def dumps(self, value: Any, protocol: int | None = None, buffer_callback: Any = None) -> bytes:
        """As cloudpickle's."""
        with self.inside():
            return bytes(self._pickles.dumps(value, protocol=protocol, buffer_callback=buffer_callback))

    def loads(self, data: bytes) -> Any:
        """As `pickle.loads`, in this process (2)."""
        with self.inside():
            return pickle.loads(data)


def _cloudpickle() -> ModuleType:
    """Ray's, without Ray (1)."""
    with _loading:
        if _NAME in sys.modules:
            return sys.modules[_NAME]
        ray = importlib.util.find_spec("ray")
        if ray is None or ray.origin is None:
            raise ModuleNotFoundError("Ray is not installed: its cloudpickle is what agents travel with", name="ray")
        file = Path(ray.origin).parent / "cloudpickle" / "cloudpickle.py"
        spec = importlib.util.spec_from_file_location(_NAME, file)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"no module in {file}", name=_NAME)
        module = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[_NAME]
            raise
        return module
