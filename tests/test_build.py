"""The two builds: which one is loaded, and that ``TMQP_COMPILE`` does what setup.py says."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import tmqp
from tests.project import (
    ROOT,
    SOURCE_ROOTS,
    hot_modules,
    imported_by,
    path_of,
    project_files,
    settings,
    source_packages,
)

BUILDS: Final = ("interpreted", "compiled")
SUFFIXES: Final = {"interpreted": (".py",), "compiled": tuple(EXTENSION_SUFFIXES)}


def build_of(module: ModuleType) -> str:
    """Which build a loaded module belongs to, by its file.

    :raises LookupError: when the file is of neither kind.
    """
    file = module.__file__ or ""
    for build, suffixes in SUFFIXES.items():
        if file.endswith(suffixes):
            return build
    raise LookupError(f"{module.__name__} was loaded from {file!r}")


def expected_build() -> str:
    """The build that the caller says is loaded; without a word, the one that ``tmqp`` reports.

    :raises ValueError: when ``TMQP_EXPECT_BUILD`` is neither ``interpreted`` nor ``compiled``.
    """
    named = os.environ.get("TMQP_EXPECT_BUILD", "")
    if named == "":
        return BUILDS[tmqp.compiled]
    if named not in BUILDS:
        raise ValueError(f"TMQP_EXPECT_BUILD must be one of {BUILDS}, not {named!r}")
    return named


def test_some_modules_are_hot() -> None:
    assert {"tmqp.frames", "tmqp.codec", "tmqp.connection"} <= set(hot_modules())


def test_every_pattern_of_the_compile_list_names_a_module() -> None:
    for pattern in settings()["tool"]["tmqp"]["compile"]["modules"]:
        assert list(ROOT.glob(pattern)), pattern


@pytest.mark.parametrize("name", hot_modules())
def test_a_hot_module_is_of_the_expected_build(name: str) -> None:
    assert build_of(importlib.import_module(name)) == expected_build()


def test_the_package_tells_its_build() -> None:
    assert tmqp.compiled is (expected_build() == "compiled")


def test_a_wrong_build_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMQP_EXPECT_BUILD", BUILDS[not tmqp.compiled])
    assert build_of(importlib.import_module(hot_modules()[0])) != expected_build()
    monkeypatch.setenv("TMQP_EXPECT_BUILD", "fast")
    with pytest.raises(ValueError, match="TMQP_EXPECT_BUILD"):
        expected_build()


@pytest.mark.parametrize("script", sorted(settings()["project"].get("scripts", {}).items()))
def test_a_console_script_leads_somewhere(script: tuple[str, str]) -> None:
    module, _, function = script[1].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_all_is_every_extra_that_a_user_may_want() -> None:
    """``tmqp[all]`` once left out the quicker event loop."""
    extras = settings()["project"]["optional-dependencies"]
    lines = [each.removeprefix("tmqp[").removesuffix("]") for each in extras["all"]]
    named = ",".join(lines).split(",")
    assert sorted(named) == sorted(
        {*extras} - {"all", "bench", "bench-peers", "deploy", "dev", "docs", "interop"}
    )


@pytest.mark.parametrize("package", source_packages())
def test_every_shipped_package_says_that_it_is_typed(package: str) -> None:
    """The conformance tool did not."""
    if package in settings()["tool"]["setuptools"]["packages"]["find"]["include"]:
        assert any((root / package / "py.typed").is_file() for root in SOURCE_ROOTS), package


def wide_texts(path: Path) -> list[str]:
    """The texts of a module that have a printable character beyond Latin-1."""
    source = path.read_text(encoding="utf-8")
    if re.search(r"\\[uUN]|[^\x00-\xff]", source) is None:
        return []
    return [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and any(each > "\xff" and each.isprintable() for each in node.value)
    ]


def test_one_character_took_gigabytes_of_memory() -> None:
    """What mypyc makes of all modules is one text, with every text constant in a comment.  With a
    character beyond Latin-1 it takes twice the memory, with an emoji four times."""
    paths = [found for name in hot_modules() if (found := path_of(name)) is not None]
    paths += (ROOT / "fuzz" / "tmqp_sim").rglob("*.py")
    assert [path for path in paths if wide_texts(path)] == []
    assert wide_texts(ROOT / "src" / "tmqp" / "testing" / "generate.py") != []


def test_compiling_asks_for_whatever_the_hot_modules_import() -> None:
    """An isolated build never compiled: mypy had no anyio and no cattrs to look at."""
    (assigned,) = [
        node.value
        for node in ast.parse((ROOT / "setup.py").read_bytes()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILE_REQUIREMENTS"
    ]
    asked = {re.split(r"[<>=]", each)[0] for each in ast.literal_eval(assigned)}
    # mypy brings these along.
    assert asked == {"mypy", *imported_by(hot_modules())} - {"mypy_extensions", "_typeshed"}


@pytest.mark.parametrize(
    ("script", "extra"),
    [
        ("tmqp", "client"),
        ("tmqp-server", "server"),
        ("tmqp-conformance", "conformance"),
        ("nsqd", "nsq"),
        ("nsqadmin", "nsq"),
    ],
)
def test_a_script_without_its_extra_says_what_to_install(script: str, extra: str) -> None:
    """It ended with a traceback about click."""
    function = settings()["project"]["scripts"][script].partition(":")[2]
    code = (
        "import sys\n"
        "sys.modules['click'] = sys.modules['anyio'] = None\n"
        f"import tmqp_scripts; tmqp_scripts.{function}()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert f"pip install 'tmqp[{extra}]'" in ended.stderr


def test_every_data_file_of_a_package_is_shipped() -> None:
    patterns = settings()["tool"]["setuptools"]["package-data"]["*"]
    for path in project_files():
        if path.suffix == ".py" or not path.is_relative_to(ROOT / "src"):
            continue
        assert any(path.match(pattern) for pattern in patterns), path


def test_the_protocol_needs_nothing() -> None:
    assert settings()["project"]["dependencies"] == []


# --- setup.py, on a project of three small modules ------------------------------------------------

PYPROJECT: Final = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "sample"
version = "1"

[tool.setuptools.packages.find]
where = ["src"]

[tool.mypy]
strict = true
mypy_path = "src"

[tool.tmqp.compile]
modules = ["src/sample/one.py", "src/sample/deep/*.py", "src/sample/later.py"]
exclude = ["__init__.py"]
"""
MODULES: Final = {
    "__init__.py": "",
    "cool.py": "def f() -> int:\n    return 1\n",
    "deep/__init__.py": "",
    "deep/two.py": "def double(n: int) -> int:\n    return 2 * n\n",
    "one.py": "from sample.deep.two import double\n\n\ndef four() -> int:\n    return double(2)\n",
}
PROBE: Final = (
    "import sample.one, sample.deep.two as two, sample.cool\n"
    "assert sample.one.four() == 4\n"
    "print(sample.one.__file__, two.__file__, sample.cool.__file__)\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with our setup.py."""
    root = tmp_path / "project"
    for name, text in MODULES.items():
        path = root / "src" / "sample" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    shutil.copy(ROOT / "setup.py", root)
    return root


def build(root: Path, mode: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build the project into ``root/out``; report how it went."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-lib", "out"],
        cwd=root,
        env={**inherited, "TMQP_COMPILE": mode, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def loaded_files(root: Path) -> list[str]:
    """The files from which the built modules are loaded, after using them."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "out")},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def assert_interpreted(root: Path) -> None:
    """Nothing in the build is compiled, and it works."""
    assert [path.suffix for path in map(Path, loaded_files(root))] == [".py"] * 3
    assert [path for path in (root / "out").rglob("*") if path.suffix in {".so", ".pyd"}] == []


def assert_compiled(root: Path) -> None:
    """The listed modules are compiled, the others are not, and it works."""
    one, two, cool = loaded_files(root)
    assert one.endswith(SUFFIXES["compiled"])
    assert two.endswith(SUFFIXES["compiled"])
    assert cool.endswith(".py")


def read_report(root: Path) -> str:
    """What setup.py left about the compilation."""
    return (root / "build" / "compile-report.txt").read_text(encoding="utf-8")


def break_types(root: Path) -> None:
    """Make a module that mypyc refuses."""
    path = root / "src" / "sample" / "one.py"
    path.write_text(MODULES["one.py"] + "x: int = 'no'\n", encoding="utf-8")


has_compiler: Final = pytest.mark.skipif(
    shutil.which("cc") is None, reason="this machine has no C compiler"
)


@pytest.mark.long
@pytest.mark.cold
@has_compiler
@pytest.mark.timeout(300)
def test_compile_then_change_then_do_without(project: Path) -> None:
    done = build(project, "1")
    assert done.returncode == 0, done.stderr
    assert_compiled(project)
    assert read_report(project).startswith("compiled: 2 modules")
    # A module that is gone, or no longer compiled, must not survive in the next build.
    (project / "src" / "sample" / "deep" / "two.py").unlink()
    one = project / "src" / "sample" / "one.py"
    one.write_text("def four() -> int:\n    return 4\n", encoding="utf-8")
    done = build(project, "auto")
    assert done.returncode == 0, done.stderr
    left = {path.name.partition(".")[0] for path in (project / "out").rglob("*.*")}
    assert left == {"__init__", "cool", "one", "tmqp__mypyc"}
    assert list((project / "out" / "sample").glob("one.*.*")) != []


@pytest.mark.long
@pytest.mark.cold
@has_compiler
@pytest.mark.timeout(300)
def test_auto_compiles_where_it_can(project: Path) -> None:
    assert build(project, "auto").returncode == 0
    assert_compiled(project)


@pytest.mark.long
@pytest.mark.cold
@has_compiler
@pytest.mark.timeout(300)
def test_a_compiler_that_cannot_divide_its_work_compiles_all_the_same(
    project: Path, tmp_path: Path
) -> None:
    compiler = tmp_path / "one-processor"
    seen = tmp_path / "seen"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *-flto*) echo asked >> {seen}; exit 1;; esac\nexec cc "$@"\n',
        encoding="utf-8",
    )
    compiler.chmod(0o755)
    done = build(project, "1", CC=str(compiler))
    assert done.returncode == 0, done.stderr
    assert_compiled(project)
    assert seen.read_text(encoding="utf-8") == "asked\n"


@pytest.mark.cold
def test_zero_never_compiles(project: Path) -> None:
    assert build(project, "0").returncode == 0
    assert_interpreted(project)
    assert read_report(project) == "interpreted: TMQP_COMPILE=0\n"


@pytest.mark.long
@pytest.mark.cold
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        ("no mypyc", "mypyc cannot be imported (not installed, for this test)"),
        ("no compiler", "there is no C compiler (looked for 'no-such-compiler'"),
        ("compiler fails", "the C compiler failed"),
        ("type error", "src/sample/one.py:6: error: Incompatible types"),
    ],
)
def test_an_obstacle_stops_one_and_not_auto(
    project: Path, obstacle: str, words: str, tmp_path: Path
) -> None:
    variables: dict[str, str] = {}
    if obstacle == "no mypyc":
        fake = tmp_path / "fake" / "mypyc"
        fake.mkdir(parents=True)
        text = "raise ImportError('not installed, for this test')\n"
        (fake / "__init__.py").write_text(text, encoding="utf-8")
        variables["PYTHONPATH"] = str(fake.parent)
    elif obstacle == "no compiler":
        variables["CC"] = "no-such-compiler"
    elif obstacle == "compiler fails":
        variables["CC"] = shutil.which("false") or "false"
    else:
        break_types(project)
    done = build(project, "auto", **variables)
    assert done.returncode == 0, done.stderr
    assert read_report(project).startswith("interpreted: ")
    assert words in read_report(project)
    assert f"WARNING: {read_report(project).strip()}" in done.stderr
    assert_interpreted(project)
    shutil.rmtree(project / "out")
    done = build(project, "1", **variables)
    assert done.returncode != 0
    assert obstacle == "compiler fails" or words in done.stderr
    assert list(project.glob("out/**/*.so")) == []


@pytest.mark.cold
def test_another_value_is_refused(project: Path) -> None:
    done = build(project, "yes")
    assert done.returncode != 0
    assert "TMQP_COMPILE must be one of 0, 1, auto, not 'yes'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cold
@pytest.mark.parametrize("command", ["egg_info", "sdist", "editable_wheel"])
def test_nothing_is_compiled_where_it_would_be_wasted(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = importlib.util.spec_from_file_location("setup_of_tmqp", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "REPORT", tmp_path / "report.txt")
    monkeypatch.setattr(script, "make_extensions", lambda paths: paths)
    monkeypatch.setattr(sys, "argv", ["setup.py", command])
    assert script.plan("auto") == []
    monkeypatch.setattr(sys, "argv", ["setup.py", "bdist_wheel"])
    monkeypatch.setattr(script, "missing_tool", lambda: None)
    assert "src/tmqp/frames.py" in script.plan("auto")
    assert "src/tmqp/__init__.py" not in script.plan("1")
