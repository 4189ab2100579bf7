"""The checks of ``tmqp.limits``: at each limit it works, one above is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    Limits,
    LocalProtocolError,
    MessageType,
    Role,
    State,
)
from tmqp.testing import write_frame

PREAMBLE = b"TMQP/2.0"
HELLO_TEXT = b"CONNECT /\r\nClient-Id: c\r\n"


def open_server(limits: Limits) -> Connection:
    """A server on which messages flow."""
    connection = Connection(Role.SERVER, limits)
    connection.receive(PREAMBLE + Frame.build(0x10, "", 101, HELLO_TEXT).raw, 0.0)
    connection.accept("c")
    return connection


def fate(connection: Connection) -> str:
    """``works``, or the rule that was broken."""
    return "works" if connection.error is None else connection.error.rule


def payload(limits: Limits, size: int) -> str:
    connection = open_server(limits)
    assert len(connection.receive(write_frame(payload=b"p" * size), 0.0)) >= 1
    return fate(connection)


def header_block(limits: Limits, size: int) -> str:
    connection = open_server(limits)
    connection.receive(write_frame(header_block=b"k:" + b"v" * (size - 2)), 0.0)
    return fate(connection)


def name(limits: Limits, size: int) -> str:
    fates = set()
    for field in ("message_id", "source", "target"):
        connection = open_server(limits)
        connection.receive(write_frame(**{field: b"n" * size}), 0.0)  # type: ignore[arg-type]
        fates.add(fate(connection))
    (found,) = fates
    return found


def hello(limits: Limits, size: int) -> str:
    """Payload and header block count together."""
    fates = set()
    for block_bytes in (None, 2, 20):
        connection = Connection(Role.SERVER, limits)
        block = None if block_bytes is None else b"k:" + b"v" * (block_bytes - 2)
        text = HELLO_TEXT + b"X: " + b"x" * (size - len(HELLO_TEXT) - 3 - (block_bytes or 0))
        data = write_frame(0x10, content_type=101, header_block=block, payload=text)
        connection.receive(PREAMBLE + data, 0.0)
        fates.add(fate(connection).replace("payload-limit", "header-limit"))
    (found,) = fates
    return found


def hello_properties(limits: Limits, count: int) -> str:
    """Those that every client may have do not count."""
    lines = b"".join([b"K%d: v\r\n" % number for number in range(count)])
    connection = Connection(Role.SERVER, limits)
    text = b"CONNECT /\r\nClient-Token: t\r\n" + lines + b"Client-Id: c\r\n"
    connection.receive(PREAMBLE + Frame.build(0x10, "", 101, text).raw, 0.0)
    return fate(connection)


def hello_property_bytes(limits: Limits, size: int) -> str:
    """In UTF-8, of all of them, without colons and spaces."""
    connection = Connection(Role.SERVER, limits)
    text = HELLO_TEXT + b"Key : \xc3\xa9 \r\nX:  " + b"x" * (size - 6) + b"\r\n"
    connection.receive(PREAMBLE + Frame.build(0x10, "", 101, text).raw, 0.0)
    return fate(connection)


def early(limits: Limits, size: int) -> str:
    connection = Connection(Role.SERVER, limits)
    connection.receive(PREAMBLE + Frame.build(0x10, "", 101, HELLO_TEXT).raw, 0.0)
    connection.receive(b"\x11" * size, 0.0)
    return fate(connection)


def handshake_time(limits: Limits, time_s: float) -> str:
    """Up to the last instant before the deadline it works."""
    connection = Connection(Role.SERVER, limits)
    connection.on_deadline(time_s - 0.001)
    return fate(connection)


def ping_interval(limits: Limits, time_s: float) -> str:
    connection = open_server(limits)
    connection.data_to_send()
    connection.on_deadline(time_s - 0.001)
    return "pings" if connection.data_to_send() else "works"


def missed_pings(limits: Limits, number: int) -> str:
    """Let this many pings go unanswered."""
    connection = open_server(limits)
    for _ in range(number):
        due = connection.next_deadline()
        assert due is not None
        connection.on_deadline(due)
    return fate(connection)


def pending_pulls(limits: Limits, number: int) -> str:
    connection = Connection(Role.CLIENT, limits)
    connection.initiate(ConnectionInformation("c"))
    try:
        for index in range(number):
            connection.send(Frame.build(MessageType.PULL_REQUEST, "q", message_id=str(index)))
    except LocalProtocolError as error:
        return "misuse" if "max_pending_pulls" in str(error) else str(error)
    return "works"


Case = tuple[Callable[[Limits, Any], str], Any, Any, str]

#: Field -> what to try, a limit, one more, and what must come of one more.
CASES: dict[str, Case] = {
    "max_payload_bytes": (payload, 1_000, 1_001, "payload-limit"),
    "max_header_bytes": (header_block, 100, 101, "header-limit"),
    "max_name_bytes": (name, 50, 51, "name-limit"),
    "max_hello_bytes": (hello, 200, 201, "header-limit"),
    "max_hello_properties": (hello_properties, 3, 4, "hello-limit"),
    "max_hello_property_bytes": (hello_property_bytes, 50, 51, "hello-limit"),
    "max_early_bytes": (early, 300, 301, "early-limit"),
    "handshake_timeout_s": (handshake_time, 5.0, 5.001, "handshake-timeout"),
    "ping_interval_s": (ping_interval, 20.0, 20.001, "pings"),
    "max_missed_pings": (missed_pings, 3, 4, "ping-timeout"),
    "max_pending_pulls": (pending_pulls, 5, 6, "misuse"),
}


@pytest.mark.parametrize("field", [field.name for field in fields(Limits)])
def test_at_the_limit_it_works_and_one_above_is_refused(field: str) -> None:
    """Made from the class: a field without a case here fails."""
    try_it, at, above, refusal = CASES[field]
    limits = replace(Limits(), **{field: at})
    assert try_it(limits, at) == "works"
    assert try_it(limits, above) == refusal


def test_no_case_is_left_of_a_field_that_is_gone() -> None:
    assert set(CASES) == {field.name for field in fields(Limits)}


@pytest.mark.parametrize(
    ("field", "at", "above"),
    [("max_header_bytes", 65_535, 65_536), ("max_name_bytes", 255, 256)],
)
def test_a_limit_cannot_exceed_the_wires_own(field: str, at: int, above: int) -> None:
    limits = Limits(**{field: at})
    assert CASES[field][0](limits, at) == "works"
    with pytest.raises(LocalProtocolError, match=f"{field} is at most {at}"):
        Limits(**{field: above})


def test_a_payload_limit_is_less_than_2_to_the_63() -> None:
    Limits(max_payload_bytes=2**63 - 1)
    with pytest.raises(LocalProtocolError, match="below 2"):
        Limits(max_payload_bytes=2**63)


@pytest.mark.parametrize("field", [field.name for field in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_every_limit_is_positive(field: str, value: float) -> None:
    with pytest.raises(LocalProtocolError, match=f"{field} must be positive"):
        Limits(**{field: value})  # type: ignore[arg-type]


def test_limits_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Limits().max_payload_bytes = 1  # type: ignore[misc]


def test_the_hello_has_its_own_limit_only_until_it_came() -> None:
    limits = Limits(max_hello_bytes=100, max_payload_bytes=1_000)
    connection = open_server(limits)
    connection.receive(write_frame(payload=b"p" * 1_000), 0.0)
    assert connection.state == State.OPEN
    roomy = Limits(max_hello_bytes=1_000, max_payload_bytes=10)
    connection = Connection(Role.SERVER, roomy)
    text = HELLO_TEXT + b"X: " + b"x" * 500
    connection.receive(PREAMBLE + write_frame(0x10, content_type=101, payload=text), 0.0)
    assert connection.state == State.AWAIT_DECISION


def test_the_defaults_are_those_the_documents_name() -> None:
    limits = Limits()
    assert limits.max_payload_bytes == 1_048_576
    assert limits.max_hello_bytes == 16_384
    assert (limits.handshake_timeout_s, limits.ping_interval_s) == (10.0, 20.0)
    assert limits.max_missed_pings == 1
