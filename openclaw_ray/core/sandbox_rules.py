"""Which sessions are sandboxed, and what a sandboxed one may start (SPEC.md I2; C, stages 1e and 1f).

A session that is to be sandboxed while there is no backend for it is refused; it is never run open.
"""

from __future__ import annotations

from typing import Final

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.bounds import SANDBOX_BACKEND

__all__ = ["check_sandbox", "no_backend", "sandboxed"]

_PATH: Final = "agents.defaults.sandbox.mode"


def sandboxed(mode: str, *, main: bool) -> bool:
    """Whether a session is sandboxed.

    Args:
        mode: ``off``, ``non-main`` or ``all``.
        main: it is an agent's main session; a child never is.
    """
    return mode == "all" or (mode == "non-main" and not main)


def check_sandbox(
    *,
    caller: bool,
    child: bool,
    required: bool = False,
    cwd: str | None = None,
    workspace: str | None = None,
    path: str = _PATH,
) -> Refusal | None:
    """Whether a child may be as this one would be.

    Args:
        caller, child: whether each is sandboxed.
        required: the call says ``sandbox: require``.
        cwd: the folder that the call names.
        workspace: the folder that the child would have without it.
        path: where the child's mode is set.
    """
    if caller and not child:
        text = f"a sandboxed session may not spawn a child outside of a sandbox ({path})"
        return Refusal("forbidden", text, "sandbox", path=path)
    if required and not child:
        text = f"sandbox: require was asked for, and the child would not be sandboxed ({path})"
        return Refusal("forbidden", text, "sandbox", path=path)
    if cwd is not None and child and cwd != workspace:
        text = f"cwd {cwd!r}: a sandboxed child works in its own workspace, {workspace}"
        return Refusal("forbidden", text, "cwd")
    return None


def no_backend(agent_id: str, mode: str, path: str) -> Refusal:
    """The answer for a session that would have to be sandboxed."""
    text = (
        f"sessions of agent {agent_id!r} are to run in a sandbox ({path}: {mode!r}), and there is no sandbox backend; "
        "nothing is run open in its place: set it to 'off', or give the work to an agent whose mode is"
    )
    return Refusal("error", text, SANDBOX_BACKEND, path=path)
