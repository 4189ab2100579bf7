"""The whole suite over sockets: our server and our client, on TCP, on Unix sockets and with TLS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import tmqp
from tests.certificates import make_certificate
from tests.project import ROOT
from tmqp.testing.conformance import Level
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.__main__ import main

KINDS = ("tcp", "unix", "tls")
DRIVER = ROOT / "examples" / "conformance" / "client.py"
#: What takes minutes, or a server that may be killed.
APART = frozenset({"keep-alive", "restart-hook"})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def command(folder: Path, *addresses: str) -> list[str]:
    """How a server is started."""
    words = [
        sys.executable,
        "-m",
        "tmqp_server",
        "--log-level",
        "error",
        "--data",
        f"{folder}/data",
    ]
    return [*words, *[word for address in addresses for word in ("-l", address)]]


@contextmanager
def started(words: list[str]) -> Iterator[list[str]]:
    """A process, and the words of the line that it begins with."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture(scope="module")
def addresses(
    files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A server that is a process of its own: its address of each kind."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "tls.toml").write_text(f'[tls]\nkey = "{files[0]}"\ncertificate = "{files[1]}"\n')
    words = command(folder, "tmq://127.0.0.1:0", f"unix:{folder}/socket", "tmqs://localhost:0")
    with started([*words, "--config", f"{folder}/tls.toml"]) as ready:
        yield dict(zip(KINDS, ready[-3:], strict=True))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_our_server_is_strict(
    addresses: dict[str, str], files: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    words = ["server", addresses[kind], "--strict", "--jobs", "4", "--out", str(tmp_path)]
    words += ["--level", "should"] if kind != "tcp" else []
    result = CliRunner().invoke(main, [*words, "--ca", str(files[1]), "--report", "json"])
    assert result.exit_code == 0, result.output
    made = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert made["strict"]
    left = {case["id"] for case in made["cases"] if case["verdict"] == "unimplemented"}
    tried = {case["id"] for case in made["cases"]}
    needed = {each.id for each in SERVER_CASES if each.level in (Level.MUST, Level.SHOULD)}
    assert needed <= tried
    assert left == {each.id for each in SERVER_CASES if APART & {*each.needs}} & tried
    others = {case["verdict"] for case in made["cases"] if case["id"] not in left}
    assert others <= {"pass", "informational"}, "nothing is excused, and nothing non-strict"


@pytest.mark.long
def test_what_our_server_has_confirmed_survives_kills(tmp_path: Path) -> None:
    address, pid = f"unix:{tmp_path}/socket", tmp_path / "pid"
    again = tmp_path / "again.sh"
    start = " ".join(command(tmp_path, address))
    again.write_text(
        f"if test -f {pid}; then\n"
        f"  kill -s KILL $(cat {pid})\n"
        f"  while kill -s 0 $(cat {pid}) 2>/dev/null; do sleep 0.02; done\n"
        f"fi\n"
        f"rm -f {tmp_path}/out\n"
        f"{start} >{tmp_path}/out 2>&1 &\necho $! >{pid}\n"
        f"until grep -q ready {tmp_path}/out 2>/dev/null; do sleep 0.05; done\n",
        encoding="utf-8",
    )
    subprocess.run(["sh", again], check=True, timeout=30)
    try:
        words = ["server", address, "--only", "server.durability", "--restart-cmd", f"sh {again}"]
        result = CliRunner().invoke(main, words)
    finally:
        os.kill(int(pid.read_text("utf-8")), signal.SIGTERM)
    assert result.exit_code == 0, result.output
    count = sum(each.group == "durability" for each in SERVER_CASES)
    assert f"{count} of {count} cases pass" in result.output


def hold_client_to_all_cases(folder: Path, files: tuple[Path, Path], kind: str) -> None:
    """Every case must pass, but those for a program that connects again on its own."""
    listen = {"tcp": "127.0.0.1:0", "unix": f"unix:{folder}/socket", "tls": "tmqs://localhost:0"}
    words = [sys.executable, "-m", "tmqp_conformance", "client", "--strict", "--out", str(folder)]
    words += ["--listen", listen[kind], "--connect-timeout", "10", "--ready", "0.1"]
    if kind == "tls":
        words += ["--certificate", str(files[1]), "--key", str(files[0])]
    with started(words) as ready:
        subprocess.run(
            [sys.executable, DRIVER, ready[-1]],
            env={**os.environ, "SSL_CERT_FILE": str(files[1])},
            check=True,
            timeout=60,
        )
    made = json.loads((folder / "report.json").read_text("utf-8"))
    assert made["strict"]
    assert {case["id"] for case in made["cases"]} == {each.id for each in CLIENT_CASES}
    bad = {case["id"]: case["message"] for case in made["cases"] if case["verdict"] != "pass"}
    assert set(bad) == {each.id for each in CLIENT_CASES if "reconnect" in each.needs}, bad


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_our_client_is_strict(tmp_path: Path, files: tuple[Path, Path], kind: str) -> None:
    hold_client_to_all_cases(tmp_path, files, kind)


@pytest.mark.skipif(not tmqp.compiled, reason="interpreted, this is a long test")
@pytest.mark.parametrize("kind", KINDS)
def test_our_compiled_client_is_strict(tmp_path: Path, files: tuple[Path, Path], kind: str) -> None:
    """The program that is tested is another process: it must run the compiled client, too."""
    ask = "import tmqp_client._core.machine as it; print(it.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True, check=True, timeout=30
    )
    assert Path(told.stdout.strip()).suffix == ".so"
    hold_client_to_all_cases(tmp_path, files, kind)


@pytest.mark.long
def test_our_client_connects_again() -> None:
    words = ["client", "--exec", f"{sys.executable} {DRIVER} {{url}} {{task}} again"]
    result = CliRunner().invoke(main, [*words, "--reconnects", "--only", "client.reconnect"])
    assert result.exit_code == 0, result.output
    assert "3 of 3 cases pass" in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", "tmqs://localhost:0"], "needs --certificate"),
        (["--listen", "tmqs://localhost:0", "--certificate", "/none.pem"], "/none.pem"),
        (["--listen", "tmqs://10.1.1.1:0"], "--i-own-this-target"),
    ],
)
def test_wrong_use_of_tls_is_status_3(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["client", *words])
    assert result.exit_code == 3, result.output
    assert sentence in " ".join(result.output.split())


def test_a_socket_that_cannot_be_made_is_status_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["client", "--listen", f"unix:{tmp_path}/none/socket"])
    assert result.exit_code == 2
    assert "none/socket" in result.output
