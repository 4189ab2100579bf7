"""Create a Spark session for these sources, with their settings, and register the formats."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module, util
from typing import TYPE_CHECKING, Any, Final

from tmqp_spark.errors import SparkError
from tmqp_spark.forking import daemon_settings, is_local
from tmqp_spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "register", "session"]

#: What :func:`session` sets unless told otherwise.
SETTINGS: Final = {
    # Python processes use Unix sockets to the JVM: TCP takes 30 ms longer per small query.
    "spark.python.unix.domain.socket.enabled": "true",
    # What workers log can be queried: spark.tvf.python_worker_logs().
    "spark.sql.pyspark.worker.logging.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.ui.showConsoleProgress": "false",
}
#: Variables that say where Spark runs, or where that is configured.
_CHOOSING: Final = (
    "MASTER",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "SPARK_REMOTE",
)
_SOURCES: Final = (
    ("tmqp_spark.source", "TmqpDataSource"),
    ("tmqp_spark.events", "TmqpEventsDataSource"),
    ("tmqp_spark.capture", "TmqpCaptureDataSource"),
)


def register(spark: SparkSession) -> list[str]:
    """Register the formats with a session, classic or Connect; return their names.

    If the package is installed, Spark finds them automatically; this is for sessions whose
    executors got it by ``--py-files``, and for those where another package's broken ``pyspark_*``
    module hides all formats. A format that a classic session has found is not registered again,
    because Spark would warn of each one, at the start and in every query.
    """
    names: list[str] = []
    for module, name in _SOURCES:
        if util.find_spec(module) is not None:
            source = getattr(import_module(module), name)
            if not _found(spark, source.name()):
                spark.dataSource.register(source)
            names.append(source.name())
    return names


def _found(spark: SparkSession, name: str) -> bool:
    """Whether a session knows a format; False where it cannot be asked, as over Connect."""
    java: Any = getattr(spark, "_jsparkSession", None)
    if java is None:
        return False
    return bool(java.sessionState().dataSourceManager().dataSourceExists(name))


def session(
    name: str = "tmqp",
    master: str | None = None,
    settings: dict[str, Any] | None = None,
    *,
    formats: bool = True,
) -> SparkSession:
    """Return a session with the settings for these sources, and with the formats registered.

    If Spark runs on this machine only (``local[...]``), :mod:`tmqp_spark.daemon` starts the Python
    workers.  They use the Python that runs this code, unless ``PYSPARK_PYTHON`` or the setting
    ``spark.pyspark.python`` names another one: Spark by itself uses the ``python3`` of the PATH,
    which lacks the packages of a virtual environment that was not activated.

    :param master: as in Spark, ``local[4]``; Spark's own configuration if None.
    :param settings: further settings; they take precedence over ours.
    :param formats: register the formats; otherwise Spark finds them when they are used, if the
        package is installed.
    :raises JavaMissing: if no suitable Java is found.
    :raises SparkError: if pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - absent where only data is read
    except ImportError:
        raise SparkError("pyspark is not installed: pip install 'tmqp[spark]'") from None
    ensure_java()
    builder: Any = SparkSession.builder
    builder = builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    given = settings or {}
    if _runs_here(master, given) and "spark.pyspark.python" not in given:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in {**SETTINGS, **daemon_settings(master, given), **given}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    if formats:
        logging.getLogger("tmqp_spark").debug("formats: %s", ", ".join(register(spark)))
    return spark


def _runs_here(master: str | None, settings: dict[str, Any]) -> bool:
    """Whether executors run on this machine, as far as this process can tell."""
    chosen = master or settings.get("spark.master")
    if chosen:
        return is_local(str(chosen))
    return not any(os.environ.get(name) for name in _CHOOSING)
