"""Figures and words that every process knows, the leanest ones included: nothing is imported for them."""

from __future__ import annotations

from typing import Final

__all__ = ["RESULT_TEXT_MAX_BYTES", "SANDBOX_BACKEND", "STATE_MAX_BYTES", "TASK_MAX_BYTES"]

SANDBOX_BACKEND: Final = "sandboxBackend"
"""What a refusal names as its limit if a session would have to be sandboxed and there is nothing to do it with."""
TASK_MAX_BYTES: Final = 1 << 20
"""Bytes of UTF-8 that a task text may have (DESIGN.md 7)."""
STATE_MAX_BYTES: Final = 64 << 10
"""Bytes of JSON that ``turn.state`` may have (DESIGN.md 7)."""
RESULT_TEXT_MAX_BYTES: Final = 102_400
"""Bytes of UTF-8 at which a result text is cut (SPEC.md F3)."""
