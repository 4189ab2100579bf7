"""The name by which Spark finds the format ``tmqp_events``; see ``pyspark_tmqp``."""

from __future__ import annotations

import contextlib

__all__ = ["DefaultSource"]

with contextlib.suppress(Exception):
    from tmqp_spark.events import TmqpEventsDataSource

    DefaultSource = TmqpEventsDataSource
