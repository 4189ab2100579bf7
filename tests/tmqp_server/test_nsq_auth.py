"""AUTH with an auth server, as recorded from the original (N45 to N53)."""

from __future__ import annotations

import json

import anyio
import pytest

from tmqp.address import Address
from tmqp_server import NsqAuthServer, ServerConfig, running
from tmqp_server.settings.doors import DoorSettings
from tmqp_wires.nsq.auth_server import AuthRequest
from tmqp_wires.nsq.writing import auth, pub, sub

pytestmark = pytest.mark.anyio

ALL = {"topic": "^ok", "channels": [".*"], "permissions": ["subscribe", "publish"]}
GOOD = b'{"identity":"me","identity_url":"http://id","permission_count":1}'


async def answered(request: AuthRequest) -> tuple[int, bytes]:
    """What the probe's auth server answers."""
    if "bad" in request.url:
        return 403, b""
    rule = {**ALL, "channels": ["^c$"]} if "subonly" in request.url else ALL
    answer = {
        "ttl": 3600,
        "identity": "me",
        "identity_url": "http://id",
        "authorizations": [] if "none" in request.url else [rule],
    }
    return 200, json.dumps(answer).encode()


CASES: list[tuple[list[bytes], list[bytes]]] = [
    ([pub(b"ok1", b"x")], [b"E_AUTH_FIRST AUTH required before PUB", b""]),
    ([sub(b"ok1", b"c")], [b"E_AUTH_FIRST AUTH required before SUB", b""]),
    ([auth(b"sekret")], [GOOD]),
    ([auth(b"sekret"), auth(b"sekret")], [GOOD, b"E_INVALID AUTH already set", b""]),
    ([auth(b"bad")], [b"E_AUTH_FAILED AUTH failed", b""]),
    ([auth(b"none")], [b"E_UNAUTHORIZED AUTH no authorizations found", b""]),
    ([auth(b"sekret"), pub(b"ok1", b"x")], [GOOD, b"OK"]),
    (
        [auth(b"sekret"), pub(b"zz", b"x")],
        [GOOD, b'E_UNAUTHORIZED AUTH failed for PUB on "zz" ""', b""],
    ),
    (
        [auth(b"subonly"), pub(b"ok1", b"x")],
        [GOOD, b'E_UNAUTHORIZED AUTH failed for PUB on "ok1" ""', b""],
    ),
    ([auth(b"subonly"), sub(b"ok1", b"c")], [GOOD, b"OK"]),
    (
        [auth(b"subonly"), sub(b"ok1", b"d")],
        [GOOD, b'E_UNAUTHORIZED AUTH failed for SUB on "ok1" "d"', b""],
    ),
]


async def test_answers_are_the_originals() -> None:
    door = DoorSettings("nsq", (Address("127.0.0.1", 0),), options={"auth_required": True})
    access = NsqAuthServer(["auth:1"], ask=answered)
    async with running(ServerConfig(listen=(), doors=(door,)), access=access) as server:
        (address,) = server.door_addresses("nsq")
        host, _, port = address.removeprefix("nsq://").partition(":")
        for sent, answers in CASES:
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(b"".join([b"  V2", *sent]))
                with anyio.fail_after(10.0):
                    found = [await _frame(stream) for _ in answers]
            assert found == answers


async def _frame(stream: anyio.abc.SocketStream) -> bytes:
    """The data of the next frame; nothing at the end."""
    try:
        head = await _exactly(stream, 8)
        return await _exactly(stream, int.from_bytes(head[:4], "big") - 4)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""


async def _exactly(stream: anyio.abc.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await stream.receive(count - len(data))
    return data
