"""``openclaw-ray doctor --fix``: what may be mended without asking again (SPEC.md H5)."""

from __future__ import annotations

from openclaw_ray.cli.alive import alive_names
from openclaw_ray.cli.view import LiveView

__all__ = ["clear_tombstones"]


def clear_tombstones(name: str | None) -> list[tuple[str, str]]:
    """Let sessions that were resumed too often be resumed again, in the runtime of this name or in all that can be
    reached from here; (runtime, session key) of each.

    Raises:
        RuntimeNotFound, RayUnreachable: the runtime that was named is not there.
    """
    from openclaw_ray.core.errors import RayUnreachable, RuntimeNotFound

    cleared: list[tuple[str, str]] = []
    for each in [name] if name is not None else alive_names():
        try:
            with LiveView.open(each) as view:
                cleared += [(each, key) for key in view.runtime.clear_tombstones()]
        except (RuntimeNotFound, RayUnreachable):
            if name is not None:
                raise  # else it has just ended
    return cleared
