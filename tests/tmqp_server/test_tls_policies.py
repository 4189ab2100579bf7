"""What certificates clients are asked for, door by door, over real sockets."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

from tests.certificates import make_certificate
from tests.tmqp_server.test_doors import config, serving
from tests.tmqp_server.test_nsq_door import NsqClient
from tests.tmqp_server.test_tls import Noting
from tmqp_server import Applicant, ConfigError, Identity, Server, running
from tmqp_server.settings.doors import door_settings
from tmqp_server.settings.tls import CLIENT_POLICIES, TlsSettings
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, ResponseReceived

#: Who is let in by each policy, and whether its name is known: without a certificate, with a known
#: one, with another one.
ALLOWED: Final = {
    "none": (True, True, True),
    "request": (True, True, False),
    "require": (False, True, False),
    "require-verify": (False, True, False),
}
#: How a connection ends whose certificate is refused, in TLS 1.3 after the client's handshake.
REFUSED: Final = (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLError, httpx.TransportError)


class Allowing(Noting):
    """Notes who connects, and lets everybody do everything."""

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool:
        """Yes."""
        return True


class Files:
    """The server's certificate, that of a known client, which is its own authority, and another."""

    def __init__(self, folder: Path) -> None:
        self.server, self.known, self.other = [
            make_certificate(folder, name) for name in ("server", "known", "other")
        ]
        key, certificate = self.server
        self.settings = TlsSettings(
            certificate=str(certificate),
            key=str(key),
            client_authorities=str(self.known[1]),
        )

    def contexts(self) -> list[ssl.SSLContext]:
        """Of a client with no certificate, the known one and the other one."""
        found = []
        for pair in (None, self.known, self.other):
            context = ssl.create_default_context(cafile=str(self.server[1]))
            if pair is not None:
                context.load_cert_chain(pair[1], pair[0])
            found.append(context)
        return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("policies"))


async def asks_by_http(server: Server, place: int, tls: ssl.SSLContext) -> bool:
    """Whether a client of the HTTPS door is answered."""
    port = server.door_addresses("nsqd-http")[place].rpartition(":")[2]
    try:
        async with httpx.AsyncClient(verify=tls) as web:
            answer = await web.get(f"https://localhost:{port}/config/log_level")
    except REFUSED:
        return False
    return answer.status_code == 200


async def asks_by_nsq(server: Server, place: int, tls: ssl.SSLContext | None) -> bool:
    """Whether a client of NSQ that changes to TLS can publish; None stays in the clear."""
    port = server.door_addresses("nsq")[place].rpartition(":")[2]
    async with await anyio.connect_tcp("127.0.0.1", int(port)) as stream:
        client = NsqClient(stream, {"tls_v1": tls is not None}, tls)
        try:
            answer = await client.ask(writing.pub(b"t", b"x"))
        except REFUSED:
            return False
    if answer == ErrorReceived(b"E_INVALID", b"cannot PUB in current state (TLS required)"):
        return False
    assert answer == ResponseReceived(b"OK")
    return True


async def test_each_door_has_its_own_policy_about_certificates(files: Files) -> None:
    doors: list[dict[str, Any]] = []
    for policy in ALLOWED:
        common = {"listen": ["127.0.0.1:0"], "tls_client_auth": policy}
        doors += [{"protocol": "nsq", **common}, {"protocol": "nsqd-http", "tls": True, **common}]
    asked: list[Applicant] = []
    async with running(config(*doors, tls=files.settings), access=Allowing(asked)) as server:
        for place, (policy, allowed) in enumerate(ALLOWED.items()):
            for which, (may, tls) in enumerate(zip(allowed, files.contexts(), strict=True)):
                for ask in (asks_by_http, asks_by_nsq):
                    assert await ask(server, place, tls) is may, (policy, which, ask)
                    if may:
                        name = "localhost" if which == 1 and policy != "none" else ""
                        assert asked[-1].common_name == name, (policy, ask)
            in_the_clear = await asks_by_nsq(server, place, None)
            assert in_the_clear is not policy.startswith("require"), policy


def test_the_policies_are_those_that_are_tested() -> None:
    assert set(ALLOWED) == set(CLIENT_POLICIES)


async def test_a_door_takes_the_policy_of_the_table_tls(files: Files) -> None:
    settings = TlsSettings(
        certificate=files.settings.certificate,
        key=files.settings.key,
        client_authorities=files.settings.client_authorities,
        require_client_certificate=True,
    )
    door = {"protocol": "nsq", "listen": ["127.0.0.1:0"]}
    async with serving(door, {**door, "tls_client_auth": "none"}, tls=settings) as server:
        for place, allowed in [(0, (False, True, False)), (1, (True, True, True))]:
            for may, tls in zip(allowed, files.contexts(), strict=True):
                assert await asks_by_nsq(server, place, tls) is may


@pytest.mark.parametrize(
    ("door", "complaint"),
    [
        ({"protocol": "nsq", "tls_client_auth": "any"}, "is one of none, request, require, req"),
        ({"protocol": "nsq", "tls_client_auth": 1}, "tls_client_auth is one of none, request"),
        (
            {"protocol": "nsq", "tls_client_auth": "require"},
            "doors: nsq: tls_client_auth = 'require' needs tls.client_authorities",
        ),
        (
            {"protocol": "nsqd-http", "tls_client_auth": "request"},
            "doors: nsqd-http: tls_client_auth = 'request' has no effect",
        ),
    ],
)
async def test_a_policy_that_cannot_be_is_named_at_the_start(
    door: dict[str, Any], complaint: str, files: Files
) -> None:
    tls = files.settings if door["protocol"] == "nsqd-http" else TlsSettings()
    with pytest.raises(ConfigError, match=complaint):
        async with serving(door, tls=tls):
            pass
    assert door_settings([{"protocol": "nsq", "tls_client_auth": "none"}])[0].tls_client_auth
