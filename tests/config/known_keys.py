"""Makes ``openclaw_ray/config/known_keys.json.gz`` from the list of OpenClaw's key paths.

Usage: ``python -m tests.config.known_keys config-keys.json openclaw_ray/config/known_keys.json.gz``. The list is what
OpenClaw's ``config schema`` prints, flattened: ``path`` (``*`` any key, ``[]`` any list element), ``open`` for objects
that take further keys, and ``retired`` paths of older files with the one that took their place.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["compacted", "steps"]


def steps(path: str) -> list[str]:
    """``a.*.b[]`` as ``["a", "*", "b", "[]"]``."""
    return re.findall(r"\[\]|[^.\[\]]+", path)


def _grow(tree: dict[str, Any], path: str, mark: str | None = None, value: object = 1) -> None:
    node = tree
    for step in steps(path):
        node = node.setdefault(step, {})
    if mark is not None:
        node[mark] = value


def compacted(listed: dict[str, Any]) -> bytes:
    """The package data: two trees of nested objects, ``keys`` (``!`` marks open ones) and ``retired`` (``!`` is the
    successor)."""
    keys: dict[str, Any] = {}
    retired: dict[str, Any] = {}
    for row in listed["keys"]:
        _grow(keys, row["path"], "!" if row.get("open") else None)
    for row in listed["retired"]:
        _grow(retired, row["path"], "!", row.get("now", ""))
    data = {"version": listed["version"], "keys": keys, "retired": retired}
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 9, mtime=0)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_bytes(compacted(json.loads(source.read_text(encoding="utf-8"))))
