"""The results of the shell's calls for the code that moves the bytes."""

from __future__ import annotations

from typing import Final

__all__ = ["EFFECTS", "END", "GONE", "NOT_YET", "READ", "SENT", "WAIT"]

#: What a reader does next: continue; wait for ``Resume``; stop reading.
READ: Final = 0
WAIT: Final = 1
END: Final = 2
#: An additional bit: there are effects to take.
EFFECTS: Final = 4

#: The results of :meth:`Connections.send`.
SENT: Final = 0
NOT_YET: Final = 1
GONE: Final = 2
