"""The checks of ``tmqp.greetings``: what a stranger probably is (B3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp.greetings import name_greeting


@pytest.mark.parametrize(
    ("data", "name"),
    [
        *[
            (f"{method} / HTTP/1.1\r\n".encode(), "an HTTP request")
            for method in ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH")
        ],
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP/2 preface"),
        (b"CONNECT example.org:443 HTTP/1.1\r\n", "an HTTP proxy request"),
        (b"\x16\x03\x01\x02\x00\x01", "a TLS handshake"),
        (b"\x16\x03\x03", "a TLS handshake"),
        (b"SSH-2.0-x\r\n", "an SSH banner"),
        (b"AMQP\x00\x00\x09\x01", "an AMQP greeting"),
        (b"AMQP\x03\x01\x00\x00", "an AMQP greeting"),
        (b"\x10\x10\x00\x04MQTT\x05\x02", "an MQTT greeting"),
        (b"\x10\x80\x01\x00\x04MQTT\x04", "an MQTT greeting"),
        (b"CONNECT {}\r\n", "a NATS client's greeting"),
        (b"INFO {}\r\n", "a NATS server's greeting"),
        (b"CONNECT\nlogin:x\n", "a STOMP client's greeting"),
        (b"CONNECT\r\nlogin:x\r\n", "a STOMP client's greeting"),
        (b"STOMP\n", "a STOMP client's greeting"),
        (b"  V2", "an NSQ client's greeting"),
        (b"  V1", "an NSQ client's greeting"),
        (b"*1\r\n$4\r\nPING\r\n", "a Redis command"),
        (b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f", "a ZeroMQ greeting"),
        (b"TMQP/3.0", "another version of TMQP"),
        (b"TMQ/1.00", "another version of TMQP"),
        # Not enough, or nothing known: the bytes themselves.
        (b"\x16", r"b'\x16'"),
        (b"\x16\x02\x03", r"b'\x16\x02\x03'"),
        (b"\x10", r"b'\x10'"),
        (b"\x10\x05hello", r"b'\x10\x05hello'"),
        (b"hello, is this the server?", "b'hello, is this t'"),
    ],
)
def test_a_stranger_is_named(data: bytes, name: str) -> None:
    assert name_greeting(data) == name


@given(st.binary(min_size=1))
def test_anything_is_named_short_and_printable(data: bytes) -> None:
    name = name_greeting(data)
    assert 0 < len(name) < 80
    assert name.isprintable()
