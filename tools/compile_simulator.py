"""Compiles the simulator and the product's hot modules as one unit, into ``build/simulator``.

So the checks after every step of the broker are compiled, too, and long soaks take half the time.
Modules that patch methods (the planted bugs), that depend on the machine (processes, the terminal),
or whose objects are sent between processes stay Python.

``python -m tools.compile_simulator``, then ``PYTHONPATH=build/simulator python -m tmqp_sim run``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from setuptools import Distribution
from setuptools.command.build_ext import build_ext

__all__ = ["main"]

#: The optimisation level of the C compiler.  Level 3 takes twice the time (minutes) for code that
#: is an eighth faster, and histories spend most of their time in Python's dictionaries and lists.
_OPT_LEVEL: Final = "1"
ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "build" / "simulator"
#: Modules of the product that are only compiled for simulated groups.
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
    """Load ``setup.py``, which has the product's hot modules and the options of their
    compilation."""
    spec = importlib.util.spec_from_file_location("tmqp_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Rebuild ``build/simulator``; return 0 on success, 1 if the compiler refused something."""
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
        modules = sorted(simulator.union(setup.hot_modules()))
        extensions = setup.make_extensions(modules, _OPT_LEVEL)
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
    """Import the new build and check that it is compiled; return the exit code."""
    code = (
        "from tmqp_sim import simulation as s; from tmqp_sim.replicas import group as g;"
        " print(g.__file__, s.__file__, s.WATCHABLE)"
    )
    environment = {**os.environ, "PYTHONPATH": str(TARGET)}
    words = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=False, capture_output=True, text=True
    )
    print(words.stdout + words.stderr, end="")
    return 0 if re.fullmatch(r"\S+\.so \S+\.so True\n", words.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
