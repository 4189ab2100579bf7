"""What is said while a comparison is measured, and when it is cut short."""

from __future__ import annotations

import sys

__all__ = ["cut_short", "show"]


def show(text: str) -> None:
    """Show on the terminal, if there is one, what is being measured; nothing ("") takes it away."""
    if sys.stderr.isatty():
        print(f"\r{text:<70}", end="\r" if not text else "", file=sys.stderr, flush=True)


def cut_short() -> int:
    """Say that Control-C ended it; the status to end with."""
    print("interrupted: nothing is printed of a comparison cut short", file=sys.stderr)
    return 130
