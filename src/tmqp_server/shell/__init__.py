"""The decisions of the I/O shell as pure code: when to write, hold back, cut, save and confirm.

``turn`` and ``connections`` join the parts, ``outbound`` keeps what waits for a slow peer,
``saving`` paces the storage, ``asking`` and ``calls`` bound the code outside, ``admitting`` delays
refused log-ins, and ``world`` names what is left to do for who has sockets, threads and a clock.
"""

from __future__ import annotations

__all__: list[str] = []
