"""Files of a ``runtime_env`` on their way to other nodes, as Ray itself has them only for the environment of a job.

Local folders in ``working_dir`` and ``py_modules`` are packed and put into the cluster, and named by that instead; each
node fetches them once. Ray forgets such a package some minutes later unless somebody says that it is wanted, which the
pool does for as long as it lives (`openclaw_ray.actors.carried`).
"""

from __future__ import annotations

import logging
import os
from typing import Any

__all__ = ["carry"]

_FOLDERS = ("working_dir", "py_modules")


def carry(runtime_env: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same environment for processes on any node.

    Raises:
        ValueError, TypeError, OSError: a folder is not there, too large, or none at all.
    """
    if not runtime_env or not any(runtime_env.get(name) for name in _FOLDERS):
        return runtime_env
    import ray
    from ray._private.runtime_env.py_modules import upload_py_modules_if_needed
    from ray._private.runtime_env.working_dir import upload_working_dir_if_needed

    node = ray._private.worker.global_worker.node
    scratch = os.getcwd() if node is None else node.get_runtime_env_dir_path()
    ignore = os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "0") != "1"
    made, log = dict(runtime_env), logging.getLogger("ray")
    for upload in (upload_py_modules_if_needed, upload_working_dir_if_needed):
        made = upload(made, include_gitignore=ignore, scratch_dir=scratch, logger=log)
    made.pop("excludes", None)
    return made
