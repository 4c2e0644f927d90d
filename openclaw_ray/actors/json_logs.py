"""Python's ``logging`` in a session process with ``ray.logs: "json"``: records with the ids of the turn that runs.

Imported in that form alone. The root logger gets a handler and the level INFO, so that what agents log is there without
any set-up; `logging.basicConfig` then does nothing, as Python says, and levels of loggers stay the agents' own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from openclaw_ray.core.log_lines import LogOf, record

__all__ = ["JsonHandler", "log_json"]


class JsonHandler(logging.Handler):
    """Writes records to file descriptor 2, which is the session's log; one write each, so that none is torn."""

    def __init__(self, whose: Callable[[], LogOf]) -> None:
        super().__init__()
        self._whose = whose
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, entry: logging.LogRecord) -> None:
        """Write one record."""
        try:
            level = entry.levelname.lower()
            os.write(2, record(self._whose(), entry.created, self.format(entry), logger=entry.name, level=level))
        except Exception:  # noqa: BLE001 - logging's own way: a log that fails ends nothing
            self.handleError(entry)


def log_json(whose: Callable[[], LogOf]) -> None:
    """Have this process log so."""
    root = logging.getLogger()
    root.addHandler(JsonHandler(whose))
    root.setLevel(logging.INFO)
