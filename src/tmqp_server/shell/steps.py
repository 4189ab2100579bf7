"""What the shell answers to who carries its bytes."""

from __future__ import annotations

from typing import Final

__all__ = ["EFFECTS", "END", "GONE", "NOT_YET", "READ", "SENT", "WAIT"]

#: What a reader does next: read on; wait for ``Resume``; read no more.
READ: Final = 0
WAIT: Final = 1
END: Final = 2
#: A bit beside them: there are effects to take.
EFFECTS: Final = 4

#: What happened to bytes that were to be sent: :meth:`Connections.send`.
SENT: Final = 0
NOT_YET: Final = 1
GONE: Final = 2
