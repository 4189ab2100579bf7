"""Messages of several parts: joined, told by a header, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_client.peer import broker, connect, delivery, serve
from tmqp import LocalProtocolError
from tmqp_client import MalformedParts, Multipart
from tmqp_client._core import requests
from tmqp_client.parts import MAX_PARTS, PARTS_HEADER, parts_of, with_parts


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20))
def test_what_is_joined_comes_apart(parts: list[bytes]) -> None:
    payload = Multipart(*parts)
    assert payload == b"".join(parts)
    headers = with_parts(payload, {"A": "1"})
    frame = requests.push_frame("a", 1, payload, "m1", "c1", headers, False, False)
    assert parts_of(frame) == parts
    assert frame.header("a") == "1"


def test_a_message_that_names_no_parts_is_one() -> None:
    frame = requests.push_frame("a", 1, b"whole", "m1", "c1", (), False, False)
    assert parts_of(frame) == [b"whole"]
    assert with_parts(b"whole", {"A": "1"}) == {"A": "1"}


@pytest.mark.parametrize(
    "value", ["", "1,", "4", "6", "-1,6", "5,x", "\u0665", "1 ,4", "0x5", "9" * 20]
)
def test_lengths_that_do_not_fit_are_told(value: str) -> None:
    headers = ((PARTS_HEADER, value),)
    frame = requests.push_frame("a", 1, b"whole", "m1", "c1", headers, False, False)
    with pytest.raises(MalformedParts):
        parts_of(frame)


def test_the_number_of_parts_is_bounded() -> None:
    assert len(Multipart(*[b""] * MAX_PARTS).lengths) == MAX_PARTS
    for count in (0, MAX_PARTS + 1):
        with pytest.raises(LocalProtocolError, match="parts"):
            Multipart(*[b""] * count)
    value = ",".join(["0"] * (MAX_PARTS + 1))
    frame = requests.push_frame("a", 1, b"", "m1", "c1", ((PARTS_HEADER, value),), False, False)
    with pytest.raises(MalformedParts):
        parts_of(frame)


async def test_parts_go_over_the_wire_as_one_message() -> None:
    async with serve(broker) as address, connect(address) as client:
        await client.push("orders", 1, Multipart("envelope", b"\x00\xff"), headers={"A": "1"})
        report = await client.push_many("orders", 1, [Multipart("a", "b"), b"plain"])
        assert report.confirmed == 2


def test_a_delivery_without_the_header() -> None:
    assert parts_of(delivery("orders", 1, b"x")) == [b"x"]
