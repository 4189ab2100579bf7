"""Java's shared classes: one file for one Java and one Spark, and what the JVM is told of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tmqp_spark.classes import SharedClasses, end_jvm


@pytest.fixture
def java(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    file = tmp_path / "java"
    file.write_text("#!/bin/sh\n")
    return file


def shared(java: Path, **environment: str) -> SharedClasses:
    home = {"SPARK_HOME": str(java.parent / "spark"), **environment}
    return SharedClasses(java, java.parent / "cache", home)


def test_the_first_makes_it_and_others_use_it(java: Path) -> None:
    first = shared(java)
    to_make = first.to_make
    assert to_make
    assert "-XX:ArchiveClassesAtExit=" in first.options()
    fresh = Path(first.options().partition("AtExit=")[2].split()[0])
    fresh.write_bytes(b"classes")
    assert first.keep()
    assert not first.to_make
    second = shared(java)
    assert not second.to_make
    assert second.options().startswith(f"-XX:SharedArchiveFile={first.path} ")
    (java.parent / "spark" / "jars" / "another.jar").write_bytes(b"")
    assert shared(java).to_make, "other jars, other classes"


def test_where_java_writes_none_nobody_tries_again(java: Path) -> None:
    first = shared(java)
    first.options()
    assert not first.keep()
    assert shared(java).path is None
    assert shared(java).options() == ""


def test_it_is_left_alone_where_it_cannot_be(java: Path, tmp_path: Path) -> None:
    assert shared(java, SPARK_CONF_DIR="/etc/spark").options() == ""
    assert shared(java, SPARK_HOME=str(tmp_path / "none")).options() == ""
    (tmp_path / "file").write_text("")
    home = {"SPARK_HOME": str(java.parent / "spark")}
    blocked = SharedClasses(java, tmp_path / "file" / "cache", home)
    assert blocked.options() == ""
    assert SharedClasses(java, tmp_path / "with blank", home).options() == ""


def test_what_a_killed_command_left_is_removed(java: Path) -> None:
    folder = java.parent / "cache"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left = folder / f"classes-x.{ended.pid}"
    running = folder / f"classes-x.{os.getpid()}"
    left.touch()
    running.touch()
    shared(java).options()
    assert not left.exists()
    assert running.exists()


def test_a_jvm_is_ended_by_the_end_of_its_input() -> None:
    said = []
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as process:
        gateway = SimpleNamespace(proc=process, shutdown=lambda: said.append("shut"))
        context = SimpleNamespace(_gateway=gateway, _jvm=object())
        assert end_jvm(context)
    assert process.returncode == 0
    assert said == ["shut"]
    assert context._gateway is None
    assert not end_jvm(SimpleNamespace(_gateway=SimpleNamespace()))
