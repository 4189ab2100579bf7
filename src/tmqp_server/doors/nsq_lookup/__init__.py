"""nsqlookupd: the directory of the topics and channels of nsqds; see the modules."""

from __future__ import annotations

__all__: list[str] = []
