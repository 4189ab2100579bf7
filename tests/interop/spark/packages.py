"""Another PySpark than the one that is installed, in a folder that goes before it in the path."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.interop.building import CACHE, fetch, made
from tests.project import ROOT

__all__ = ["OTHER", "other_pyspark"]

_REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
#: Where it is, once :func:`other_pyspark` has put it there.
OTHER: Final = CACHE / "spark"


def other_pyspark(client: str) -> dict[str, str]:
    """The environment variables of programs that find the other PySpark, what
    ``requirements.txt`` names beside it, and this checkout; skips the test if it cannot be fetched.

    :param client: whose test it is, should it be skipped.
    """
    packages = OTHER / "packages"
    with made(OTHER, [_REQUIREMENTS]) as is_due:
        if is_due:
            shutil.rmtree(packages, ignore_errors=True)
            words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
            fetch(client, [*words, "--requirement", str(_REQUIREMENTS)], OTHER)
    places = [packages, ROOT / "src", ROOT]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}


if __name__ == "__main__":
    print(other_pyspark("pyspark")["PYTHONPATH"])
