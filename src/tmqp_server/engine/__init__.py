"""The broker's engine: an I/O-free state machine.  You pass in commands and the time; it returns
effects.

``Broker`` is the machine; doors need only ``commands`` and ``effects``; ``model.delivery`` is for
authors of delivery handlers.
"""

from __future__ import annotations

__all__: list[str] = []
