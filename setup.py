"""The optional compilation: the hot modules become one mypyc extension, or stay Python.

Everything else about the package stands in ``pyproject.toml``.  The environment variable
``TMQP_COMPILE`` chooses:

``0``     never compile; the build is pure Python.
``1``     compile or fail: a missing compiler, a type error or a C error ends the build.
``auto``  (the default) compile when mypyc and a C compiler are there; whatever goes wrong is said
          in plain words, and the build falls back to pure Python, whole: it never mixes the two.

An editable install runs the sources themselves, where a forgotten extension would hide later
edits; there ``auto`` means ``0``.

The list of modules is ``[tool.tmqp.compile]`` in ``pyproject.toml``.  They are compiled as one
unit, for a call across units is slow.  How it ended is printed and left in
``build/compile-report.txt``, because pip does not show the output of a build that succeeds.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from pathlib import Path
from typing import cast

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
MODES = ("0", "1", "auto")
#: The commands that produce an extension.  Others (metadata, sdist) must not pay for mypyc.
BUILD_COMMANDS = frozenset({"bdist_wheel", "build", "build_ext", "editable_wheel", "install"})
#: What compiling needs beside setuptools: mypyc, and what the modules import, directly or through
#: others, for mypy reads the types of all of it.  Asked of the build environment only when
#: something may be compiled.
COMPILE_REQUIREMENTS = [
    "mypy>=1.18",
    "anyio>=4.10",
    "cattrs>=24.1",
]
#: The shared library of the unit is ``tmqp__mypyc``; without a name it would be a hash.
UNIT_NAME = "tmqp"
REPORT = ROOT / "build" / "compile-report.txt"


def compile_mode() -> str:
    """``0``, ``1`` or ``auto``, as the environment says.

    :raises SystemExit: for any other value.
    """
    mode = os.environ.get("TMQP_COMPILE", "auto").strip().lower() or "auto"
    if mode not in MODES:
        raise SystemExit(f"TMQP_COMPILE must be one of {', '.join(MODES)}, not {mode!r}")
    return mode


def hot_modules() -> list[str]:
    """The source files to compile, relative to the project, sorted, without repeats."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        table = tomllib.load(file)["tool"]["tmqp"]["compile"]
    excluded = set(table["exclude"])
    found = {
        path.relative_to(ROOT).as_posix()
        for pattern in table["modules"]
        for path in ROOT.glob(pattern)
        if path.name not in excluded
    }
    return sorted(found)


def report(text: str, *, warn: bool = False) -> None:
    """Print how the compilation went, and keep it where ``make`` can show it."""
    print(f"tmqp: {'WARNING: ' if warn else ''}{text}", file=sys.stderr, flush=True)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text + "\n", encoding="utf-8")


def shorten(text: str) -> str:
    """The beginning and the end of a long message, such as a failed compiler's command line."""
    return text if len(text) <= 200 else f"{text[:60]} ... {text[-100:]}"


def missing_tool() -> str | None:
    """What keeps this machine from compiling, as a clause, or None."""
    try:
        import mypyc.build  # noqa: F401, PLC0415 - present only where something is compiled
    except ImportError as error:
        return f"mypyc cannot be imported ({error})"
    if os.name == "nt":
        return None  # the compiler is found in the registry, by the build itself
    program = compiler_command()[0]
    if shutil.which(program) is None:
        return f"there is no C compiler (looked for {program!r}; set CC to name another)"
    return None


