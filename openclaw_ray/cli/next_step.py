"""What to try after an error: the next command, for those errors whose text does not name one. Pure."""

from __future__ import annotations

__all__ = ["next_step"]


def next_step(error: BaseException) -> str | None:
    """A command line to try, or `None` if there is nothing better than what the error itself says."""
    from openclaw_ray.core import errors

    match error:
        case errors.RuntimeNotFound(name=name):
            return (
                f"openclaw-ray status shows what lives here, openclaw-ray runs what is on disk; "
                f"openclaw-ray up --name {name} starts it"
            )
        case errors.RayUnreachable(address=address):
            # of a Ray of its own, there is no address to give
            return "openclaw-ray doctor" + ("" if address in ("", "local", "auto") else f" --address {address}")
        case errors.RuntimeInUse(name=name):
            return f"openclaw-ray sessions list --name {name}"
        case errors.UnknownAgent():
            return "openclaw-ray agents list --app FILE"
        case errors.RuntimeUnavailable() | errors.StateDirError() | errors.PoolTooSmall() | errors.CannotPlace():
            return "openclaw-ray doctor"
        case errors.AskTimeout(session_key=key) | errors.DeleteRefused(key=key) | errors.ResetRefused(key=key):
            return f"openclaw-ray sessions show {key}"
        case errors.PatchRefused(key=key):
            return f"openclaw-ray sessions show {key}"
        case errors.RuntimeClosed():
            return "openclaw-ray runs, which reads what is on disk here"
    return None
