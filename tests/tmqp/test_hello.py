"""The checks of ``tmqp.hello``: what a client says of itself, written and read (F26-F30)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import load_exchange, load_frames
from tmqp import ConnectionInformation, LocalProtocolError, RemoteProtocolError
from tmqp.testing.strategies import connection_information, hostile_bytes

parse = ConnectionInformation.parse


# --- Writing -------------------------------------------------------------------------------------


def test_it_is_written_as_the_original_client_writes_it() -> None:
    information = ConnectionInformation("prod-1", "producer", "ptype", "s3cret", {"X-Extra": "1"})
    assert information.encode() == (
        b"CONNECT /\r\nClient-Name: producer\r\nClient-Type: ptype\r\nClient-Token: s3cret\r\n"
        b"X-Extra: 1\r\nClient-Id: prod-1\r\n"
    )


def test_what_is_empty_is_left_out_except_further_properties() -> None:
    assert ConnectionInformation().encode() == b"CONNECT /\r\n"
    assert ConnectionInformation(properties={"X": ""}).encode() == b"CONNECT /\r\nX: \r\n"
    written = ConnectionInformation(method="LINK", path="/a/b").encode()
    assert written == b"LINK /a/b\r\n"


@given(connection_information())
def test_what_is_written_is_read_again(information: ConnectionInformation) -> None:
    assert parse(information.encode()) == information


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"method": ""}, "the method is one word"),
        ({"method": "A B"}, "the method is one word"),
        ({"path": ""}, "the path is one word"),
        ({"path": "tmq://host"}, "the path is one word without colon"),
        ({"path": "/a\r\nClient-Id: b"}, "the path is one word"),
        ({"client_id": "x" * 256}, "client id is over 255 bytes"),
        ({"name": "ß" * 128}, "client name is over 255 bytes"),
        ({"type": "x" * 256}, "client type is over 255 bytes"),
        ({"client_id": "a\0b"}, "client id holds a control character"),
        ({"name": "a\x7f"}, "client name holds a control character"),
        ({"type": "a\tb"}, "client type holds a control character"),
        ({"client_id": "a\r\nX: y"}, "one line"),
        ({"name": "a\nb"}, "one line"),
        ({"token": "a\rb"}, "one line"),
        ({"token": "\ud800"}, "not valid Unicode"),
        ({"client_id": "\ud800"}, "not valid Unicode"),
        ({"properties": {"": "v"}}, "one line without a colon"),
        ({"properties": {" ": "v"}}, "one line without a colon"),
        ({"properties": {"a:b": "v"}}, "one line without a colon"),
        ({"properties": {"a\n": "v"}}, "one line without a colon"),
        ({"properties": {"a": "v\r\nb: c"}}, "one line without a colon"),
        ({"properties": {"a": "1", "A": "2"}}, "given twice"),
        ({"properties": {"Client-Id": "x"}}, "not one of the further properties"),
        ({"properties": {"client-token": "x"}}, "not one of the further properties"),
        ({"properties": {" CLIENT-NAME ": "x"}, "name": "y"}, "not one of the further properties"),
    ],
)
def test_what_cannot_be_written_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LocalProtocolError, match=sentence):
        ConnectionInformation(**wrong).encode()


def test_the_longest_names_fit() -> None:
    information = ConnectionInformation("x" * 255, "ß" * 127 + "s", "y" * 255, "t" * 10_000)
    assert parse(information.encode()) == information


# --- Reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"CONNECT /", {}),
        (b"CONNECT /\r\n", {}),
        (b"\r\nCONNECT /orders\r\n\r\n", {"path": "/orders"}),
        (b"LINK /a b", {"method": "LINK", "path": "/a b"}),
        # As the specification prints it (F28): the address first.
        (b"tmq://remote-host CONNECT\r\n", {"path": "tmq://remote-host"}),
        (
            b"tmqs://h:26223/p CONNECT\r\nClient-Id: a",
            {"path": "tmqs://h:26223/p", "client_id": "a"},
        ),
        # A first line that is a property.
        (b"Client-Id: a\r\nClient-Name: n", {"client_id": "a", "name": "n"}),
        (b"Client-Id:a", {"client_id": "a"}),
        (b"://x CONNECT", {}),
        (b"tmq://host ", {"properties": {"tmq": "//host"}}),
        (b"tmq:host CONNECT", {"properties": {"tmq": "host CONNECT"}}),
        (b"tmq://a b:c", {"properties": {"tmq": "//a b:c"}}),
        # Keys whatever their case, values trimmed, further colons kept (F28, F29).
        (
            b"GO /\r\nCLIENT-ID:  a \r\nclient-name:n\r\nClient-type:\tt\r\nclient-TOKEN: a:b ",
            {"client_id": "a", "name": "n", "type": "t", "token": "a:b", "method": "GO"},
        ),
        (b"CONNECT /\r\n X-Extra : v:w \r\n", {"properties": {"X-Extra": "v:w"}}),
        # Lines that say nothing are skipped.
        (b"CONNECT /\r\nno colon\r\n: no key\r\n  : x\r\nClient-Id: a", {"client_id": "a"}),
        (b"nothing", {}),
        (b"CONNECT /\r\nClient-Id: \r\nClient-Name:", {}),
        ("CONNECT /\r\nClient-Id: ünï-🐇".encode(), {"client_id": "ünï-🐇"}),
        # Only CR LF ends a line.
        (b"CONNECT /\r\nX: a\nClient-Id: b", {"properties": {"X": "a\nClient-Id: b"}}),
    ],
)
def test_it_is_read(payload: bytes, expected: dict[str, Any]) -> None:
    assert parse(payload) == ConnectionInformation(**expected)


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"", "empty"),
        (b"\r\n\r\n", "empty"),
        (b"CONNECT /\r\nClient-Id: \xff", "not UTF-8"),
        (b"CONNECT /\r\nClient-Id: a\r\nClient-Id: a", "'Client-Id' is given twice"),
        (b"CONNECT /\r\nX: a\r\nx : b", "'x' is given twice"),
        (b"CONNECT /\r\nClient-Id: " + b"x" * 256, "client id is over 255 bytes"),
        (b"CONNECT /\r\nClient-Name: " + "ß".encode() * 128, "client name is over 255 bytes"),
        (b"CONNECT /\r\nClient-Type: " + b"x" * 256, "client type is over 255 bytes"),
        (b"CONNECT /\r\nClient-Id: a\0b", "client id holds a control character"),
        (b"CONNECT /\r\nClient-Name: a\nb", "client name holds a control character"),
        (b"CONNECT /\r\nClient-Type: a\x1b[2Jb", "client type holds a control character"),
        (b"CONNECT /\r\nClient-Id: a\x7fb", "client id holds a control character"),
    ],
)
def test_what_makes_no_sense_is_refused(payload: bytes, sentence: str) -> None:
    with pytest.raises(RemoteProtocolError, match=sentence) as caught:
        parse(payload)
    assert caught.value.rule == "hello-invalid"
    assert int(caught.value.code) == 400


#: A9 for the one place where a name is checked by the protocol itself.
@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("a", True),
        ("x" * 255, True),
        ("x" * 256, False),
        ("a b", True),
        ("a;b", True),
        ("a\0b", False),
        ("a\rb", False),
        ("a\nb", False),
        ("../../etc/passwd", True),
        ("@name:x", True),
        ("*", True),
        ("\N{RIGHT-TO-LEFT OVERRIDE}x", False),
        ("a\N{LEFT-TO-RIGHT ISOLATE}b", False),
        ("a\N{ARABIC LETTER MARK}b", False),
        ("a\x9b2Jb", False),
        ("a\x85b", False),
        ("a\N{LINE SEPARATOR}b", False),
        ("a\xa0b", True),
        ("שלום", True),
        ("a\N{ZERO WIDTH JOINER}b", True),
    ],
)
@pytest.mark.parametrize("key", ["Client-Id", "Client-Name", "Client-Type"])
def test_names_are_taken_or_refused(key: str, name: str, taken: bool) -> None:
    payload = f"CONNECT /\r\n{key}: {name}\r\n".encode()
    if taken:
        information = parse(payload)
        assert name in (information.client_id, information.name, information.type)
        return
    with pytest.raises(RemoteProtocolError):
        parse(payload)


@given(hostile_bytes(connection_information().map(ConnectionInformation.encode)))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        information = parse(payload)
    except RemoteProtocolError as error:
        assert error.rule == "hello-invalid"  # noqa: PT017 - either outcome is right
        return
    assert len(repr(information)) < 2_000


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    inner: Any = test_any_bytes_are_read_or_refused
    inner.hypothesis.inner_test(text.encode("utf-8", "ignore"))


def test_recorded_hellos_are_read() -> None:
    read = {
        recorded.exchange.name[:9]: parse(recorded.frame.payload)
        for recorded in load_frames()
        if recorded.frame.type == 0x10
        and recorded.frame.content_type == 101
        and recorded.frame.payload
        and not recorded.exchange.name.startswith("probe-012")
    }
    assert read["probe-006"].path == "tmq://remote-host"
    assert read["probe-007"].client_id == ""
    assert read["probe-013"].client_id == "dup-a"  # written with a space after the colon
    assert read["probe-014"].client_id == "dup-b"  # without
    (repeated,) = [
        step.data
        for step in load_exchange("probe-012").steps
        if step.direction == "c2s" and b"CONNECT" in step.data
    ]
    with pytest.raises(RemoteProtocolError, match="given twice"):
        parse(repeated[repeated.index(b"CONNECT") :])


# --- Being an object -----------------------------------------------------------------------------


def test_two_are_equal_when_they_say_the_same() -> None:
    one = ConnectionInformation("a", "n", "t", "s", {"k": "v"})
    assert one == ConnectionInformation("a", "n", "t", "s", {"k": "v"})
    assert one != ConnectionInformation("a", "n", "t", "other", {"k": "v"})
    assert one != "a"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_it_prints_short_and_never_the_token() -> None:
    information = ConnectionInformation("a", "n", "t", "s3cret", {"k": "private"})
    assert repr(information) == (
        "<ConnectionInformation 'a' name='n' type='t' token='...' properties=['k']>"
    )
    assert "token=''" in repr(ConnectionInformation())
    hostile = ConnectionInformation(
        "\x1b" * 255,
        "\0" * 255,
        "\n" * 255,
        "s3cret" * 1_000,
        {f"{n}\x1b" * 500: "v" for n in range(500)},
    )
    printed = repr(hostile)
    assert len(printed) < 4_000
    assert printed.isprintable()
    assert "s3cret" not in printed
    assert "and 492 more" in printed
