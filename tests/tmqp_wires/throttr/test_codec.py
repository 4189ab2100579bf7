"""The codec of Throttr: the samples of the facts both ways, splits, limits, what is no request."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.throttr import (
    ClientConnection,
    Push,
    Reply,
    Request,
    RequestDecoder,
    Violation,
    replies,
    words,
)
from tmqp_wires.throttr.requests import encode_request, inner_request

SEVENS = b"7777777"
KEY = b"in-memory"
ID = bytes(range(16))

#: Captured from the original, with values of two bytes: the request, and the reply to it.
REQUESTS = [
    (Request(words.INSERT, SEVENS, amount=7, ttl_type=4, ttl=60), "01 0700 04 3c00 07" + "37" * 7),
    (Request(words.QUERY, SEVENS), "02 07" + "37" * 7),
    (
        Request(words.UPDATE, SEVENS, amount=7, attribute=0, change=2),
        "03 00 02 0700 07" + "37" * 7,
    ),
    (
        Request(words.UPDATE, SEVENS, amount=60, attribute=1, change=1),
        "03 01 01 3c00 07" + "37" * 7,
    ),
    (
        Request(words.SET, KEY, b"EHLO", ttl_type=4, ttl=30),
        "05 04 1e00 09 0400 696e2d6d656d6f7279 45484c4f",
    ),
    (Request(words.GET, KEY), "06 09 696e2d6d656d6f7279"),
    (Request(words.WHOAMI), "18"),
]
REPLIES = [
    (words.INSERT, "01", words.YES),
    (words.QUERY, "01 0700 04 3b00", replies.query_reply(7, 4, 59, 2)),
    (words.QUERY, "01 1e00 04 7700", replies.query_reply(30, 4, 119, 2)),
    (words.GET, "01 04 1d00 0400 45484c4f", replies.get_reply(4, 29, b"EHLO", 2)),
    (words.WHOAMI, "01" + ID.hex(), replies.whoami_reply(ID)),
    (words.GET, "00", words.NO),
]
PUSHES = [
    ("7.1", "03 0200 6869", Push(b"", b"hi")),
    ("7.3", "19 02 0200 6368 6869", Push(b"ch", b"hi")),
]


def decoder(dialect: str = "7.1", width: int = 2, most: int = 70_000) -> RequestDecoder:
    return RequestDecoder(dialect, width, most)


def read(data: bytes, dialect: str = "7.1", width: int = 2) -> list[object]:
    return list(decoder(dialect, width).receive(data))


@pytest.mark.parametrize(("request_", "sample"), REQUESTS, ids=lambda each: str(each)[:40])
def test_samples_of_requests_both_ways(request_: Request, sample: str) -> None:
    data = bytes.fromhex(sample)
    assert encode_request(request_, 2) == data
    assert read(data) == [request_]


@pytest.mark.parametrize(("code", "sample", "written"), REPLIES)
def test_samples_of_replies_both_ways(code: int, sample: str, written: bytes) -> None:
    assert written.hex() == sample.replace(" ", "")
    client = ClientConnection("7.1", 2)
    client.send(Request(code, b"k"))
    (reply,) = client.receive(written)
    assert isinstance(reply, Reply)
    assert reply.ok == sample.startswith("01")
    if code == words.QUERY:
        again = replies.query_reply(reply.amount, reply.ttl_type, reply.ttl, 2)
    elif code == words.GET and reply.ok:
        again = replies.get_reply(reply.ttl_type, reply.ttl, reply.value, 2)
    elif code == words.WHOAMI:
        again = replies.whoami_reply(reply.name)
    else:
        return
    assert again == written


def test_two_inserts_in_one_segment_are_two_requests() -> None:
    sample = bytes.fromhex(REQUESTS[0][1])
    assert read(sample * 2) == [REQUESTS[0][0]] * 2


@pytest.mark.parametrize(("dialect", "sample", "push"), PUSHES)
def test_samples_of_pushes_both_ways(dialect: str, sample: str, push: Push) -> None:
    data = bytes.fromhex(sample)
    assert replies.push_bytes(dialect, b"ch", push.payload, 2) == data
    (found,) = ClientConnection(dialect, 2).receive(data)
    assert isinstance(found, Push)
    assert (found.channel, found.payload) == (push.channel, push.payload)


def test_sizes_are_those_that_clients_read() -> None:
    """The document's sums are wrong: facts 3 of Throttr."""
    entry = [0] * 7, [0] * 18
    assert len(replies.connection_entry(ID, "127.0.0.1", 1, *entry, "7.1")) == 235
    assert len(replies.connection_entry(ID, "127.0.0.1", 1, *entry, "7.3")) == 237
    assert len(replies.info_reply([0] * 52, "5.0.2")) == 433
    assert len(replies.whoami_reply(ID)) == 17
    assert len(replies.stat_reply(1, 2, 3, 4)) == 33
    assert len(replies.subscriber_entry(ID, 1, 2, 3)) == 40
    assert len(replies.channel_head(b"x", 1, 2, 3)) == 25
    assert len(replies.list_head(b"x", 0, 4, 1, 2, 2)) == 13
    assert len(replies.stats_head(b"x", 1, 2, 3, 4)) == 33
    assert replies.Fragments().reply() == b"\x01" + bytes(8)


