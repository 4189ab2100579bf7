"""Decides whether Spark starts its Python workers with :mod:`tmqp_spark.daemon`.

It is separate from that module, which is a program that must be the first to load the package.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["SETTING", "daemon_settings", "is_local"]

SETTING: Final = "spark.python.daemon.module"
_NAME: Final = "tmqp_spark.daemon"
_LOCATE: Final = (
    "import importlib.util as u; s = u.find_spec('tmqp_spark'); print(s.origin if s else '')"
)
_PATIENCE_S: Final = 20


def is_local(master: str | None) -> bool:
    """Whether executors run on this machine; None means Spark's own configuration."""
    return (
        master is not None and master.startswith("local") and not master.startswith("local-cluster")
    )


def daemon_settings(master: str | None, settings: dict[str, Any]) -> dict[str, str]:
    """Return the setting that makes Spark use this daemon if that certainly works, otherwise none.

    It works only on this machine: other executors may get the package with a job, or not at all,
    and without the daemon's module they could not start Python.

    :param settings: the user's settings.
    """
    if not is_local(master):
        return {}
    if SETTING in settings or not hasattr(os, "fork"):
        return {}
    python = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or "python3"
    return {SETTING: _NAME} if _has_package(str(python)) else {}


def _has_package(python: str) -> bool:
    """Whether a Python finds this very package."""
    here = Path(__file__).parent
    found = shutil.which(python)
    if found is None:
        return False
    if found == sys.executable and str(here.parent) in site.getsitepackages():
        return True
    try:
        asked = subprocess.run(  # noqa: S603 - the Python that Spark starts as well
            [found, "-c", _LOCATE],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    origin = asked.stdout.strip()
    return bool(origin) and Path(origin).parent.resolve() == here.resolve()
