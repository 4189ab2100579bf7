"""Run a command that takes a while, and show that it is still at work.

``waiting.py WHAT -- COMMAND ...`` prints WHAT with the seconds that have passed, once a second on a
terminal and every ten seconds elsewhere.  What the command prints is shown only if it
fails.  The exit status is the command's.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from typing import Final

__all__ = ["main"]

_TERMINAL_EVERY_S: Final = 1.0
_ELSEWHERE_EVERY_S: Final = 10.0


def main(arguments: list[str]) -> int:
    """Run what the arguments say; return the exit status."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: waiting.py WHAT -- COMMAND ...", file=sys.stderr)
        return 2
    what, command = arguments[0], arguments[2:]
    live = sys.stdout.isatty()
    every_s = _TERMINAL_EVERY_S if live else _ELSEWHERE_EVERY_S
    began = time.monotonic()
    print(what, end="" if live else "\n", flush=True)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        status: int | None = None
        while status is None:
            try:
                status = process.wait(every_s)
            except subprocess.TimeoutExpired:
                words = f"... {time.monotonic() - began:.0f} s"
                print(f"\r{what} {words}" if live else f"  {words}", end="" if live else "\n")
                sys.stdout.flush()
        seconds = time.monotonic() - began
        word = "done" if status == 0 else f"failed with status {status}"
        print(f"\r{what} ... {word} in {seconds:.0f} s" if live else f"  {word} in {seconds:.0f} s")
        if status:
            output.seek(0)
            sys.stdout.write(output.read().decode("utf-8", "replace"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
