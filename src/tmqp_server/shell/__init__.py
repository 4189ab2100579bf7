"""The decisions of the I/O shell, without I/O: when to write, pause, disconnect, save and confirm.

``turn`` and ``connections`` join the parts, ``outbound`` keeps the output for a slow peer,
``saving`` paces the storage, ``asking`` and ``calls`` limit calls to code outside, ``admitting``
counts connections, and ``world`` has the effects for the code with sockets, threads and a clock.
"""

from __future__ import annotations

__all__: list[str] = []
