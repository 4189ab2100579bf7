"""The real server for tests that want one: started on free places, stopped at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["running_server"]

_STOP_S: Final = 10


@contextmanager
def running_server(*options: str, scheme: str = "tmq") -> Iterator[tuple[str, str]]:
    """Run ``tmqp-server``; the addresses of its TCP and of its Unix socket.

    :param scheme: of the address that is returned; for ``tmqs`` the options say how.
    """
    with tempfile.TemporaryDirectory() as folder:
        unix = f"unix:{Path(folder) / 's'}"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tmqp_server", "-l", f"{scheme}://127.0.0.1:0", "-l", unix),
                *("--log-level", "warning", *options),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " ready on " in line, f"the server did not start: {line!r}"
            places = line.split(" ready on ")[1].replace(",", " ").split()
            (tcp,) = [place for place in places if place.startswith(f"{scheme}://")]
            yield tcp, unix
            process.terminate()
            assert process.wait(_STOP_S) == 0, "it stops cleanly"
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
