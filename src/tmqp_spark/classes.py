"""Java's shared classes: a file with the classes that Spark's JVM loads, for a faster start.

Theory of operation.  A JVM can write the classes that it has loaded to a file when it ends; another
one maps that file instead of reading thousands of classes from jars and checking them.  The file
belongs to one Java and one set of jars; a JVM ignores a file of another.  So the first command that
starts its own JVM creates the file, in the user's cache folder, and later commands use it.  If that
does not work, a marker prevents further attempts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from tmqp_spark.java import brought_java, cache_folder

__all__ = ["SharedClasses", "end_jvm"]

#: Keeps Java's messages about the file off standard output, where a command prints its results.
_SILENT: Final = "-Xlog:disable -Xlog:all=error:stderr"
_PATIENCE_S: Final = 60.0
_NOT_POSSIBLE: Final = ".none"


class SharedClasses:
    """The file for one Java and the installed Spark.

    :param java: the program that Spark starts.
    :param cache: the folder for the file; the user's cache folder if None.

    ``path`` is None if the file cannot be created or used.
    """

    def __init__(
        self,
        java: Path,
        cache: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.path: Path | None = None
        jars = _jars(environment)
        # A Spark with other jars loads other classes.
        if jars is None or any(environment.get(name) for name in ("SPARK_CONF_DIR", "CLASSPATH")):
            return
        folder = cache or cache_folder(environment)
        self.path = folder / f"classes-{_key(java, jars)}.jsa"
        if self.path.with_suffix(_NOT_POSSIBLE).exists() or " " in str(self.path):
            self.path = None

    @property
    def to_make(self) -> bool:
        """Whether the next JVM must write the file."""
        return self.path is not None and not self.path.exists()

    @property
    def _fresh(self) -> Path:
        assert self.path is not None, "asked for where it can be made"
        return self.path.with_suffix(f".{os.getpid()}")

    def options(self) -> str:
        """Return the options for the JVM; empty if the file cannot be used."""
        if self.path is None:
            return ""
        _sweep(self.path.parent)
        if not self.to_make:
            return f"-XX:SharedArchiveFile={self.path} -Xshare:auto {_SILENT}"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            self.path = None
            return ""
        return f"-XX:ArchiveClassesAtExit={self._fresh} {_SILENT}"

    def keep(self) -> bool:
        """Move the file that an ended JVM wrote to its place; return whether it wrote one."""
        if self.path is None:
            return False
        fresh = self._fresh
        with suppress(OSError):
            if fresh.exists() and fresh.stat().st_size:
                # A rename, so that JVMs that start meanwhile never see a part of the file.
                fresh.replace(self.path)
                return True
            fresh.unlink(missing_ok=True)
            self.path.with_suffix(_NOT_POSSIBLE).touch()
        return False


def end_jvm(context: Any) -> bool:
    """End the JVM of this process after its session was stopped, and wait for it.

    A later session starts another one.

    :param context: the class ``SparkContext``, which has the connection to the JVM.
    :returns: whether it has ended; False if another program had started it.
    """
    gateway = context._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None or process.stdin is None:
        return False
    gateway.shutdown()
    context._gateway = context._jvm = None
    # The JVM ends at the end of its standard input.
    process.stdin.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def _sweep(folder: Path) -> None:
    """Remove the files of JVMs whose commands were killed."""
    for path in folder.glob("classes-*"):
        number = path.suffix[1:]
        if not number.isdigit():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            with suppress(OSError):
                path.unlink()
        except OSError:
            continue


def _jars(environment: Mapping[str, str]) -> Path | None:
    """The folder with the jars of the Spark that will be started; None if unknown."""
    home = environment.get("SPARK_HOME")
    if home is None:
        try:
            import pyspark  # noqa: PLC0415 - absent where only data is read
        except ImportError:
            return None
        home = str(Path(pyspark.__file__).parent)
    jars = Path(home) / "jars"
    return jars if jars.is_dir() else None


def _key(java: Path, jars: Path) -> str:
    """A key that distinguishes this Java and these jars from others."""
    told = [str(java.resolve()), str(jars.resolve())]
    # The Java that is brought along is started by another program, which stays as it is.
    brought = brought_java()
    for path in (java.resolve(), jars, *([] if brought is None else [brought.resolve()])):
        stat = path.stat()
        told.append(f"{stat.st_mtime_ns} {stat.st_size}")
    return blake2b("\n".join(told).encode(), digest_size=8).hexdigest()
