"""Measures whole brokers over loopback: ours and others, in turn, with one load generator.

:mod:`.loop` moves the messages, the ``.*_wire`` modules speak the protocols, :mod:`.servers` starts
the brokers, :mod:`.workloads` says what is compared with what, :mod:`.suite` runs and judges it.
"""

from __future__ import annotations

__all__: list[str] = []
