"""The unit file: what it starts exists, and systemd gives it a good mark."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from typing import Final

import pytest

from tests.project import ROOT
from tmqp_server import ServerConfig
from tmqp_server.__main__ import main

pytestmark = pytest.mark.cold

UNIT: Final = ROOT / "deploy" / "systemd" / "tmqp.service"
#: What systemd's own analysis may say at most, of ten.
MOST_EXPOSED: Final = 2.0


def unit() -> dict[str, list[str]]:
    """The settings of the unit, each with all its values."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_the_command_of_the_unit_has_such_options() -> None:
    (command,) = unit()["ExecStart"]
    program, *arguments = shlex.split(command)
    assert program.rpartition("/")[2] == "tmqp-server"
    given = main.make_context("tmqp-server", arguments).params
    assert (str(given["config_path"]), given["data"]) == ("/etc/tmqp/tmqp.toml", "/var/lib/tmqp")


def test_the_data_may_be_written_and_nothing_else() -> None:
    settings = unit()
    assert settings["ProtectSystem"] == ["strict"]
    assert settings["StateDirectory"] == ["tmqp"]
    assert "ReadWritePaths" not in settings


def test_systemd_waits_longer_for_the_end_than_the_server_takes() -> None:
    (wait,) = unit()["TimeoutStopSec"]
    drain_s = ServerConfig().drain_timeout_s
    assert int(wait) > drain_s + 2 * ServerConfig().shutdown_timeout_s


def test_there_are_descriptors_for_all_connections() -> None:
    (most,) = unit()["LimitNOFILE"]
    assert int(most) > 2 * ServerConfig().max_connections


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_is_hardly_exposed() -> None:
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for tmqp\.service: ([\d.]+)", told.stdout)
    assert found, told.stdout + told.stderr
    assert float(found[1]) <= MOST_EXPOSED, told.stdout
