"""Wire formats of other protocols: codecs without I/O, for servers and for clients.

Each folder is one protocol and can be used alone.  They need the standard library only and import
nothing of the rest of this project; compression and cryptography are passed in by whoever has the
library.  A decoder takes bytes, cut in any way, and returns events; bad input is an event that
carries the protocol's own answer, never an exception.
"""

from __future__ import annotations

__all__: list[str] = []
