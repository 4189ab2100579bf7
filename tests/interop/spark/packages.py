"""Another PySpark than the one that is installed, in a folder that goes before it in the path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.building import CACHE, EXPECTED, fetch, made, unavailable
from tests.project import ROOT
from tests.tmqp_spark.conftest import spark_environment

__all__ = ["MARKS", "OTHER", "other_pyspark", "ran"]

_NAME: Final = "pyspark"
#: Of all tests of this package.  They run one after the other: each has JVMs, and Spark's cache of
#: jars is not for two at a time.
MARKS: Final = [
    pytest.mark.xdist_group(_NAME),
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        bool(EXPECTED) and _NAME not in EXPECTED, reason="only other clients are asked for"
    ),
]

_REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
#: Where it is, once :func:`other_pyspark` has put it there.
OTHER: Final = CACHE / "spark"
#: It is large, and who waits for it has other things to try.
_FETCHED_S: Final = 200
#: What Spark says when it cannot fetch a jar.
_NO_JARS: Final = "UNRESOLVED DEPENDENCIES"
_RUN_S: Final = 300


def other_pyspark() -> dict[str, str]:
    """The environment variables of programs that find the other PySpark, what
    ``requirements.txt`` names beside it, and this checkout; skips the test if it cannot be fetched.
    """
    packages = OTHER / "packages"
    with made(OTHER, [_REQUIREMENTS]) as is_due:
        if is_due:
            shutil.rmtree(packages, ignore_errors=True)
            words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
            words += ["--retries", "1", "--timeout", "20", "--requirement", str(_REQUIREMENTS)]
            fetch(_NAME, words, OTHER, _FETCHED_S)
    places = [packages, ROOT / "src", ROOT]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}


def ran(module: str, *arguments: str, folder: Path) -> Any:
    """What a program prints in its last line, as JSON: a module of this package, run with the other
    PySpark; skips the test if that, or a jar that it asks for, cannot be fetched.

    :param folder: where it runs.
    """
    spark_environment()
    done = subprocess.run(
        [sys.executable, "-m", f"tests.interop.spark.{module}", *arguments],
        cwd=folder,
        env=other_pyspark(),
        capture_output=True,
        text=True,
        check=False,
        timeout=_RUN_S,
    )
    said = done.stdout + done.stderr
    if _NO_JARS in said:
        unavailable(_NAME, "Spark cannot fetch its jars")
    assert done.returncode == 0, said[-6_000:]
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(other_pyspark()["PYTHONPATH"])