def compiler_command() -> list[str]:
    """The C compiler that setuptools will call, with its options."""
    return shlex.split(str(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"))


def parallel_options(opt_level: str) -> list[str]:
    """What lets the compiler work on one file with all processors; nothing where it cannot.

    The unit is one C file, which takes one processor minutes.  GCC divides it when it optimises
    while linking, and the result is as good.
    """
    options = [f"-O{opt_level}", "-flto=auto"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("int probe(void) { return 0; }\n", encoding="utf-8")
        built = str(source.with_suffix(".so"))
        command = [*compiler_command(), *options, "-Werror", "-shared", "-fPIC", str(source)]
        try:
            done = subprocess.run(  # noqa: S603 - the compiler that setuptools calls too
                [*command, "-o", built], check=False, capture_output=True
            )
        except OSError:
            return []
    return options if done.returncode == 0 else []


def make_extensions(paths: list[str], opt_level: str = "3") -> list[Extension]:
    """Translate the modules to C: type errors and unsupported Python show here.

    :param opt_level: how hard the C compiler is to try.
    :raises RuntimeError: when mypyc refuses; the message holds the first of its complaints.
    """
    from mypyc.build import mypycify  # noqa: PLC0415 - see missing_tool

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            extensions = mypycify(
                ["--config-file=pyproject.toml", *paths],
                opt_level=opt_level,
                debug_level="0",
                group_name=UNIT_NAME,
                target_dir="build/mypyc",
            )
    except SystemExit as error:
        complaints = [line for line in said.getvalue().splitlines() if ": error: " in line]
        first = complaints[0] if complaints else str(error)
        message = f"mypyc refused the modules, {len(complaints)} errors, the first: {first}"
        raise RuntimeError(message) from error
    finally:
        print(said.getvalue(), end="", file=sys.stderr, flush=True)
    if os.name != "nt":
        # Calls inside the unit need no detour for a symbol that somebody might replace: 4 to 8 %
        # fewer instructions in decoding, writing and forwarding.
        options = ["-fvisibility=hidden", "-fno-plt"]
        for extension in extensions:
            # mypyc asks for -Werror; a compiler newer than mypyc must not fail on a new warning.
            # Python's -Wall has GCC compare indentations: two minutes, and of no use in C that
            # nobody wrote.
            added = [*options, "-Wno-error", "-Wno-misleading-indentation"]
            if extension.name == f"{UNIT_NAME}__mypyc":
                parallel = parallel_options(opt_level)
                added += parallel
                extension.extra_link_args = [*extension.extra_link_args, *options, *parallel]
            # mypyc gives all of them one list.
            extension.extra_compile_args = [*extension.extra_compile_args, *added]
    return cast("list[Extension]", extensions)


def plan(mode: str) -> list[Extension]:
    """The extensions to build, none for a pure build.

    :raises SystemExit: with ``TMQP_COMPILE=1`` when there can be none.
    """
    editable = "editable_wheel" in sys.argv
    if not BUILD_COMMANDS.intersection(sys.argv):
        return []
    REPORT.unlink(missing_ok=True)
    if mode == "0" or (mode == "auto" and editable):
        why = "TMQP_COMPILE=0" if mode == "0" else "an editable install runs the sources"
        report(f"interpreted: {why}")
        return []
    paths = hot_modules()
    problem = missing_tool() if paths else "[tool.tmqp.compile] names no existing module"
    if problem is None:
        try:
            return make_extensions(paths)
        except Exception as error:
            problem = str(error) or type(error).__name__
    if mode == "1":
        raise SystemExit(f"tmqp: TMQP_COMPILE=1, but {problem}")
    report(f"interpreted: {problem}", warn=True)
    return []


def prune(root: Path, keep: list[str], suffix: str) -> None:
    """Delete what an earlier build left under ``root``: setuptools would pack it again."""
    kept = {os.path.realpath(name) for name in keep}
    for path in root.rglob(f"*{suffix}"):
        if os.path.realpath(path) not in kept:
            path.unlink()


class BuildPython(build_py):
    """Copies the Python modules, and takes away those whose sources are gone."""

    def run(self) -> None:
        """Build, then drop stale modules."""
        super().run()
        if not self.editable_mode:
            prune(Path(self.build_lib), self.get_outputs(include_bytecode=False), ".py")


class BuildExtensions(build_ext):
    """Compiles the unit; in ``auto`` a C error turns the whole build into a pure one."""

    def run(self) -> None:
        """Build all extensions or none."""
        mode = compile_mode()
        started = time.perf_counter()
        self.parallel = self.parallel or True  # the modules' own small files, side by side
        try:
            super().run()
        except Exception as error:
            if mode == "1":
                raise
            report(f"interpreted: the C compiler failed ({shorten(str(error))})", warn=True)
            self.extensions = []
        else:
            if self.extensions:
                seconds = time.perf_counter() - started
                report(f"compiled: {len(hot_modules())} modules, C compiler {seconds:.0f} s")
        if not self.inplace:
            suffix = sysconfig.get_config_var("EXT_SUFFIX")
            prune(Path(self.build_lib), self.get_outputs(), str(suffix))


def main() -> None:
    """Run setuptools with the extensions that the environment allows."""
    os.chdir(ROOT)
    mode = compile_mode()
    setup(
        ext_modules=plan(mode),
        cmdclass={"build_ext": BuildExtensions, "build_py": BuildPython},
        # Becomes part of "requirements to build" (PEP 517), so TMQP_COMPILE=0 never needs mypy.
        setup_requires=COMPILE_REQUIREMENTS if mode != "0" and "egg_info" in sys.argv else [],
    )


if __name__ == "__main__":
    main()
