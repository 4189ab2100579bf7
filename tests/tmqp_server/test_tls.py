"""A server that speaks TLS: with our client, with others, and each way in which it cannot be."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import attrs
import httpx
import pytest

from tests.certificates import make_certificate
from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_client import ConnectFailed, connect
from tmqp_server import Access, Applicant
from tmqp_server.config import ConfigError, ServerConfig, parse_config
from tmqp_server.io.tls import server_context
from tmqp_server.settings.tls import TlsSettings
from tmqp_server.wiring.running import running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def config_of(files: tuple[Path, Path], handshake_timeout_s: float = 5.0) -> ServerConfig:
    key, certificate = files
    return ServerConfig(
        listen=(Address("127.0.0.1", 0, tls=True), Address("127.0.0.1", 0)),
        tls=TlsSettings(certificate=str(certificate), key=str(key)),
        connection=Limits(handshake_timeout_s=handshake_timeout_s),
    )


def trusting(files: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files[1]))


async def test_messages_go_through_tls(files: tuple[Path, Path]) -> None:
    large = bytes(range(256)) * 2_000
    async with running(config_of(files)) as server:
        secure, plain = server.addresses
        assert secure.tls
        assert not plain.tls
        there = f"tmqs://localhost:{secure.port}"
        async with (
            connect(there, ssl_context=trusting(files)) as producer,
            connect(str(plain)) as consumer,
        ):
            await producer.create_queue("orders", 1, status="push")
            with anyio.fail_after(20):
                async with consumer.consume("orders", 1) as messages:
                    await producer.push("orders", 1, large)
                    assert (await messages.get()).payload == large
                async with producer.consume("orders", 1) as messages:
                    for number in range(300):
                        await consumer.push("orders", 1, b"%d" % number, wait=False)
                    for number in range(300):
                        assert (await messages.get()).payload == b"%d" % number
            assert server.sessions == 2


class Noting(Access):
    """Lets everybody in, and notes who they were."""

    def __init__(self, asked: list[Applicant]) -> None:
        self._asked = asked

    async def authenticate(self, applicant: Applicant) -> bool:
        """Note and admit."""
        self._asked.append(applicant)
        return True


@pytest.mark.parametrize("required", [False, True])
async def test_a_certificate_tells_who_a_client_is_at_every_door(
    files: tuple[Path, Path], tmp_path: Path, required: bool
) -> None:
    """What is known of a client's certificate is told to whoever decides, whatever it speaks."""
    key, certificate = make_certificate(tmp_path, "press")  # its common name is localhost, too
    settings = TlsSettings(
        certificate=str(files[1]),
        key=str(files[0]),
        client_authorities=str(certificate),
        require_client_certificate=required,
    )
    web = parse_config("web.listen = ['https://127.0.0.1:0']")
    config = attrs.evolve(config_of(files), tls=settings, **web)
    known = trusting(files)
    known.load_cert_chain(certificate, key)
    asked: list[Applicant] = []
    async with running(config, access=Noting(asked)) as server:
        tmqp = server.addresses[0]
        async with connect(f"tmqs://localhost:{tmqp.port}", ssl_context=known):
            pass
        assert asked.pop().common_name == "localhost"
        async with httpx.AsyncClient(verify=known) as client:
            url = server.web_addresses[0].replace("127.0.0.1", "localhost")
            await client.post(f"{url}/api/v1/channels/orders/queues/1/messages", content=b"x")
        assert (asked[-1].door, asked.pop().common_name) == ("http", "localhost")
        asked.clear()
        unknown = connect(
            f"tmqs://localhost:{tmqp.port}", ssl_context=trusting(files), reconnect=None
        )
        if required:
            with pytest.raises(ConnectFailed):
                async with unknown:
                    pass
            assert asked == []
        else:
            async with unknown:
                pass
            assert asked.pop().common_name == ""


def close_politely(port: int, context: ssl.SSLContext) -> None:
    """Connect, and end TLS with its closing alert, as curl does."""
    sock = socket.create_connection(("127.0.0.1", port), 10)
    with context.wrap_socket(sock, server_hostname="localhost") as tls:
        tls.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        tls.recv(1_000)
        with contextlib.suppress(OSError):  # the server may answer by closing
            tls.unwrap()


async def test_a_peer_that_ended_tls_with_its_alert_stopped_the_whole_server(
    files: tuple[Path, Path],
) -> None:
    """OpenSSL then reads 0 bytes without an error, and the event loop never came back."""
    config = attrs.evolve(config_of(files), **parse_config("web.listen = ['https://127.0.0.1:0']"))
    async with running(config) as server:
        port = int(server.web_addresses[0].rpartition(":")[2])
        with anyio.fail_after(20):
            for _ in range(2):
                await anyio.to_thread.run_sync(close_politely, port, trusting(files))


