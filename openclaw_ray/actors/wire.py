"""What couriers, registry and hub send each other, as bytes where that can be.

Ray's serializer is general and slow for small records; plain pickles of ours travel as bytes. Only what has an object
reference in it goes through Ray, which must count references. Actor handles need no counting: the pool owns the actors.
"""

from __future__ import annotations

import pickle
from typing import Any

from openclaw_ray.core.protocol.messages import Spec, Step

__all__ = ["pack", "pack_spec", "pack_step", "unpack"]


def pack(record: Any) -> bytes:
    """A record without object references."""
    return pickle.dumps(record, protocol=5)


def pack_step(step: Step) -> Any:
    """A step; through Ray if an input in it is a reference."""
    if any(admit.input is not None and admit.input.ref is not None for admit in step.admits):
        return step
    return pack(step)


def pack_spec(spec: Spec) -> Any:
    """A turn's start; through Ray if its input is a reference."""
    if spec.input is not None and spec.input.ref is not None:
        return spec
    return pack(spec)


def unpack(record: Any) -> Any:
    """The record again."""
    return pickle.loads(record) if isinstance(record, bytes) else record