def test_numbers_that_do_not_fit_are_the_largest_that_do() -> None:
    """131,069 seconds read as 65,533 with the original."""
    assert replies.query_reply(300, 4, 131_069, 2) == bytes.fromhex("01 2c01 04 ffff")
    assert replies.query_reply(300, 4, 1, 1) == bytes.fromhex("01 ff 04 01")
    assert replies.get_reply(4, 1, b"x" * 300, 1)[3:5] == b"\xffx"
    assert replies.push_bytes("7.1", b"c", b"x" * 256, 1) == b""


@pytest.mark.parametrize("code", [0x00, *range(0x0A, 0x10), 0x19, *range(0x1A, 0x100, 17)])
def test_what_is_no_request_ends_the_reading(code: int) -> None:
    ask = decoder()
    (found,) = ask.receive(bytes((code,)) + b"rest")
    assert isinstance(found, Violation)
    assert f"0x{code:02x}" in found.text
    assert ask.receive(b"\x07") == []


def test_an_event_is_a_request_of_7_3_alone() -> None:
    data = encode_request(Request(words.EVENT, b"ch", b"\x07"), 2)
    assert read(data, "7.3") == [Request(words.EVENT, b"ch", b"\x07")]
    assert isinstance(read(data, "7.1")[0], Violation)


def test_what_an_event_carries_is_one_whole_request() -> None:
    def carried(data: bytes) -> Request | None:
        return inner_request(Request(words.EVENT, b"ch", data), 2)

    assert carried(b"\x07") == Request(words.LIST)
    for data in (b"", b"\x07\x07", b"\x06\x05k", b"\xff", b"\x19\x00\x00\x00"):
        assert carried(data) is None


@pytest.mark.parametrize("width", words.VALUE_SIZES)
def test_a_request_may_have_as_many_bytes_as_is_allowed_and_no_more(width: int) -> None:
    whole = encode_request(Request(words.SET, b"k", b"v" * 200, ttl_type=4, ttl=1), width)
    (found,) = decoder(width=width, most=len(whole)).receive(whole)
    assert isinstance(found, Request)
    ask = decoder(width=width, most=len(whole) - 1)
    (found,) = ask.receive(whole[: 3 + 2 * width])
    assert isinstance(found, Violation), "before anything of it is kept"
    assert ask.held_bytes == 0


@pytest.mark.parametrize(
    "wrong",
    [
        Request(0x0A),
        Request(words.QUERY, b"k" * 256),
        Request(words.INSERT, b"k", amount=256, ttl_type=4, ttl=1),
        Request(words.INSERT, b"k", amount=1, ttl_type=4, ttl=256),
        Request(words.SET, b"k", b"v" * 256, ttl_type=4, ttl=1),
        Request(words.CONNECTION, b"short"),
    ],
)
def test_what_does_not_fit_is_not_written(wrong: Request) -> None:
    with pytest.raises(ValueError, match=r"at most|does not fit|has 16 bytes|no request"):
        encode_request(wrong, 1)


