"""The load on our own broker where messages differ: in their queue, size, headers and priority."""

from __future__ import annotations

import struct
from typing import Final

from tmqp.bits import HAS_HEADER, HEAD_BYTES, LARGEST_SHORT, TIER_U16, TIER_U32, TIER_U64
from tmqp.constants import TYPE_ACKNOWLEDGE, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_bench.broker.counting import FixedSize, Pattern, Rotation
from tmqp_bench.broker.mixture import Mixture
from tmqp_bench.broker.tmqp_wire import CHANNEL, QUEUE, greet, join

__all__ = ["MixedTaker", "MixedTeller"]

_U16: Final = struct.Struct("<H")
#: How long a longer payload's length is, and its form.
_TIERS: Final = {TIER_U16: _U16, TIER_U32: struct.Struct("<I"), TIER_U64: struct.Struct("<Q")}


class MixedTeller:
    """A producer of such messages, into one queue after the other."""

    def __init__(self, port: int, name: str, mixture: Mixture, *, confirms: bool) -> None:
        self.socket = greet(port, name)
        self.confirms = confirms
        frames = [
            Frame.build(
                TYPE_QUEUE_MESSAGE,
                CHANNEL,
                QUEUE + number % mixture.queues,
                body,
                message_id=mixture.ids[number],
                source=name,
                headers=mixture.headers_of(number),
                high_priority=bool(mixture.high) and mixture.high[number],
                pending_acknowledge=confirms,
            )
            for number, body in enumerate(mixture.bodies)
        ]
        self._rotation = Rotation([frame.raw for frame in frames])
        confirm = Frame.build(TYPE_ACKNOWLEDGE, CHANNEL, QUEUE, message_id=mixture.ids[0])
        self._counter = FixedSize(len(confirm.raw))

    def messages(self, count: int) -> bytes:
        return self._rotation.take(count)

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class MixedTaker:
    """A consumer of what *producer* sends.  If the queue wants answers, it reads the head of each
    message and answers it; otherwise it counts messages by the names that are in each once, as the
    subscriber of NATS does."""

    def __init__(self, port: int, name: str, producer: str, *, acks: bool) -> None:
        self.socket = join(port, name)
        self._acks = acks
        self._counter = Pattern((producer + CHANNEL).encode())
        self._rest = b""
        mark = "0" * 32
        ack = Frame.build(TYPE_ACKNOWLEDGE, CHANNEL, QUEUE, message_id=mark, source=name).raw
        # All but the queue's number and the id are the same in each.
        self._head, self._middle = ack[: HEAD_BYTES - 3], ack[HEAD_BYTES - 1 : HEAD_BYTES]
        self._tail = ack[HEAD_BYTES + len(mark) :]

    def received(self, data: bytes) -> tuple[int, bytes]:
        if not self._acks:
            return self._counter.count(data), b""
        data = self._rest + data
        end = len(data)
        at = count = 0
        answers: list[bytes] = []
        head, middle, tail = self._head, self._middle, self._tail
        while end - at >= HEAD_BYTES:
            names = at + HEAD_BYTES
            payload = data[at + HEAD_BYTES - 1]
            if payload > LARGEST_SHORT:
                form = _TIERS[payload]
                if end - names < form.size:
                    break
                (payload,) = form.unpack_from(data, names)
                names += form.size
            stop = names + data[at + 2] + data[at + 3] + data[at + 4]
            if data[at + 1] & HAS_HEADER:
                if end - stop < _U16.size:
                    break
                stop += _U16.size + _U16.unpack_from(data, stop)[0]
            stop += payload
            if stop > end:
                break
            count += 1
            number, name = data[at + 5 : at + 7], data[names : names + data[at + 2]]
            answers += (head, number, middle, name, tail)
            at = stop
        self._rest = data[at:]
        return count, b"".join(answers)
