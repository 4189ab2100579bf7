"""The wheel in dist/, installed in empty environments away from the checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.certificates import make_certificate
from tests.project import ROOT, settings

SCRIPTS: Final = settings()["project"]["scripts"]


@pytest.fixture(scope="module")
def wheel() -> Path:
    (found,) = (ROOT / "dist").glob("tmqp-*.whl")
    return found


class Environment:
    """A virtual environment in an empty folder."""

    def __init__(self, folder: Path, requirement: str) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        self.variables = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.run("python", "-m", "pip", "install", "--quiet", requirement)

    def run(self, program: str, *arguments: str, status: int = 0) -> str:
        """What a program of the environment prints; it must end with a status."""
        ended = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    @contextmanager
    def server(self, *options: str) -> Iterator[str]:
        """A server on a free port, or with these options; its last address."""
        process = subprocess.Popen(
            [self.bin / "tmqp-server", *(options or ("-l", "tmq://127.0.0.1:0"))],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            assert process.wait(20) == 0
            process.stdout.close()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return Environment(tmp_path_factory.mktemp("bare"), str(wheel))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return Environment(
        tmp_path_factory.mktemp("full"), f"tmqp[server,client,conformance] @ {wheel.as_uri()}"
    )


def test_an_isolated_build_is_compiled(bare: Environment) -> None:
    """Builds in isolation always fell back to interpreted ones, and nobody saw why."""
    said = bare.run("python", "-c", "import tmqp; print(tmqp.compiled, tmqp.__file__)")
    assert said.startswith("True ")
    assert str(bare.folder) in said


def test_the_protocol_alone_works(bare: Environment) -> None:
    code = (
        "from tmqp import Connection, ConnectionInformation, Role\n"
        "client, server = Connection(Role.CLIENT), Connection(Role.SERVER)\n"
        "client.initiate(ConnectionInformation('me'))\n"
        "print([type(event).__name__ for event in server.receive(client.data_to_send(), 0.0)])"
    )
    assert "HandshakeReceived" in bare.run("python", "-c", code)


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_a_script_without_its_extra_says_what_to_install(bare: Environment, script: str) -> None:
    said = bare.run(script, "--help", status=1)
    assert "pip install 'tmqp[" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("script", ["tmqp", "tmqp-server", "tmqp-conformance"])
def test_a_script_with_its_extra_starts(full: Environment, script: str) -> None:
    assert full.run(script, "--help").startswith("Usage:")


def test_a_message_goes_through_the_installed_broker(full: Environment) -> None:
    with full.server() as address:
        full.run("tmqp", "queue", "create", "-a", address, "orders", "1", "--status", "push")
        full.run("tmqp", "pub", "-a", address, "orders", "1", "one pizza")
        said = full.run("tmqp", "sub", "-a", address, "orders", "--queue", "1", "--count", "1")
        assert "one pizza" in said


#: The commands of the guide, but for those that need another server or take minutes.
GUIDE: Final = (ROOT / "docs" / "guides" / "certify-your-implementation.md").read_text("utf-8")
COMMANDS: Final = re.findall(r"^tmqp-conformance (.*?)(?: +#.*)?$", GUIDE, re.MULTILINE)
LEFT_OUT: Final = (
    *("client --exec 'my-driver", "compare before/", "report one/"),
    # Servers that are not here.
    *("fuzz diff", "server 127.0.0.1:4150", "fuzz wire 127.0.0.1:4150"),
)


def test_the_guide_to_certification_can_be_followed(full: Environment) -> None:
    """A new user has the wheel, a server, and what the guide says."""
    copied = full.folder / "examples" / "conformance"
    copied.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "conformance" / "client.mjs", copied)
    (config,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (full.folder / "conformance.toml").write_text(config, encoding="utf-8")
    done = 0
    with full.server("-l", "tmq://127.0.0.1:2622") as address:
        assert address == "tmq://127.0.0.1:2622"
        for command in COMMANDS:
            if command.startswith(LEFT_OUT) or "wire/" in command:
                continue
            if "node " in command and shutil.which("node") is None:
                continue
            words = shlex.split(command.replace("--budget 10m", "--budget 2s"))
            said = full.run("tmqp-conformance", *words)
            done += 1
            if words[0] in ("server", "client"):
                assert f"TMQP/2.0 {words[0]}: strict" in said
    assert done >= 6
    assert (full.folder / "report" / "report.html").exists()


@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_the_compiled_server_is_strict(full: Environment, tmp_path: Path, kind: str) -> None:
    """Every case of the levels must and should, with each transport."""
    key, certificate = make_certificate(tmp_path)
    config = tmp_path / "tls.toml"
    config.write_text(f'[tls]\nkey = "{key}"\ncertificate = "{certificate}"\n', encoding="utf-8")
    listen = {
        "tcp": "tmq://127.0.0.1:0",
        "unix": f"unix:{tmp_path}/sock",
        "tls": "tmqs://localhost:0",
    }
    with full.server(
        "-l", listen[kind], "--config", str(config), "--data", f"{tmp_path}/d"
    ) as where:
        words = [where, "--ca", str(certificate), "--level", "should", "--strict", "--jobs", "4"]
        said = full.run("tmqp-conformance", "server", *words)
    assert "TMQP/2.0 server: strict" in said
    assert "excused" not in said
