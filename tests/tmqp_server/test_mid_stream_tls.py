"""Connections of the tests' own protocol that change to TLS, over real sockets."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import anyio
import pytest

from tests.certificates import make_certificate
from tests.tmqp_server.test_doors import TOY, ToyClient, serving
from tests.waiting import until
from tmqp.limits import Limits
from tmqp_server.settings.tls import TlsSettings

ENDED = (anyio.EndOfStream, anyio.BrokenResourceError, json.JSONDecodeError, UnicodeDecodeError)


def settings(folder: Path) -> TlsSettings:
    key, certificate = make_certificate(folder)
    return TlsSettings(certificate=str(certificate), key=str(key))


async def hear_the_end(toy: ToyClient) -> None:
    """Read what comes until the connection ends; an alert in the middle is no line."""
    while True:
        await toy.line()


async def test_a_connection_changes_to_tls_and_goes_on(tmp_path: Path) -> None:
    tls = settings(tmp_path)
    context = ssl.create_default_context(cafile=tls.certificate)
    async with (
        serving(TOY, tls=tls) as server,
        await ToyClient.dial(server.door_addresses("toy")[0]) as toy,
    ):
        await toy.ask(do="join", channel="c")
        assert await toy.ask(do="tls") == {"is": "tls"}
        await toy.secure(context)
        assert await toy.line() == {"is": "secure"}
        text = base64.b64encode(b"x" * 300_000).decode()
        await toy.say(do="push", channel="c", queue=1, id="m1", body=text)
        lines = [await toy.line() for _ in range(2)]
        assert sorted(line["is"] for line in lines) == ["confirm", "message"]
        assert [line["body"] for line in lines if line["is"] == "message"] == [text]


async def test_what_comes_in_the_clear_behind_the_request_ends_the_connection(
    tmp_path: Path,
) -> None:
    async with serving(TOY, tls=settings(tmp_path)) as server:
        async with await ToyClient.dial(server.door_addresses("toy")[0]) as toy:
            await toy.send(b'{"do": "tls"}\n{"do": "join", "channel": "c"}\n')
            with pytest.raises(ENDED):
                await hear_the_end(toy)
        assert server.broker.statistics().channels == 0


@pytest.mark.parametrize("said", [b"no TLS at all, and more than enough for a record", b""])
async def test_a_handshake_that_fails_ends_the_connection(tmp_path: Path, said: bytes) -> None:
    limits = Limits(handshake_timeout_s=0.3)
    async with serving(TOY, tls=settings(tmp_path), connection=limits) as server:
        async with await ToyClient.dial(server.door_addresses("toy")[0]) as toy:
            await toy.ask(do="tls")
            if said:
                await toy.send(said)
            with pytest.raises(ENDED):
                await hear_the_end(toy)
        await until(lambda: server.sessions == 0)


async def test_without_a_certificate_the_connection_ends() -> None:
    async with (
        serving(TOY) as server,
        await ToyClient.dial(server.door_addresses("toy")[0]) as toy,
    ):
        assert await toy.ask(do="tls") == {"is": "tls"}
        with pytest.raises(ENDED):
            await toy.line()
