"""TLS of a server that runs: certificates that change, versions, and who clients are by theirs."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.certificates import make_certificate, make_revoked
from tests.waiting import until
from tmqp_client import Client, ConnectFailed, OperationFailed, connect
from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.io.der import expiry_of
from tmqp_server.io.tls import expiry_of_certificate, server_context
from tmqp_server.settings.tls import TlsSettings
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.reloading import reload_config
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.cold


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Two keys with certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    return [make_certificate(folder, name) for name in ("one", "two")]


def files(folder: Path, pair: tuple[Path, Path]) -> dict[str, str]:
    """Copies of a key and a certificate, which can be overwritten."""
    key, certificate = folder / "server.key", folder / "server.pem"
    shutil.copy(pair[0], key)
    shutil.copy(pair[1], certificate)
    return {"certificate": str(certificate), "key": str(key)}


def write(tls: dict[str, str], certificate: str, key: str) -> None:
    """Overwrite the files."""
    Path(tls["certificate"]).write_text(certificate, "ascii")
    Path(tls["key"]).write_text(key, "ascii")


def swap(new: Path, name: str) -> None:
    """Put another file in the place of one, at once."""
    shutil.copy(new, f"{name}.new")
    Path(f"{name}.new").replace(name)


def config_of(tls: dict[str, Any], **more: Any) -> ServerConfig:
    return ServerConfig(**read_config({"listen": ["tmqs://127.0.0.1:0"], "tls": tls, **more}))


def trusting(*certificates: Path) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for each in certificates:
        context.load_verify_locations(each)
    return context


def connected(server: Server, context: ssl.SSLContext, **more: Any) -> Client:
    place = f"tmqs://localhost:{server.addresses[0].port}"
    return connect(place, ssl_context=context, reconnect=None, **more)


async def test_certificates_changed_under_load_lose_no_connection(
    made: list[tuple[Path, Path]], tmp_path: Path
) -> None:
    tls = files(tmp_path, made[0])
    trusts = trusting(*[certificate for _, certificate in made])
    pushed = [0]
    async with running(config_of(tls)) as server, anyio.create_task_group() as tasks:

        async def push_on(number: int, busy: anyio.Event) -> None:
            async with connected(server, trusts) as client:
                while not busy.is_set():
                    await client.push("c", number, b"x" * 1_000)
                    pushed[0] += 1

        over = anyio.Event()
        for number in range(4):
            tasks.start_soon(push_on, number, over)
        for turn in range(8):
            files(tmp_path, made[turn % 2])
            assert reload_config(server, lambda: config_of(tls))
            with anyio.fail_after(20):
                async with connected(server, trusting(made[turn % 2][1])) as new:
                    await new.push("c", 9, b"by the new one")
                wanted = pushed[0] + 8
                await until(partial(lambda least: pushed[0] >= least, wanted))
        over.set()
    assert server.world.reloads == {"done": 8, "failed": 0}


def broken(one: tuple[Path, Path], two: tuple[Path, Path]) -> list[tuple[str, str, str]]:
    """Files that cannot be used: what is in the one of the certificate, in that of the key, and
    words of the line about it."""
    key, certificate = (path.read_text("ascii") for path in one)
    other = two[0].read_text("ascii")
    body = certificate.splitlines()
    middle = "\n".join(body[1:-1])
    return [
        ("", key, "are not a certificate and key in PEM"),
        (certificate, "", "are not a certificate and key in PEM"),
        (certificate, other, "is not the key of the certificate"),
        (key, key, "are not a certificate and key in PEM"),
        (certificate, certificate, "are not a certificate and key in PEM"),
        (key, certificate, "are not a certificate and key in PEM"),
        (certificate[:-40], key, "are not a certificate and key in PEM"),
        (certificate[40:], key, "are not a certificate and key in PEM"),
        (certificate.replace("BEGIN", "BEGUN"), key, "are not a certificate and key in PEM"),
        (middle, key, "are not a certificate and key in PEM"),
        (f"{body[0]}\nAAAA\n{body[-1]}\n", key, "are not a certificate and key in PEM"),
        (f"{body[0]}\n{body[-1]}\n", key, "are not a certificate and key in PEM"),
        (certificate.replace(body[2], body[2][::-1]), key, "tls"),
        (certificate, key[:60], "are not a certificate and key in PEM"),
        (certificate, key.replace("PRIVATE", "PUBLIC"), "are not a certificate and key in PEM"),
        (certificate, "\0" * 500, "are not a certificate and key in PEM"),
        ("\x7fELF" * 300, key, "are not a certificate and key in PEM"),
    ]


async def test_sighup_with_broken_files_keeps_the_old_configuration_with_one_line_each(
    made: list[tuple[Path, Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = files(tmp_path, made[0])
    trusts = trusting(made[0][1])
    cases = broken(*made)
    async with running(config_of(tls)) as server:

        async def check(words: str, given: dict[str, Any], more: dict[str, Any]) -> None:
            caplog.clear()
            assert not reload_config(server, lambda: config_of(given, **more))
            (line,) = [each.getMessage() for each in caplog.records if each.name.endswith("config")]
            assert words in line
            assert "\n" not in line

        for certificate, key, words in cases:
            write(tls, certificate, key)
            await check(words, tls, {"max_connections": 1})
        files(tmp_path, made[0])
        absent = str(tmp_path / "absent.pem")
        for given, words in (
            ({**tls, "key": absent}, "tls.key: cannot read"),
            ({**tls, "certificate": absent}, "tls.certificate: cannot read"),
            ({**tls, "minimum_version": "1.0"}, "tls.minimum_version is '1.2' or '1.3'"),
            ({**tls, "ciphers": "NONE-SUCH"}, "tls.ciphers: 'NONE-SUCH' chooses no cipher"),
            ({**tls, "watch_interval_s": -1}, "tls.watch_interval_s is a number from 0"),
            ({**tls, "minimun_version": "1.2"}, "did you mean tls.minimum_version?"),
        ):
            await check(words, given, {"max_connections": 1})
        assert len(cases) + 6 > 20
        assert server.config.max_connections == 10_000
        async with connected(server, trusts) as client:
            await client.push("c", 1, b"x")
        assert server.world.last_reload_failed
        assert reload_config(server, lambda: config_of(tls))


async def test_files_that_change_are_read_again_without_being_told(
    made: list[tuple[Path, Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls: dict[str, Any] = {**files(tmp_path, made[0]), "watch_interval_s": 0.02}
    logger = "tmqp_server.config"
    lines: list[str] = []

    def said(words: str) -> bool:
        lines[:] = [each.getMessage() for each in caplog.records if each.name == logger]
        return any(words in each for each in lines)

    async with running(config_of(tls)) as server:
        async with connected(server, trusting(made[0][1])) as before:
            with caplog.at_level("INFO", logger):
                swap(made[1][0], tls["key"])
                await until(partial(said, "is not the key of the certificate"))
                async with connected(server, trusting(made[0][1])) as client:
                    await client.push("c", 1, b"by the old one")
                swap(made[1][1], tls["certificate"])
                await until(partial(said, "were read again"))
            async with connected(server, trusting(made[1][1])) as client:
                await client.push("c", 1, b"by the new one")
            await before.push("c", 1, b"it was not disconnected")
        told = [(each["who"], each["code"]) for each in server.world.audit]
        assert ("files", 409) in told
        assert ("files", 200) in told
    assert len(lines) == 2, "a line for each change"


async def test_a_certificate_says_who_a_client_is(
    made: list[tuple[Path, Path]], tmp_path: Path
) -> None:
    """Both certificates are for the DNS name localhost; their fingerprints differ."""
    raw = ssl.PEM_cert_to_DER_cert(made[1][1].read_text("ascii"))
    access = {
        "roles": {"all": {"rights": ["all"], "channels": ["*"]}, "few": {"rights": ["see-nodes"]}},
        "certificates": [
            {"name": "two", "fingerprint": [hashlib.sha256(raw).hexdigest()], "roles": ["all"]},
            {"name": "host", "dns": ["local*"], "roles": ["few"]},
        ],
    }
    authorities = tmp_path / "authorities.pem"
    authorities.write_text("".join(each.read_text("ascii") for _, each in made), "ascii")
    tls = {**files(tmp_path, made[0]), "client_authorities": str(authorities)}
    async with running(config_of(tls, access=access)) as server:
        for pair, may in zip(made, (False, True), strict=True):
            context = trusting(made[0][1])
            context.load_cert_chain(pair[1], pair[0])
            async with connected(server, context) as client:
                if may:
                    await client.push("c", 1, b"x")
                else:
                    with pytest.raises(OperationFailed):
                        await client.push("c", 1, b"x")
        with pytest.raises(ConnectFailed):
            async with connected(server, trusting(made[0][1])):
                raise AssertionError("without a certificate nobody gets in")


async def test_a_certificate_that_was_revoked_is_refused(
    made: list[tuple[Path, Path]], tmp_path: Path
) -> None:
    authority, pairs, revocations = make_revoked(tmp_path)
    tls = {
        **files(tmp_path, made[0]),
        "client_authorities": str(authority),
        "client_revocations": str(revocations),
        "require_client_certificate": True,
    }
    async with running(config_of(tls)) as server:
        kept, revoked = [trusting(made[0][1]) for _ in pairs]
        for context, (key, certificate) in zip((kept, revoked), pairs, strict=True):
            context.load_cert_chain(certificate, key)
        async with connected(server, kept) as client:
            await client.push("c", 1, b"x")
        with pytest.raises(ConnectFailed):
            async with connected(server, revoked):
                raise AssertionError("it was revoked")


@pytest.mark.parametrize("name", ["one.pem", "nowhere.pem"])
def test_a_list_of_revoked_certificates_that_is_none_is_named(
    made: list[tuple[Path, Path]], name: str
) -> None:
    key, certificate = made[0]
    lists = str(certificate.parent / name)
    settings = TlsSettings(
        certificate=str(certificate),
        key=str(key),
        client_authorities=str(certificate),
        client_revocations=lists,
    )
    with pytest.raises(ConfigError, match=r"tls\.client_revocations: .*"):
        server_context(settings)
    with pytest.raises(ConfigError, match=r"needs tls\.client_authorities"):
        TlsSettings(certificate="x", client_revocations=lists)


async def test_the_lowest_version_and_the_ciphers_are_as_configured(
    made: list[tuple[Path, Path]], tmp_path: Path
) -> None:
    tls = files(tmp_path, made[0])
    old = trusting(made[0][1])
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with running(config_of({**tls, "minimum_version": "1.3"})) as server:
        with pytest.raises(ConnectFailed):
            async with connected(server, old):
                raise AssertionError("that is too old")
        async with connected(server, trusting(made[0][1])) as client:
            await client.push("c", 1, b"x")
        chosen = {**tls, "ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384"}
        assert reload_config(server, lambda: config_of(chosen))
        async with connected(server, old) as client:
            await client.push("c", 1, b"x")
        old.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
        with pytest.raises(ConnectFailed):
            async with connected(server, old):
                raise AssertionError("no cipher in common")


def test_when_a_certificate_expires_is_read_of_it(made: list[tuple[Path, Path]]) -> None:
    settings = TlsSettings(certificate=str(made[0][1]), key=str(made[0][0]))
    expiry = expiry_of_certificate(settings)
    assert expiry is not None
    assert 0 < expiry - time.time() < 3 * 86_400
    decoded = ssl._ssl._test_decode_cert(str(made[0][1]))  # type: ignore[attr-defined]
    assert expiry == ssl.cert_time_to_seconds(decoded["notAfter"])
    raw = ssl.PEM_cert_to_DER_cert(made[0][1].read_text("ascii"))
    for end in range(0, 200, 7):
        with pytest.raises(ValueError, match="no certificate"):
            expiry_of(raw[:end])
    assert expiry_of_certificate(TlsSettings()) is None


async def test_a_certificate_that_has_expired_is_not_taken_by_a_reload(
    made: list[tuple[Path, Path]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tls = files(tmp_path, made[0])
    server_context(config_of(tls).tls)
    async with running(config_of(tls)) as server:
        monkeypatch.setattr("tmqp_server.io.tls.time.time", lambda: 4e9)
        assert not reload_config(server, lambda: config_of(tls))
        assert "has expired on " in caplog.text


def test_a_version_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError, match=r"tls.minimum_version is '1.2' or '1.3'"):
        TlsSettings(minimum_version="1.1")
