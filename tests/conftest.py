"""What holds for every test: the event loops, Hypothesis' profiles, the marker ``hot``."""

from __future__ import annotations

import ast
import gc
import logging
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.project import ROOT, hot_modules

CACHE = ROOT / "build" / "cache" / "hypothesis"
set_hypothesis_home_dir(CACHE)

# A shell starts what it puts into the background with SIGINT ignored; programs started from here
# would inherit that, and tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Deadlines belong to the tests marked `alone`: on a shared machine a slow example proves nothing.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile(
    "search",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    database=DirectoryBasedExampleDatabase(CACHE / "examples"),
)
settings.load_profile("fixed")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test once on each event loop."""
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Undo what programs that a test runs in this process have set for the loggers."""
    loggers = [logging.getLogger(), logging.getLogger("tmqp_server")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def may_be_hot(path: Path) -> bool:
    """Whether a test module can have hot tests: by what it imports, or because it says so."""
    return imports_hot_modules(path) or b"pytest.mark.hot" in path.read_bytes()


@cache
def imports_hot_modules(path: Path) -> bool:
    """Whether a test module imports something that a compiled build compiles.

    The package ``tmqp`` itself counts, for its public names come from such modules; a pure
    submodule (``tmqp.constants``) does not.
    """
    hot = {"tmqp", "tmqp.testing", *hot_modules()}
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imported.add(node.module)
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    within = ("tmqp.testing.", "tmqp_server.engine")
    return any(name in hot or name.startswith(within) for name in imported)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what has no hot test, where only those are asked for: a third of the files."""
    if "hot" not in config.option.markexpr or not collection_path.match("test_*.py"):
        return None
    return None if may_be_hot(collection_path) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that a compiled build must pass as well, where that is asked for."""
    if "hot" in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("cold") is None and imports_hot_modules(item.path):
                item.add_marker("hot")
    # Processes that have no more tests take them from the end of another's list.  What shares a
    # Spark comes first, so that one process starts it and not all of them.
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while tests are collected, and leave the thousands of them out later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what passing tests printed: what they counted and measured, in whichever process."""
    said = [
        f"{report.nodeid.rpartition('/')[2]}: {report.capstdout.strip()}"
        for report in terminalreporter.getreports("passed")
        if report.when == "call" and report.capstdout.strip()
    ]
    if said:
        terminalreporter.section("counted and measured")
        for line in sorted(said):
            terminalreporter.write_line(line)
