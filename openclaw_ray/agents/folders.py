"""The folder that a session's turns run in (SPEC.md C, stage 6).

1. A folder that the configuration gives an agent is made if it is not there; one that a call names must be there.
2. The process goes there before the agent's code is called, and the clean check brings it back (`hygiene`).
"""

from __future__ import annotations

import os

from openclaw_ray.core.errors import FolderError
from openclaw_ray.core.session_facts import SessionFacts

__all__ = ["enter_folder", "folder_of", "make_folder"]


def folder_of(path: str) -> str:
    """A folder as written in a configuration, ``~`` being the home of who runs this process."""
    return os.path.abspath(os.path.expanduser(path))


def enter_folder(facts: SessionFacts | None) -> None:
    """Go to the folder of a session, if it has one.

    Raises:
        FolderError: it is not there, or may not be entered.
    """
    if facts is None or facts.cwd is None:
        return
    path = make_folder(facts)
    try:
        os.chdir(path)
    except OSError as error:
        raise FolderError(path, error.strerror or str(error)) from error


def make_folder(facts: SessionFacts) -> str:
    """The folder of a session that has one, there for sure (1).

    Raises:
        FolderError: it is not there, or cannot be made.
    """
    path = folder_of(facts.cwd or "")
    try:
        if facts.cwd == facts.home:
            os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise FolderError(path, error.strerror or str(error)) from error
    if not os.path.isdir(path):
        raise FolderError(path, "there is no such folder")
    return path
