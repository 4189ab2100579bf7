"""The second step of the image: the wheel in dist/, installed as the Dockerfile has it done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /opt/tmqp, made by the script that makes it."""
    (wheel,) = (ROOT / "dist").glob("tmqp-*.whl")
    folder = tmp_path_factory.mktemp("image") / "tmqp"
    script, requirements = (
        ROOT / "deploy" / "docker" / name for name in ("install.sh", "requirements.txt")
    )
    variables = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    subprocess.run(["sh", script, requirements, wheel, folder], check=True, env=variables)
    return folder


def said(environment: Path, *words: str, status: int = 0) -> str:
    """What a program of the image prints, run as the image runs it: with its own path alone."""
    ended = subprocess.run(
        [environment / "bin" / words[0], *words[1:]],
        env={"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_the_image_has_the_server_and_no_installer(environment: Path) -> None:
    assert "tmqp-server, version" in said(environment, "tmqp-server", "--version")
    assert "No module named pip" in said(environment, "python", "-m", "pip", status=1)
    found = said(environment, "python", "-c", "import tmqp; print(tmqp.compiled)")
    assert found == "True\n"


def test_the_image_passes_the_trial_of_wheels(environment: Path) -> None:
    """A server is started, asked and restarted; nothing is written into the environment."""
    before = {path for path in environment.rglob("*") if path.is_file()}
    told = said(environment, "python", str(ROOT / "tools" / "smoke.py"), "--compiled")
    assert "(compiled) works" in told
    assert {path for path in environment.rglob("*") if path.is_file()} == before


def test_the_health_check_of_a_container_without_a_server_fails(environment: Path) -> None:
    options = ("--http", "http://127.0.0.1:1", "--timeout", "4")
    assert "CRITICAL" in said(environment, "tmqp", "server", "check", "ready", *options, status=2)
