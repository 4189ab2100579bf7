"""Wire formats of other protocols: codecs without I/O, for servers and for clients.

Each folder is one protocol and can be used alone.  The codecs need only the standard library and
import nothing else of this project; the caller passes in compression and cryptography.  A decoder
gets bytes, divided in any way, and returns events; invalid input is an event with the protocol's
own answer, never an exception.
"""

from __future__ import annotations

__all__: list[str] = []
