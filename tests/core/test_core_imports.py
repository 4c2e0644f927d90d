"""What the core may import: a session process pays for every module (DESIGN.md 12)."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = (
    "admission",
    "allowed_agents",
    "announce",
    "announce_text",
    "archive_rules",
    "auth",
    "clock",
    "errors",
    "history",
    "ids",
    "keys",
    "ledger",
    "limits",
    "redaction",
    "policy",
    "spawn_params",
    "spawn_rules",
    "subagent_rows",
    "targets",
    "thread_rules",
    "tokens",
    "tool_params",
    "tool_results",
    "visibility",
    "value_readers",
    "value_types",
)
HEAVY = ("ray", "numpy", "pydantic", "json5", "click", "rich", "asyncio")


def test_the_core_imports_neither_ray_nor_numpy_nor_pydantic() -> None:
    names = ", ".join(f"openclaw_ray.core.{name}" for name in MODULES)
    code = f"import sys, {names}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_there_and_sorted(name: str) -> None:
    module = __import__(f"openclaw_ray.core.{name}", fromlist=["__all__"])
    assert all(hasattr(module, public) for public in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
