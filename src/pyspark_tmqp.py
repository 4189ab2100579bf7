"""The name by which Spark finds the format ``tmqp`` without an import.

Spark imports every top-level module called ``pyspark_...`` and takes its ``DefaultSource``.  One
that fails to import hides all formats of all packages, so this one never raises: without its
requirements it has no ``DefaultSource``.
"""

from __future__ import annotations

import contextlib

__all__ = ["DefaultSource"]

with contextlib.suppress(Exception):
    from tmqp_spark.source import TmqpDataSource

    DefaultSource = TmqpDataSource
