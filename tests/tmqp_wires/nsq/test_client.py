"""A client's connection against a server that is made of the codec alone."""

from __future__ import annotations

import dataclasses
from typing import Final

import pytest

from tests.tmqp_wires.nsq.test_layers import deflate, snappy
from tmqp_wires.nsq import ClientConnection, CommandDecoder, Layer, ServerTerms, writing
from tmqp_wires.nsq.events import (
    Authenticate,
    ErrorReceived,
    Event,
    Identify,
    MessageReceived,
    ResponseReceived,
    Violation,
)

TERMS: Final = ServerTerms(tls=True)
MESSAGE: Final = writing.message_frame(1, 1, b"0123456789abcdef", b"body")


class Server:
    """Answers IDENTIFY and AUTH, puts layers on, and keeps what else it is told."""

    def __init__(self, terms: ServerTerms) -> None:
        self.decoder = CommandDecoder(terms)
        self.layer: Layer | None = None
        self.out = b""
        self.told: list[Event] = []
        self.later: list[str] = []

    def receive(self, data: bytes) -> None:
        if self.layer is not None:
            data = self.layer.decoded(data)
        for event in self.decoder.feed(data):
            if isinstance(event, Identify):
                self.say(writing.response_frame(event.answer))
                wanted = event.negotiated
                self.later = ["tls"] * wanted.tls + ["snappy"] * wanted.snappy
                self.later += ["deflate"] * wanted.deflate
                if not wanted.tls:
                    self.layers()
            elif isinstance(event, Authenticate):
                self.say(writing.response_frame(b'{"identity":"me"}'))
            else:
                self.told.append(event)

    def layers(self) -> None:
        for name in self.later:
            if name != "tls":
                self.layer = snappy() if name == "snappy" else deflate()
            self.say(writing.OK)
        self.later = []
        self.decoder.resume()

    def say(self, data: bytes) -> None:
        self.out += data if self.layer is None else self.layer.encoded(data)


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("compression", ["", "snappy", "deflate"])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("secret", [b"", b"sekret"])
def test_a_client_comes_through_every_beginning(
    step: int, compression: str, tls: bool, secret: bytes
) -> None:
    terms = dataclasses.replace(TERMS, auth_required=bool(secret))
    server = Server(terms)
    client = ClientConnection(
        {"client_id": "c", "tls_v1": tls},
        snappy() if compression == "snappy" else None,
        deflate() if compression == "deflate" else None,
        secret,
    )
    client.send(writing.sub(b"t", b"c"))
    found: list[Event] = []
    for _ in range(6):
        server.receive(client.data_to_send())
        said, server.out = server.out, b""
        for at in range(0, len(said), step):
            found += client.receive(said[at : at + step])
        if client.wants_tls:
            client.secured()
            server.decoder.secure = True
            server.layers()
    assert client.ready
    assert found == []
    assert [repr(event) for event in server.told] == ["Subscribe(b't', b'c')"]
    server.say(writing.OK + writing.HEARTBEAT + MESSAGE)
    server.say(writing.error_frame(b"E_FIN_FAILED no"))
    assert client.receive(server.out) == [
        ResponseReceived(b"OK"),
        MessageReceived(1, 1, b"0123456789abcdef", b"body"),
        ErrorReceived(b"E_FIN_FAILED", b"no"),
    ]
    assert not client.closed
    server.receive(client.data_to_send())
    assert repr(server.told[-1]) == "Nop()"


def test_a_server_without_features_is_used_as_it_is() -> None:
    client = ClientConnection({}, deflate=deflate())
    client.send(writing.NOP)
    client.data_to_send()
    assert client.receive(writing.OK) == []
    assert client.ready
    assert client.data_to_send() == writing.NOP


@pytest.mark.parametrize(
    "said",
    [
        writing.response_frame(b"nonsense"),
        writing.response_frame(b'{"snappy":true}'),  # not asked for
        writing.response_frame(b'{"tls_v1":true}') + writing.OK,  # in the clear
        writing.response_frame(b'{"deflate":true}') + writing.OK,  # not deflated
        b"\xff\xff\xff\xff\0\0\0\0",
        writing.error_frame(b"E_BAD_BODY no"),
    ],
)
def test_a_server_that_breaks_the_protocol_is_left(said: bytes) -> None:
    client = ClientConnection({}, deflate=deflate())
    events = client.receive(said)
    assert client.closed
    assert isinstance(events[-1], (Violation, ErrorReceived))
    assert client.receive(writing.OK) == []
