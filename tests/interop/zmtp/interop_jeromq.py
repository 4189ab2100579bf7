"""JeroMQ, which speaks ZMTP without libzmq, at our server: the users' version, and a recent one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import anyio
import pytest
import zmq

from tests.interop.nsq.clients import EXPECTED
from tests.tmqp_server.zmtp_sockets import address_of, config
from tmqp_server import running
from tmqp_server.settings.secrets import write_secret

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and "jeromq" not in EXPECTED, reason="only other clients are asked for"
    ),
]

SOURCES: Final = Path(__file__).parent / "java"
_MOST_S: Final = 180


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a program, which must succeed."""
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_MOST_S,
    )
    assert done.returncode == 0, done.stdout
    return done


def fetch(version: str, libraries: Path) -> None:
    """Have Maven bring a version; the test is skipped where that is not possible."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here")
    fetched = subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), f"-Djeromq={version}"),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={libraries}",
        ],
        capture_output=True,
        check=False,
        timeout=_MOST_S,
    )
    if fetched.returncode:
        pytest.skip(f"jeromq {version} cannot be fetched")


@pytest.mark.parametrize("version", ["0.4.2", "0.6.0"])
async def test_sockets_of_jeromq(version: str, tmp_path: Path) -> None:
    libraries = tmp_path / "lib"
    fetch(version, libraries)
    path = os.pathsep.join([f"{libraries}/*", str(tmp_path)])
    run("javac", "-d", str(tmp_path), "-cp", path, str(SOURCES / "Sockets.java"))
    async with running(config()) as server:
        words = ("java", "-cp", path, "Sockets", address_of(server))
        with anyio.fail_after(_MOST_S):
            done = await anyio.to_thread.run_sync(run, *words)
    assert done.stdout.splitlines()[-1] == "done"


async def test_sockets_of_jeromq_with_curve(tmp_path: Path) -> None:
    """Its cryptography is its own, as its ZMTP is."""
    pytest.importorskip("nacl", reason="PyNaCl is not installed: pip install 'tmqp[zmtp]'")
    libraries = tmp_path / "lib"
    fetch("0.6.0", libraries)
    path = os.pathsep.join([f"{libraries}/*", str(tmp_path)])
    sources = [str(SOURCES / f"{name}.java") for name in ("Sockets", "CurveSockets")]
    run("javac", "-d", str(tmp_path), "-cp", path, *sources)
    server_key, secret = [key.decode() for key in zmq.curve_keypair()]
    key, own_secret = [key.decode() for key in zmq.curve_keypair()]
    file = tmp_path / "server.key"
    write_secret(file, secret)
    access = {"tokens": [{"name": "jeromq", "public_key": key, "roles": ["admin"]}]}
    options = {"mechanism": "curve", "curve_secret_key_file": str(file)}
    async with running(config(access=access, options=options)) as server:
        words = ("java", "-cp", path, "CurveSockets", address_of(server))
        with anyio.fail_after(_MOST_S):
            done = await anyio.to_thread.run_sync(run, *words, server_key, key, own_secret)
    assert done.stdout.splitlines()[-1] == "done"
