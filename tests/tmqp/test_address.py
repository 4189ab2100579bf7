"""Addresses: each way of writing one is read, each mistake named."""

from __future__ import annotations

import pytest

from tmqp.address import DEFAULT_PORT, Address, parse_address
from tmqp.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost", Address("localhost", DEFAULT_PORT)),
        ("localhost:5000", Address("localhost", 5000)),
        ("tmq://10.0.0.1:5000", Address("10.0.0.1", 5000)),
        ("TMQ://host", Address("host", DEFAULT_PORT)),
        ("tmq://host:1/orders/eu", Address("host", 1, path="/orders/eu")),
        ("tmqs://host:5000", Address("host", 5000, tls=True)),
        ("tmq://[::1]:7", Address("::1", 7)),
        ("[::1]", Address("::1", DEFAULT_PORT)),
        ("unix:/run/tmqp.sock", Address(socket_path="/run/tmqp.sock")),
        ("unix:///run/tmqp.sock", Address(socket_path="/run/tmqp.sock")),
        (" tmq://host:0 ", Address("host", 0)),
    ],
)
def test_an_address_is_read(text: str, expected: Address) -> None:
    assert parse_address(text) == expected
    assert hash(parse_address(text)) == hash(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://host", "must begin with tmq://"),
        ("tmq://", "host is missing"),
        ("tmq://:5000", "host is missing"),
        ("tmq://host:port", "the port must be 0 to 65535"),
        ("tmq://host:65536", "the port must be 0 to 65535"),
        ("tmq://host:-1", "the port must be 0 to 65535"),
        ("tmq://::1", "IPv6"),
        ("tmq://[::1:7", "IPv6"),
        ("tmq://[::1]7", "IPv6"),
        ("unix:", "path of the socket"),
        ("tmq://host/a b", "must not contain a space or a colon"),
    ],
)
def test_a_mistake_is_named(text: str, reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=reason):
        parse_address(text)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        (Address("127.0.0.1"), True),
        (Address("127.8.0.1"), True),
        (Address("LOCALHOST"), True),
        (Address("::1"), True),
        (Address(socket_path="/x"), True),
        (Address("0.0.0.0"), False),
        (Address("example.org"), False),
    ],
)
def test_local_means_nobody_else_can_reach_it(address: Address, local: bool) -> None:
    assert address.is_local is local


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("tmq://h:1", "tmqs://h:1", "tmq://[::1]:2", "unix:/x"):
        assert str(parse_address(text)) == text
        assert text in repr(parse_address(text))
    assert Address("h") != "tmq://h:2622"
