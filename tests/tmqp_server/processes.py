"""The server as a process of its own, with a configuration file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.project import ROOT

__all__ = ["configured_server"]


@contextmanager
def configured_server(path: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``tmqp-server`` with a file; the test ends it.

    :param variables: of its environment, beside ours.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tmqp_server", "--config", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **variables},
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
