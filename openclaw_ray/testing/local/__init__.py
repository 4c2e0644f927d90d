"""A runtime of threads: what `openclaw_ray.testing.LocalRuntime` is made of. Nothing here imports Ray."""

from __future__ import annotations

from openclaw_ray.testing.local.runtime import LocalRuntime

__all__ = ["LocalRuntime"]
