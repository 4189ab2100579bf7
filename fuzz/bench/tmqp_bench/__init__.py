"""Measures the project beside others of its kind: ``python -m tmqp_bench --help``.

It is no part of what is installed.  The program is split so that each build of ``tmqp`` runs in a
process of its own: :mod:`tmqp_bench.codec` starts a :mod:`tmqp_bench.worker` for each, has them
measure in turn, and judges the figures; what is measured stands in :mod:`tmqp_bench.ours` and
:mod:`tmqp_bench.peers`.
"""

from __future__ import annotations

__all__: list[str] = []
