"""The image of the server: its Dockerfile, and the scripts that it runs.

Images cannot be built in most places where these tests run, so the steps are tested as scripts, on
exactly the files that a build would get.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from tests.deploy.images import DOCKERFILE, copy_context, in_context, instructions, words
from tests.project import ROOT, settings
from tmqp_client.cli import cli
from tmqp_server.__main__ import main

pytestmark = pytest.mark.cold

TEXT: Final = DOCKERFILE.read_text(encoding="utf-8")
STEPS: Final = instructions(TEXT)
FOLDER: Final = DOCKERFILE.parent
TOOL: Final = Path(sys.executable).parent / "hadolint"


def last_stage() -> list[tuple[str, str]]:
    begins = max(index for index, (word, _) in enumerate(STEPS) if word == "FROM")
    return STEPS[begins:]


def argument(name: str) -> str:
    """The argument of the last stage's only instruction of a name."""
    (found,) = [rest for word, rest in last_stage() if word == name]
    return found


@pytest.mark.skipif(not TOOL.exists(), reason="hadolint has no wheel for this system")
def test_hadolint_has_no_advice() -> None:
    told = subprocess.run([TOOL, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


def test_the_compiler_stays_in_its_stage() -> None:
    assert [word for word, _ in STEPS].count("FROM") == 2
    copied = [rest for word, rest in last_stage() if word == "COPY"]
    assert copied[0] == "--from=build /opt/tmqp /opt/tmqp"
    assert not any("apt" in rest or "pip" in rest for _, rest in last_stage())
    default = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", TEXT, re.MULTILINE))
    assert "slim" in default["RUN_IMAGE"]
    assert default["BUILD_IMAGE"].split("-")[0] == default["RUN_IMAGE"].split("-")[0]


def test_the_server_is_not_root_and_owns_its_data_alone() -> None:
    user, group = argument("USER").split(":")
    assert int(user) > 0 < int(group)
    assert f"--owner={user} --group={group} --mode=0700 /data" in argument("RUN")
    assert words(argument("VOLUME")) == ["/data"]


def test_signals_reach_the_server() -> None:
    """In the shell form they would reach a shell, which does not hand them on."""
    assert argument("STOPSIGNAL") == "SIGTERM"
    assert words(argument("ENTRYPOINT")) == ["tmqp-server"]
    given = main.make_context("tmqp-server", words(argument("CMD"))).params
    assert (given["data"], str(given["config_path"])) == ("/data", "/etc/tmqp/tmqp.toml")


def test_the_health_check_is_a_command_that_there_is() -> None:
    options, _, command = argument("HEALTHCHECK").partition(" CMD ")
    program, *arguments = words(command)
    assert program == "tmqp"
    patience_s = re.search(r"--timeout=(\d+)s", options)
    assert patience_s
    result = CliRunner().invoke(cli, [*arguments, "--http", "http://127.0.0.1:1"])
    assert result.exit_code == 2, result.output
    assert float(arguments[arguments.index("--timeout") + 1]) < int(patience_s[1])


def test_what_is_copied_exists_and_is_sent_to_the_build() -> None:
    for word, rest in STEPS:
        if word == "COPY" and "--from" not in rest and not rest.startswith(". "):
            source = rest.split()[0]
            assert (ROOT / source).is_file()
            assert in_context(source)
    for script in ("build-wheel.sh", "install.sh", "requirements.txt"):
        assert f"deploy/docker/{script}" in TEXT
        assert in_context(f"deploy/docker/{script}")
    assert not in_context(".venv/bin/python")
    assert not in_context("deploy/compose/secrets/tokens")
    assert not in_context("src/tmqp/__pycache__/x.pyc")


def test_the_list_of_packages_has_what_the_server_needs() -> None:
    text = (FOLDER / "requirements.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))
    extras = settings()["project"]["optional-dependencies"]
    for extra in ("server", "speed", "http", "client"):
        for each in map(Requirement, extras[extra]):
            if each.name != "tmqp":
                assert pinned[each.name.lower()] in each.specifier, each
    blocks = re.split(r"\n(?=[a-z])", text.strip())
    assert [each for each in blocks if "--hash=sha256:" not in each] == []


def test_the_image_does_not_start_without_access_rules() -> None:
    """There is no default account."""
    options = ["config", "check", str(FOLDER / "tmqp.toml")]
    open_to_all = CliRunner().invoke(main, options, env={})
    assert open_to_all.exit_code == 2
    assert "clients are not authenticated" in open_to_all.stderr
    tokens = '[{name = "me", token = "t", roles = ["admin"]}]'
    guarded = CliRunner().invoke(main, options, env={"TMQP_SERVER_ACCESS__TOKENS": tokens})
    assert guarded.exit_code == 0, guarded.output


@pytest.mark.long
def test_the_wheel_of_the_first_stage_is_complete(tmp_path: Path) -> None:
    """The script, on the files that a build gets; uncompiled, which is what takes minutes."""
    checkout = tmp_path / "checkout"
    copy_context(checkout)
    # Not in isolation, which would fetch setuptools (pip reads this word the other way round).
    environment = {**os.environ, "TMQP_COMPILE": "0", "PIP_NO_BUILD_ISOLATION": "0"}
    subprocess.run(
        ["sh", checkout / "deploy/docker/build-wheel.sh", checkout, tmp_path / "wheels"],
        check=True,
        env={**environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    (wheel,) = (tmp_path / "wheels").iterdir()
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = ("tmqp", "tmqp_client", "tmqp_server", "tmqp_conformance", "tmqp_wires")
    for package in packages:
        assert f"{package}/__init__.py" in names
    wanted = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*.py")
        if path.relative_to(ROOT / "src").parts[0].startswith("tmqp")
    }
    assert wanted - names == set()
    shutil.rmtree(checkout)
