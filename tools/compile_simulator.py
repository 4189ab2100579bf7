"""Compiles the simulator and the product's hot modules as one unit, into ``build/simulator``.

So a broker that is watched at every step is compiled too, and long soaks take half the time.  What
patches methods (the planted bugs), what knows the machine (processes, the terminal), and what goes
from one process to another stay Python.

``python -m tools.compile_simulator``, then ``PYTHONPATH=build/simulator python -m tmqp_sim run``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from setuptools import Distribution
from setuptools.command.build_ext import build_ext

__all__ = ["main"]

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "build" / "simulator"
#: What simulated groups have of the product that is compiled for nothing else.
_OF_GROUPS: Final = (
    "src/tmqp_server/replication/*.py",
    "src/tmqp_server/storage/logged.py",
    "src/tmqp_server/storage/memory.py",
    "src/tmqp_server/storage/replicated.py",
)
#: Modules of the simulator that stay Python, beside the planted bugs (``*bugs.py``).
_LEFT_OUT: Final = frozenset(
    {
        "__init__.py",
        "__main__.py",
        "minimise.py",
        "mutants.py",
        "results.py",
        "runner.py",
    }
)


def _setup_module() -> ModuleType:
    """``setup.py``, which knows the product's modules and how they are compiled."""
    spec = importlib.util.spec_from_file_location("tmqp_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Make ``build/simulator`` anew; 0 when it is there, 1 when something was refused."""
    os.chdir(ROOT)
    setup = _setup_module()
    shutil.rmtree(TARGET, ignore_errors=True)
    for package in (
        "src/tmqp",
        "src/tmqp_client",
        "src/tmqp_server",
        "src/tmqp_wires",
        "fuzz/tmqp_sim",
    ):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(package, TARGET / Path(package).name, ignore=ignored)
    simulator = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("fuzz/tmqp_sim/**/*.py", *_OF_GROUPS)
        for path in ROOT.glob(pattern)
        if path.name not in _LEFT_OUT and not path.stem.endswith("bugs")
    }
    try:
        extensions = setup.make_extensions(sorted(simulator.union(setup.hot_modules())))
    except RuntimeError as error:
        print(f"compile_simulator: {error}", file=sys.stderr)
        return 1
    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib = str(TARGET)
    command.build_temp = str(ROOT / "build" / "temp.simulator")
    command.parallel = True
    command.ensure_finalized()
    command.run()
    return _check()


def _check() -> int:
    """A word from the new build itself."""
    code = "from tmqp_sim import simulation as s; print(s.__file__, s.WATCHABLE)"
    environment = {**os.environ, "PYTHONPATH": str(TARGET)}
    words = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=False, capture_output=True, text=True
    )
    print(words.stdout + words.stderr, end="")
    return 0 if words.stdout.endswith(".so True\n") else 1


if __name__ == "__main__":
    sys.exit(main())
