"""A second count of what the survey counts, by other means."""

from __future__ import annotations

import ast
import collections
import hashlib
import os
import re
from pathlib import Path

__all__ = ["count"]


def count(root: Path) -> dict[str, int]:
    """The totals of a survey of ``root``."""
    totals: collections.Counter[str] = collections.Counter(duplicates=0)
    hashes: collections.Counter[str] = collections.Counter()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file():
                continue
            content = path.read_bytes()
            hashes[hashlib.sha256(content).hexdigest()] += 1
            totals.update(files=1, bytes=len(content), lines=0, words=0, functions=0, classes=0, todos=0)
            try:
                text = content.decode()
            except UnicodeDecodeError:
                continue
            if "\0" in text[:2048]:
                continue
            totals["lines"] += sum(1 for line in re.split(r"(?<=\n)", text) if line)
            totals["words"] += len(re.findall(r"\S+", text))
            totals["todos"] += len(re.findall(r"(?<!\w)(?:TODO|FIXME|XXX)(?!\w)", text))
            if name.endswith(".py"):
                try:
                    nodes = [type(node).__name__ for node in ast.walk(ast.parse(content))]
                except SyntaxError:
                    continue
                totals["functions"] += nodes.count("FunctionDef") + nodes.count("AsyncFunctionDef")
                totals["classes"] += nodes.count("ClassDef")
    totals["duplicates"] = sum(number - 1 for number in hashes.values())
    return dict(totals)
