"""The Spark session of a command: it starts fast, prints little, and only its creator ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tmqp_spark.classes import SharedClasses, end_jvm
from tmqp_spark.java import ensure_java
from tmqp_spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL_SETTINGS", "spark_for"]

_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: Settings for a Spark on this machine that runs only as long as the command.
LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    # Files are bounded in bytes, and what is collected is small.
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    # The JVM only plans and distributes; it starts fastest with one compiler and one GC thread.
    _JVM_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def spark_for(
    name: str,
    master: str | None,
    settings: Mapping[str, str] | None = None,
    *,
    formats: bool = True,
) -> Iterator[SparkSession]:
    """Yield a session for the block: that of this process, or a new one.

    :param master: as in Spark; None for ``spark.master`` of Spark's own configuration, or else for
        all processors of this machine, with three attempts per task.
    :param settings: Spark's settings, which take precedence over ours.
    :param formats: register our formats; without them, Spark is ready a second earlier.
    :raises JavaMissing: and :class:`SparkError`: as :func:`tmqp_spark.session.session`.
    """
    java = ensure_java()
    from pyspark import SparkContext  # noqa: PLC0415 - Java must be found before
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the same

    found = SparkSession.getActiveSession()
    if found is not None:
        yield found
        return
    given: dict[str, Any] = dict(settings or {})
    chosen = master or (None if "spark.master" in given or _configured() else "local[*,3]")
    if chosen is not None and chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        given = {**LOCAL_SETTINGS, **given}
    classes = _shared_classes(java, given, settings or {})
    spark = session(f"tmqp-spark {name}", chosen, given, formats=formats)
    try:
        yield spark
    finally:
        spark.stop()
    # Not after an error or an immediate stop, when nobody wants to wait for Java.
    if classes is not None and classes.to_make and end_jvm(SparkContext):
        classes.keep()


def _shared_classes(
    java: Path, given: dict[str, Any], settings: Mapping[str, str]
) -> SharedClasses | None:
    """Make the JVM use shared classes, unless the user sets its options, or this process already
    has a JVM."""
    from pyspark import SparkContext  # noqa: PLC0415 - Java must be found before

    if _JVM_OPTIONS not in given or _JVM_OPTIONS in settings or SparkContext._gateway is not None:
        return None
    classes = SharedClasses(java)
    given[_JVM_OPTIONS] = f"{given[_JVM_OPTIONS]} {classes.options()}".strip()
    return classes


def _configured() -> bool:
    """Whether spark-submit or Spark's own configuration says where to run."""
    return bool(os.environ.get("SPARK_CONF_DIR") or os.environ.get("MASTER"))
