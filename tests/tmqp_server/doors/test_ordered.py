"""Answers leave in the order of their requests, whenever they are filled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.doors.ordered import OrderedAnswers, Slot


def test_only_the_ready_prefix_goes_out() -> None:
    answers = OrderedAnswers()
    first, second, third = answers.open(), answers.open(), answers.open()
    answers.finish(second, b"2")
    answers.add(third, b"3")
    assert (answers.take(), answers.waiting_bytes, len(answers)) == (b"", 2, 3)
    answers.add(first, b"1")
    assert (answers.ready_bytes, answers.take()) == (1, b"1")
    answers.finish(first, b"!")
    assert answers.take() == b"!23"
    assert (answers.waiting_bytes, answers.ready_bytes, len(answers)) == (0, 0, 1)
    answers.add(third, b"...")
    assert answers.take() == b"..."
    answers.finish(third)
    assert len(answers) == 0


def test_what_is_ready_survives_a_clear() -> None:
    answers = OrderedAnswers()
    first, second = answers.open(), answers.open()
    answers.add(first, b"1")
    answers.finish(second, b"2")
    answers.clear()
    assert (answers.take(), answers.waiting_bytes, len(answers)) == (b"1", 0, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.binary(max_size=3))))
def test_any_order_of_filling_gives_the_answers_in_order(
    steps: list[tuple[int, bool, bytes]],
) -> None:
    answers = OrderedAnswers()
    slots: list[Slot] = [answers.open() for _ in range(6)]
    wanted = [b""] * 6
    out = b""
    for number, finishes, data in steps:
        if slots[number].finished:
            continue
        wanted[number] += data
        if finishes:
            answers.finish(slots[number], data)
        else:
            answers.add(slots[number], data)
        out += answers.take()
        assert b"".join(wanted).startswith(out)
    for slot in slots:
        if not slot.finished:
            answers.finish(slot)
    assert out + answers.take() == b"".join(wanted)
