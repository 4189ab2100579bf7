"""The pipelines of ``tmqp-spark``, which can also be used from Python.

:mod:`archive <tmqp_spark.pipelines.archive>` and :mod:`replay <tmqp_spark.pipelines.replay>` move
    messages, the others examine them.
"""

from __future__ import annotations

__all__: list[str] = []
