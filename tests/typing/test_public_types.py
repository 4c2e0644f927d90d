"""The types of the public names are what `public_types` says: mypy, strict, with unused ignores as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import openclaw_ray

PUBLIC_TYPES = Path(__file__).parent / "public_types.py"
ROOT = Path(openclaw_ray.__file__).parent.parent

CONFIG = """
[mypy]
strict = True
follow_imports = silent
[mypy-ray.*,pydantic.*,numpy.*,psutil.*,json5.*,filelock.*,rich.*,click.*]
follow_imports = skip
ignore_missing_imports = True
"""

WRONG = """
import openclaw_ray as oc
def f(r: oc.Result[int]) -> str | None:
    return r.value
"""


def _found() -> dict[str, str]:
    """An environment in which mypy finds the package; an installed one it finds by itself."""
    if ROOT.name == "site-packages":
        return dict(os.environ)
    return {**os.environ, "MYPYPATH": str(ROOT)}


def test_public_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(CONFIG)
    wrong = tmp_path / "wrong.py"  # so that it is seen that the check checks
    wrong.write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=cache", "--no-error-summary", "wrong.py", str(PUBLIC_TYPES)],
        cwd=tmp_path,
        env=_found(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said, *more = (done.stdout + done.stderr).splitlines() or [""]
    assert not more, "\n".join([said, *more])
    assert said.startswith("wrong.py:4: error: Incompatible return value type (got")
