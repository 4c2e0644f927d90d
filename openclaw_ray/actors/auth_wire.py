"""How a credential travels from the registry to the turn that asked for it, and in no other way.

A `Credential` refuses to be pickled. Its parts go as bytes in the answer to one call, which Ray keeps in the memory of
the two processes alone, and lets go of with the answer; they are never an argument, nor raised.
"""

from __future__ import annotations

import pickle

from openclaw_ray.core.auth import Credential
from openclaw_ray.core.errors import OpenClawRayError

__all__ = ["pack_answer", "unpack_answer"]


def pack_answer(answer: Credential | OpenClawRayError | None) -> bytes:
    """What the registry answers."""
    if not isinstance(answer, Credential):
        return pickle.dumps((None, answer), protocol=5)
    parts = (
        answer.provider,
        answer.profile_id,
        answer.type,
        answer.source.value,
        answer.secret,
        answer.expires,
        answer.email,
    )
    return pickle.dumps((parts, None), protocol=5)


def unpack_answer(data: bytes) -> Credential | None:
    """The credential; `None` if none was asked for.

    Raises:
        OpenClawRayError: what the registry answered in its place.
    """
    parts, error = pickle.loads(data)
    if error is not None:
        raise error
    return None if parts is None else Credential(*parts)
