"""Objects on their way to a session: small ones as a pickle that is journaled, others by reference (DESIGN.md 7)."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable
from typing import Any

from openclaw_ray.agents._by_value import by_value
from openclaw_ray.core.protocol.messages import VALUE_LIMIT, Payload

__all__ = ["pack", "pickled", "unpack"]

_DIRECT = "direct"
_PUT = "put"


class _HoldsReference(Exception):
    """The object has an ObjectRef or an actor handle in it: Ray itself must carry it."""


def _dumps(value: Any, buffers: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    import ray
    from ray import ObjectRef, cloudpickle
    from ray.actor import ActorHandle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, (ObjectRef, ActorHandle, ray.ObjectRefGenerator)):
                raise _HoldsReference
            return super().reducer_override(obj)  # type: ignore[no-untyped-call]

    buffer = io.BytesIO()
    Pickler(buffer, protocol=5, buffer_callback=buffers).dump(value)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def pickled(value: Any, modules: Iterable[str] = ()) -> bytes:
    """The pickle of an object, as `pack` makes it.

    Raises:
        Exception: whatever its pickling raises; it has an object reference or an actor handle in it.
    """
    with by_value(modules):
        return _dumps(value)


def pack(value: Any, modules: Iterable[str] = ()) -> Payload:
    """Make ``value`` ready to travel; one above 64 KB is put into the object store by this process, its owner.

    That is the one copy there is of an array: sessions on its node see it where it lies.

    Args:
        modules: whose classes go by value, as the agents' code does, so that they are the same there.

    Raises:
        Exception: whatever its pickling raises; nothing has been put then.
    """
    import ray

    if type(value) in (str, bytes, int, float, bool):
        data = pickle.dumps(value, protocol=5)
    else:
        apart: list[pickle.PickleBuffer] = []  # arrays, counted where they lie
        with by_value(modules):
            try:
                data = _dumps(value, apart.append)
                size = len(data) + sum(buffer.raw().nbytes for buffer in apart)
                if size > VALUE_LIMIT:
                    return Payload(ref=(_PUT, ray.put(value)), size=size)
                if apart:
                    data = _dumps(value)
            except _HoldsReference:
                return Payload(ref=(_DIRECT, value))
    if len(data) <= VALUE_LIMIT:
        return Payload(data=data, size=len(data))
    return Payload(ref=(_PUT, ray.put(value)), size=len(data))


def unpack(payload: Payload) -> Any:
    """The object again; numpy arrays out of the object store are read-only and not copied.

    Raises:
        Exception: what unpickling raises, or Ray's error if the process that put it is gone.
    """
    if payload.data is not None:
        return pickle.loads(payload.data)
    kind, held = payload.ref
    if kind == _DIRECT:
        return held
    import ray

    return ray.get(held)
