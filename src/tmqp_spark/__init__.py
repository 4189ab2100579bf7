"""TMQP and Spark: queues as Spark sources, in pure Python.

If this package is installed, ``spark.read.format("tmqp")`` and ``spark.readStream`` find it
automatically; otherwise call :func:`register`.  :func:`session` creates a suitable session, and
:func:`ensure_java` finds a Java for Spark.  ``docs/spark.md`` is the manual.

Reading order: ``options``, ``schema``, ``arrow`` (blocks to Arrow), ``transport`` (a connection),
``ranges``, ``offsets``, ``catalog``, ``planning`` (batch), ``following`` (streaming), ``source``
(what Spark sees).  All but the last and ``session`` work without pyspark.
"""

from __future__ import annotations

from tmqp_spark.errors import SparkError
from tmqp_spark.java import ensure_java
from tmqp_spark.session import register, session

__all__ = ["SparkError", "ensure_java", "register", "session"]