NUMBERS = st.integers(0, 255)
NAMES = st.binary(max_size=255)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    code = draw(st.sampled_from(sorted(words.NAMES)))
    if code in (words.LIST, words.INFO, words.STATS, words.CONNECTIONS, words.CHANNELS):
        return Request(code)
    if code == words.WHOAMI:
        return Request(code)
    if code == words.CONNECTION:
        return Request(code, draw(st.binary(min_size=16, max_size=16)))
    if code == words.INSERT:
        return Request(code, draw(NAMES), b"", draw(NUMBERS), draw(NUMBERS), draw(NUMBERS))
    if code == words.UPDATE:
        more = draw(NUMBERS), draw(NUMBERS)
        return Request(code, draw(NAMES), b"", draw(NUMBERS), 0, 0, *more)
    if code == words.SET:
        return Request(code, draw(NAMES), draw(NAMES), 0, draw(NUMBERS), draw(NUMBERS))
    if code in (words.PUBLISH, words.EVENT):
        return Request(code, draw(NAMES), draw(NAMES))
    return Request(code, draw(NAMES))


@given(
    st.lists(requests(), max_size=8),
    st.sampled_from(words.VALUE_SIZES),
    st.lists(st.integers(0, 4_000), max_size=20),
)
def test_any_split_gives_the_same_requests(
    asked: list[Request], width: int, cuts: list[int]
) -> None:
    data = b"".join(encode_request(each, width) for each in asked)
    ask = decoder("7.3", width)
    found: list[object] = []
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in itertools.pairwise(places):
        found += ask.receive(data[begin:end])
    assert found == asked
    assert ask.held_bytes == 0


@given(st.binary(max_size=200), st.sampled_from(words.VALUE_SIZES))
def test_any_bytes_are_requests_or_a_violation(data: bytes, width: int) -> None:
    ask = decoder("7.3", width, 1_000)
    found = ask.receive(data)
    for event in found[:-1]:
        assert isinstance(event, Request)
    again = b"".join(encode_request(each, width) for each in found if isinstance(each, Request))
    assert data.startswith(again)
    assert ask.held_bytes <= len(data) - len(again)


@given(st.lists(st.tuples(NAMES, NUMBERS), max_size=60), st.integers(1, 64))
def test_a_listing_is_read_as_it_was_written(items: list[tuple[bytes, int]], cut: int) -> None:
    made = replies.Fragments()
    for key, n in items:
        head = replies.list_head(key, n % 2, 4, n * 2**40, n, 2)
        made.add(head, key, replies.LIST_WEIGHT + 2 + len(key))
    data = made.reply()
    client = ClientConnection("7.3", 2)
    client.send(Request(words.LIST))
    found = []
    for at in range(0, len(data), cut * 50):
        found += client.receive(data[at : at + cut * 50])
    (reply,) = found
    assert isinstance(reply, Reply)
    assert [(item.name, item.numbers["bytes"]) for item in reply.items] == items
    assert all(
        item.numbers["time_point"] == n * 2**40
        for item, (_, n) in zip(reply.items, items, strict=True)
    )


def test_fragments_are_cut_where_the_original_cuts_them() -> None:
    """200 keys of 8 bytes: 107 and 93."""
    for weight, counts in ((replies.LIST_WEIGHT + 2 + 8, [107, 93]), (33 + 8, [49, 49, 49, 49, 4])):
        made = replies.Fragments()
        for n in range(200):
            made.add(replies.stats_head(b"%08d" % n, 0, 0, 0, 0), b"%08d" % n, weight)
        data = made.reply()
        at = 9
        found: list[int] = []
        while at < len(data):
            assert int.from_bytes(data[at : at + 8], "little") == len(found) + 1
            count = int.from_bytes(data[at + 8 : at + 16], "little")
            found.append(count)
            at += 16 + count * (33 + 8)
        assert found == counts


def test_bytes_that_nothing_was_asked_for_are_told() -> None:
    with pytest.raises(ValueError, match="no request is answered"):
        ClientConnection("7.1", 2).receive(b"\x01")
    client = ClientConnection("7.1", 2)
    client.send(Request(words.LIST))
    with pytest.raises(ValueError, match="0x19"):
        client.receive(b"\x19")


def test_a_client_tells_what_it_holds_of_a_reply_that_is_not_whole() -> None:
    client = ClientConnection("7.1", 2)
    client.send(Request(words.QUERY, b"k"))
    assert client.receive(b"\x01\x07\x00") == []
    assert client.held_bytes == 3
    assert len(client.receive(b"\x04\x3b\x00")) == 1
    assert client.held_bytes == 0
