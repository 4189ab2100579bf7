"""Pipelines: what ``tmqp-spark`` runs, each usable from Python too.

:mod:`archive <tmqp_spark.pipelines.archive>` and :mod:`replay <tmqp_spark.pipelines.replay>` move
messages, the others look at them.
"""

from __future__ import annotations

__all__: list[str] = []
