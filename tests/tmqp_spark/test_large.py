"""Large answers: received in one piece, and the same as the decoder makes of them."""

from __future__ import annotations

import socket

import pytest

from tests.tmqp_spark.reading import LinkTo, sequences, source, whole
from tmqp import Frame, FrameDecoder, Limits
from tmqp.blocks import split_blocks
from tmqp.constants import TYPE_QUEUE_MESSAGE, TYPE_RESPONSE
from tmqp.extensions import OP_READ_RANGE
from tmqp_spark.large import begin
from tmqp_spark.ranges import QueueRange, read_answers
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink

SIZE = 200_000


def answer(kind: int = TYPE_RESPONSE, size: int = SIZE, headers: bool = False) -> Frame:
    pairs = [("Name", "value")] if headers else []
    return Frame.build(kind, "orders", 7, b"x" * size, message_id="a1", source="s", headers=pairs)


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize("have", [60, 4_096, SIZE])
def test_it_is_what_the_decoder_makes_of_it(headers: bool, have: int) -> None:
    raw = answer(headers=headers).raw
    large = begin(raw[:have])
    assert large is not None
    assert large.message_id == "a1"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        theirs.sendall(raw[have:] + b"behind it")
        while large.missing:
            assert large.receive(ours)
        assert ours.recv(100) == b"behind it"
    assert bytes(large.data) == raw
    assert bytes(large.data[large.start :]) == b"x" * SIZE
    decoder = FrameDecoder(Limits(max_payload_bytes=SIZE))
    (short,) = decoder.feed(large.short)
    (whole_one,) = decoder.feed(raw)
    assert short.payload == b""
    for name in ("type", "content_type", "message_id", "source", "target", "headers"):
        assert getattr(short, name) == getattr(whole_one, name)


def test_other_beginnings_are_the_decoders() -> None:
    assert begin(answer(kind=TYPE_QUEUE_MESSAGE).raw[:100]) is None
    assert begin(answer(size=100).raw) is None
    assert begin(answer(size=70_000).raw[:500]) is None
    raw = answer(headers=True).raw
    assert all(begin(raw[:have]) is None for have in range(20))
    assert begin(raw + b"the next") is None, "it is all there"


def stored_blocks(link: BrokerLink, wanted: QueueRange) -> list[int]:
    """Where the blocks of a queue begin: one is not cut for an answer that is full."""
    firsts: list[int] = []
    after = wanted.start
    while after < wanted.end:
        headers = [("Queue-Id", str(wanted.queue)), ("From", str(after)), ("Max-Bytes", "1000000")]
        answer = link.ask(OP_READ_RANGE, "blocks", wanted.channel, headers)
        blocks = split_blocks(answer.payload)
        firsts += [block.first for block in blocks]
        after = blocks[-1].last + 1
    return firsts


def test_ranges_of_large_answers_end_where_blocks_do(broker: Broker, link_to: LinkTo) -> None:
    count = 30_000
    broker.push("spans", 1, [b"%06d" % number * 20 for number in range(count)])
    link = link_to(broker)
    wanted = whole(link, "spans/1")
    options = source()
    firsts, total = [], 0
    for data, start in read_answers(link, wanted, options):
        blocks = split_blocks(bytes(data[start:]))
        firsts.append(blocks[0].first)
        total += sum(block.count for block in blocks)
        assert len(data) - start <= 2 << 20
    assert total == count
    assert 3 <= len(firsts) <= 10, "about 2 MiB each"
    assert set(firsts) <= set(stored_blocks(link, wanted)), "no block was cut"
    assert sequences(link, wanted, options) == list(range(1, count + 1))
    assert link.is_quiet()


def test_a_broker_with_smaller_answers_is_asked_for_less(
    own_broker: Broker, link_to: LinkTo
) -> None:
    own_broker.create("small", 1)
    own_broker.stop()
    own_broker._settings = "[broker]\nmax_read_bytes = 300_000\n"
    own_broker.start()
    count = 20_000
    own_broker.push("small", 1, [b"%06d" % number * 20 for number in range(count)])
    link = link_to(own_broker)
    wanted = whole(link, "small/1")
    assert sequences(link, wanted, source()) == list(range(1, count + 1))
    sizes = [len(data) - start for data, start in read_answers(link, wanted, source())]
    assert max(sizes) <= 300_000
    assert len(sizes) <= 30


def test_an_answer_that_nobody_waits_for_any_more_is_dropped(
    broker: Broker, link_to: LinkTo
) -> None:
    count = 20_000
    broker.push("dropped", 1, [b"%06d" % number * 20 for number in range(count)])
    link = link_to(broker)
    wanted = whole(link, "dropped/1")
    reading = read_answers(link, wanted, source(prefetch=2))
    next(reading)
    del reading  # what it asked for ahead is still to come
    assert sequences(link, wanted, source()) == list(range(1, count + 1))
    assert not link._payloads
    assert not link._may_be_large
