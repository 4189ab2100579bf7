"""Runs a program by its name: ``python -m tmqp_nsq nsqd --data-path=/var/lib/nsq``."""

from __future__ import annotations

import importlib
import sys
from typing import Final

__all__ = ["main"]

_PROGRAMS: Final = ("nsqd", "nsqlookupd", "nsqadmin", "nsq_to_file", "nsq_to_http")


def main() -> None:
    """Run the program that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in _PROGRAMS:
        sys.exit(
            f"usage: python -m tmqp_nsq PROGRAM [flags], PROGRAM is one of {', '.join(_PROGRAMS)}"
        )
    importlib.import_module(f"tmqp_nsq.{name}").main(sys.argv[2:])


if __name__ == "__main__":
    main()
