"""Confirms written with little work are the bytes that they are when each is built."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmqp import Frame, MessageType
from tmqp_server.doors.native.answers import ConfirmWriter, confirm_frame
from tmqp_server.engine.effects import Confirm, ConfirmRun

names = st.sampled_from(["", "m", "é" * 127, "x" * 255, "id-1"])
channels = st.sampled_from(["c", "Ünïcode", "y" * 255])
ACK = Frame.build(MessageType.ACKNOWLEDGE, "c", 1, message_id="m", source="consumer")


@st.composite
def confirms(draw: st.DrawFn) -> Confirm:
    forwarded = draw(st.sampled_from([None, None, ACK]))
    return Confirm(
        1,
        draw(names),
        draw(channels),
        draw(st.sampled_from([0, 1, 300, 65_535])),
        draw(st.booleans()),
        draw(st.sampled_from(["", "busy", "two\nlines"])),
        draw(st.booleans()),
        "" if forwarded is None else draw(st.sampled_from(["", "consumer"])),
        forwarded,
    )


@given(st.lists(confirms(), max_size=8))
def test_one_writer_writes_what_each_would_be(effects: list[Confirm]) -> None:
    writer = ConfirmWriter()
    assert [writer.write(each) for each in effects] == [confirm_frame(each) for each in effects]


alike = st.lists(st.text("ab\x00\x7f\x80", min_size=3, max_size=3), max_size=8)


numbers = st.sampled_from([0, 1, 255, 300, 65_535])


@given(st.data(), st.one_of(st.lists(names, max_size=8), alike), channels, st.booleans())
def test_a_run_is_written_as_its_confirms(
    data: st.DataObject, ids: list[str], channel: str, several: bool
) -> None:
    queues = data.draw(st.lists(numbers, min_size=len(ids), max_size=len(ids))) if several else []
    run = ConfirmRun(1, ids, channel, queues[0] if queues else data.draw(numbers), queues)
    writer = ConfirmWriter()
    assert writer.write_run(run) == b"".join([confirm_frame(each) for each in run.confirms()])
    assert len(run.confirms()) == len(ids)