async def test_a_client_that_does_not_trust_it_does_not_connect(files: tuple[Path, Path]) -> None:
    async with running(config_of(files)) as server:
        port = server.addresses[0].port
        with pytest.raises(ConnectFailed, match="certificate"):
            async with connect(f"tmqs://localhost:{port}", reconnect=None):
                pass
        with pytest.raises(ConnectFailed):  # the certificate is for another name
            async with connect(
                f"tmqs://127.0.0.1:{port}", ssl_context=trusting(files), reconnect=None
            ):
                pass


async def test_who_speaks_no_tls_is_let_go(files: tuple[Path, Path]) -> None:
    async with running(config_of(files, handshake_timeout_s=0.5)) as server:
        port = server.addresses[0].port
        with pytest.raises(ConnectFailed):
            async with connect(f"tmq://127.0.0.1:{port}", reconnect=None):
                pass
        with socket.create_connection(("127.0.0.1", port), 5) as silent:
            silent.settimeout(10)
            assert await anyio.to_thread.run_sync(silent.recv, 10) == b""
        with anyio.fail_after(5):
            while server.sessions:  # noqa: ASYNC110 - it is only counted
                await anyio.sleep(0.01)


async def test_a_handshake_does_not_hold_up_a_stop(files: tuple[Path, Path]) -> None:
    with anyio.fail_after(5):
        async with running(config_of(files, handshake_timeout_s=60)) as server:
            silent = socket.create_connection(("127.0.0.1", server.addresses[0].port), 5)
            while not server.sessions:  # noqa: ASYNC110 - it is only counted
                await anyio.sleep(0.01)
    silent.close()


async def test_old_versions_are_refused(files: tuple[Path, Path]) -> None:
    context = server_context(TlsSettings(certificate=str(files[1]), key=str(files[0])))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    old = trusting(files)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    async with running(config_of(files)) as server:
        with pytest.raises(ConnectFailed):
            async with connect(
                f"tmqs://localhost:{server.addresses[0].port}", ssl_context=old, reconnect=None
            ):
                pass


# --- Files ---------------------------------------------------------------------------------------


def test_one_file_may_hold_both(files: tuple[Path, Path], tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(files[0].read_bytes() + files[1].read_bytes())
    server_context(TlsSettings(certificate=str(both)))


def complaint(settings: TlsSettings) -> str:
    with pytest.raises(ConfigError) as found:
        server_context(settings)
    return str(found.value)


def test_each_bad_file_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    key, certificate = map(str, files)
    missing = str(tmp_path / "missing")
    assert complaint(TlsSettings(certificate=missing, key=key)) == (
        f"tls.certificate: cannot read {missing}: No such file or directory"
    )
    assert "tls.key: cannot read" in complaint(TlsSettings(certificate=certificate, key=missing))
    text = tmp_path / "text"
    text.write_text("nothing of the kind")
    settings = TlsSettings(certificate=str(text), key=key)
    assert "not a certificate and key in PEM" in complaint(settings)
    other, _ = make_certificate(tmp_path, "other")
    assert "is not the key of the certificate" in complaint(
        TlsSettings(certificate=certificate, key=str(other))
    )
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    assert "is encrypted" in complaint(TlsSettings(certificate=certificate, key=str(locked)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tls.certificat = "a"', "certificate"),
        ("tls.certificate = 1", "tls.certificate must be the name of a file"),
        ('tls.key = "a"', "tls.key is given without tls.certificate"),
        ("tls = 1", "tls"),
        ('tls.client_authorities = "a"', "tls.client_authorities is given without"),
        ("tls.require_client_certificate = 1", "tls.require_client_certificate is true or false"),
        (
            'tls.certificate = "a"\ntls.require_client_certificate = true',
            "tls.require_client_certificate needs tls.client_authorities",
        ),
    ],
)
def test_settings_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(text)


@pytest.mark.parametrize("check", [False, True])
def test_the_command_says_what_is_wrong(tmp_path: Path, check: bool) -> None:
    config = tmp_path / "server.toml"
    config.write_text('listen = "tmqs://127.0.0.1:0"\n[tls]\ncertificate = "/nowhere/x.pem"\n')
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tmqp_server"),
            *("--check-config" if check else "--config", str(config)),
        ],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2
    assert "tls.certificate: cannot read /nowhere/x.pem: No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_serves_it(files: tuple[Path, Path]) -> None:
    key, certificate = map(str, files)
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "tmqp_server", "-l", "tmqs://127.0.0.1:0"),
            *("--tls-cert", certificate, "--tls-key", key, "--log-level", "warning"),
        ],
        env={"PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        place = process.stdout.readline().split(" ready on ")[1].strip()
        assert place.startswith("tmqs://127.0.0.1:")

        async def ping() -> None:
            async with connect(
                place.replace("127.0.0.1", "localhost"), ssl_context=trusting(files)
            ) as client:
                await client.ping()

        anyio.run(ping)
        process.terminate()
        assert process.wait(30) == 0
