"""Facts about this process and the disk from the operating system, for monitoring.

Everything is read again each time, in some tens of microseconds.  Facts that a system does not
report are left out.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from tmqp_server.shell.tallies import ProcessFacts

__all__ = ["process_facts"]

_PROC: Final = Path("/proc/self")


def process_facts(directory: str | None) -> ProcessFacts:
    """Facts about the process, and about its data directory if there is one."""
    found = ProcessFacts()
    found.cpu_s = time.process_time()
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
        found.resident_bytes = pages * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError):
        found.open_fds = sum(1 for _ in (_PROC / "fd").iterdir())
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not every system has it

        found.max_fds = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if directory is not None:
        import shutil  # noqa: PLC0415 - it loads the compressors of archives

        with contextlib.suppress(OSError):
            found.free_bytes = shutil.disk_usage(directory).free
        with contextlib.suppress(OSError), os.scandir(directory) as files:
            found.storage_bytes = sum(each.stat().st_size for each in files if each.is_file())
    return found
