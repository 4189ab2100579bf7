"""TMQP and Spark: what a data pipeline needs of the machine it runs on.

So far this package holds one thing, :mod:`tmqp_spark.doctor`: it says whether PySpark, Arrow, Java
and a TMQP server are there.  Sources and sinks are to come.
"""

from __future__ import annotations

__all__: list[str] = []
