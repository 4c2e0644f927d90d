"""Keeping what a ``runtime_env`` carries: Ray drops a package that no job names some minutes after it was wanted."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["keep_carried", "packages_of"]

_EVERY, _FOR = 120.0, 900
"""Seconds between two words that it is wanted, and for which one holds."""


def packages_of(runtime_env: Mapping[str, Any] | None) -> list[str]:
    """Names of the packages that are in the cluster itself."""
    env = runtime_env or {}
    named = [env.get("working_dir"), *(env.get("py_modules") or ())]
    return [name for name in named if isinstance(name, str) and name.startswith("gcs://")]


def keep_carried(runtime_env: Mapping[str, Any] | None) -> None:
    """Have them kept for as long as this process lives."""
    packages = packages_of(runtime_env)
    if packages:
        threading.Thread(target=_keep, args=(packages,), name="openclaw-carried", daemon=True).start()


def _keep(packages: list[str]) -> None:
    from ray._private.runtime_env.packaging import pin_runtime_env_uri

    while True:
        for package in packages:
            with contextlib.suppress(Exception):  # the head is busy: said again soon
                pin_runtime_env_uri(package, expiration_s=_FOR)
        time.sleep(_EVERY)
