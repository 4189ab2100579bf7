"""What is known of cells: each complaint is made about an answer that deserves it."""

from __future__ import annotations

import pytest

from tmqp.constants import (
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
    TYPE_SERVER,
)
from tmqp.extensions import (
    CELL_COUNTER,
    CHANGE_SET_TIMEOUT,
    CHANGE_SUBTRACT,
    HEADER_CELL_KIND,
    HEADER_TIMEOUT,
    OP_CHANGE_CELL,
    OP_DESCRIBE_CELL,
    OP_DROP_CELL,
    OP_MAKE_COUNTER,
    OP_PUT_VALUE,
    OP_READ_CELL,
)
from tmqp.frames import Frame
from tmqp.models import CellInformation
from tmqp_sim.cell_books import CellBooks, CellRequest
from tmqp_sim.world import Violation

_KEY = b"50%20"


def _request(operation: int, amount: int = 0, ttl_s: float = 10.0, change: str = "") -> CellRequest:
    request = CellRequest(operation, _KEY)
    request.amount, request.ttl_s, request.change = amount, ttl_s, change
    return request


def _told(payload: str, left_ms: int) -> Frame:
    headers = [(HEADER_CELL_KIND, CELL_COUNTER), (HEADER_TIMEOUT, str(left_ms))]
    return Frame.build(TYPE_SERVER, "", 0, payload.encode(), headers=headers)


def _books(count: int = 7) -> CellBooks:
    """A counter that was made between 1 and 2, for ten seconds."""
    books = CellBooks("k")
    books.answered(_request(OP_MAKE_COUNTER, count), RESULT_OK, None, 1.0, 2.0)
    return books


def _information(count: int = 7, left_ms: int = 8_500, writes: int = 1) -> CellInformation:
    return CellInformation(
        key="50%2520", kind=CELL_COUNTER, number=1, count=count, timeout_ms=left_ms, writes=writes
    )


def test_right_answers_are_fine() -> None:
    books = _books()
    books.answered(_request(OP_MAKE_COUNTER), RESULT_DUPLICATE, None, 2.0, 3.0)
    books.answered(_request(OP_PUT_VALUE), RESULT_UNACCEPTABLE, None, 2.0, 3.0)
    books.answered(_request(OP_READ_CELL), RESULT_OK, _told("7", 9_000), 2.0, 3.0)
    less = _request(OP_CHANGE_CELL, 7, change=CHANGE_SUBTRACT)
    books.answered(less, RESULT_OK, _told("0", 8_000), 3.0, 4.0)
    books.answered(less, RESULT_UNACCEPTABLE, None, 3.0, 4.0)
    books.listed([_information(0, 7_500)], 3.0, 4.0)
    books.answered(_request(OP_DROP_CELL), RESULT_OK, None, 4.0, 5.0)
    books.answered(_request(OP_READ_CELL), RESULT_NOT_FOUND, None, 4.0, 5.0)
    books.listed([], 5.0, 6.0)


@pytest.mark.parametrize(
    ("operation", "code", "answer"),
    [
        (OP_READ_CELL, RESULT_NOT_FOUND, None),
        (OP_READ_CELL, RESULT_OK, _told("8", 8_500)),
        (OP_READ_CELL, RESULT_OK, _told("7", 6_000)),
        (OP_READ_CELL, RESULT_OK, _told("7", 11_000)),
        (OP_MAKE_COUNTER, RESULT_OK, None),
        (OP_PUT_VALUE, RESULT_OK, None),
        (OP_DROP_CELL, RESULT_NOT_FOUND, None),
    ],
    ids=["gone", "changed", "too short", "too long", "made again", "replaced", "not dropped"],
)
def test_a_wrong_answer_is_noticed(operation: int, code: int, answer: Frame | None) -> None:
    with pytest.raises(Violation):
        _books().answered(_request(operation), code, answer, 3.0, 4.0)


def test_wrong_figures_are_noticed() -> None:
    described = Frame.build(TYPE_SERVER, "", 0, _information(writes=2).to_json())
    with pytest.raises(Violation, match="answered with"):
        _books().answered(_request(OP_DESCRIBE_CELL), RESULT_OK, described, 3.0, 4.0)


@pytest.mark.parametrize(
    "found",
    [[], [_information(), _information()], [_information(8)]],
    ids=["missing", "twice", "changed"],
)
def test_a_wrong_list_is_noticed(found: list[CellInformation]) -> None:
    with pytest.raises(Violation):
        _books().listed(found, 3.0, 4.0)


def test_a_cell_that_outlives_its_time_is_noticed() -> None:
    books = _books()
    books.answered(_request(OP_READ_CELL), RESULT_OK, _told("7", 0), 11.5, 11.6)
    assert books.doubtful == {_KEY}
    books = _books()
    with pytest.raises(Violation):
        books.answered(_request(OP_READ_CELL), RESULT_OK, _told("7", 0), 12.5, 12.6)


def test_what_may_have_ended_is_dropped_before_it_is_used_again() -> None:
    books = _books()
    sooner = _request(OP_CHANGE_CELL, ttl_s=0.5, change=CHANGE_SET_TIMEOUT)
    books.answered(sooner, RESULT_OK, _told("7", 0), 3.0, 4.0)
    assert books.doubtful == {_KEY}
    books.listed([_information()], 4.0, 4.1)
    books.answered(_request(OP_DROP_CELL), RESULT_NOT_FOUND, None, 4.1, 4.2)
    assert not books.doubtful
    books.answered(_request(OP_READ_CELL), RESULT_NOT_FOUND, None, 4.2, 4.3)
