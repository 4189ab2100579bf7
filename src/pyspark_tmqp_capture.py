"""The name by which Spark finds the format ``tmqp_capture``; see ``pyspark_tmqp``."""

from __future__ import annotations

import contextlib

__all__ = ["DefaultSource"]

with contextlib.suppress(Exception):
    from tmqp_spark.capture import TmqpCaptureDataSource

    DefaultSource = TmqpCaptureDataSource
