"""The broker's engine: a pure state machine that takes commands and the time and gives effects.

``Broker`` is the machine; ``commands`` and ``effects`` are all that doors need to know;
``model.delivery`` is for those who write delivery handlers.
"""

from __future__ import annotations

__all__: list[str] = []
