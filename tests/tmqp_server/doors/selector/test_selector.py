"""Selectors: what they are of a message, what is refused, and SQLite as another reader of them."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.doors.letter import (
    BOOLEAN,
    DOUBLE,
    INT,
    Letter,
    Property,
)
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import OwnBodies
from tmqp_server.doors.selecting import MAX_FILTER_BYTES, FilterError
from tmqp_server.doors.selector import SelectorFilter, read_selector, selector_filter
from tmqp_server.doors.selector.grammar import MAX_DEPTH
from tmqp_server.doors.stomp.message import StompBodies, StompMessage
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message

SAID: Final[dict[str, Any]] = {
    "a": 1,
    "b": 2.5,
    "s": "it's",
    "t": "10%_x",
    "yes": True,
    "no": False,
    "_x$1": 7,
}


def value(text: str, said: dict[str, Any] | None = None) -> Any:
    """What a selector is of a message that says this."""
    return read_selector(text).of((SAID if said is None else said).get)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 1", True),
        ("a = 1.0", True),
        ("a <> 1", False),
        ("a < b AND b <= 2.5 AND b > 2 AND b >= 2.5", True),
        ("a = '1'", False),
        ("a <> '1'", True),
        ("s < 'z'", False),
        ("yes > no", False),
        ("s = 'it''s'", True),
        ("s <> ''", True),
        ("yes", True),
        ("no", False),
        ("yes = TRUE and No IS NULL", True),
        ("yes <> no", True),
        ("NOT no", True),
        ("not a", None),
        ("missing", None),
        ("missing = 1", None),
        ("missing <> 1", None),
        ("NOT missing = 1", None),
        ("missing = 1 OR yes", True),
        ("missing = 1 AND no", False),
        ("missing = 1 AND yes", None),
        ("missing = 1 OR no", None),
        ("missing IS NULL", True),
        ("a IS NULL", False),
        ("a IS NOT NULL", True),
        ("a BETWEEN 1 AND 2", True),
        ("a NOT BETWEEN 1 AND 2", False),
        ("a BETWEEN 2 AND 1", False),
        ("missing BETWEEN 1 AND 2", None),
        ("a BETWEEN missing AND 0", False),
        ("s IN ('x', 'it''s')", True),
        ("s NOT IN ('x')", True),
        ("a IN ('1')", False),
        ("missing IN ('x')", None),
        ("missing NOT IN ('x')", None),
        ("s LIKE 'it_s'", True),
        ("s LIKE 'i%'", True),
        ("s LIKE '%t%s'", True),
        ("s LIKE '%'", True),
        ("s LIKE ''", False),
        ("s LIKE 'it'", False),
        ("s LIKE '%it%it%'", False),
        ("s NOT LIKE 'x%'", True),
        ("t LIKE '10\\%\\_x' ESCAPE '\\'", True),
        ("t LIKE '10!%x' ESCAPE '!'", False),
        ("a LIKE '1'", False),
        ("missing LIKE '%'", None),
        ("1 / 2 = 0.5", True),
        ("1 / 0 = 1", None),
        ("-a + 3 * 2 = 5", True),
        ("(-a + 3) * 2 = 4", True),
        ("- - a = 1", True),
        ("+a = 1", True),
        ("a - 1 - 1 = -1", True),
        ("8 / 4 / 2 = 1", True),
        ("s + 1 = 1", None),
        ("-s = 1", None),
        ("-yes = 1", None),
        ("a = 0x1", True),
        ("010 = 8", True),
        ("1L = a", True),
        (".5 = 5e-1 AND 1. = 1E0", True),
        ("9 / 1e999 = 0", True),
        ("1e999 - 1e999 = 0", None),
        ("_x$1 = 7", True),
        ("yes OR no AND no", True),
        ("(yes OR no) AND no", False),
        ("NOT yes OR yes", True),
        ("NOT (yes OR yes)", False),
        ("NULL IS NULL", True),
        ("a\n=\t1", True),
    ],
)
def test_what_a_selector_is(text: str, wanted: bool | None) -> None:
    assert value(text) is wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n > 3", True),
        ("3 < n", True),
        ("n = 5.0", True),
        ("n <> 5", False),
        ("n BETWEEN 4 AND 6", True),
        ("n = '5'", True),
        ("n < '6'", False),
        ("x > 0.4", True),
        ("x = 0", False),
        ("colour > 3", False),
        ("colour <> 3", True),
        ("yes = TRUE", True),
        ("colour = TRUE", False),
        ("NOT yes", None),
        ("long = 1", False),
        ("missing > 3", None),
        ("n + 1 = 6", None),
    ],
)
def test_texts_that_are_compared_with_numbers_where_all_properties_are_texts(
    text: str, wanted: bool | None
) -> None:
    said = {"n": "5", "x": "0.5", "yes": "true", "colour": "red", "long": "0" * 99 + "1"}
    assert read_selector(text, converts=True).of(said.get) is wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "its end where a value"),
        ("a =", "its end where a value"),
        ("a = 1 b", "has b where its end"),
        ("(a = 1", "its end where )"),
        ("a = 'x", "has no end"),
        ("a ! 1", "has '!'"),
        ("a IS 1", "where NULL"),
        ("a NOT 1", "where BETWEEN, IN or LIKE"),
        ("a IN 'x'", "where ("),
        ("a IN (1)", "where a text"),
        ("a IN ('x'", "where )"),
        ("a BETWEEN 1 OR 2", "where AND"),
        ("a LIKE b", "where a text"),
        ("a LIKE 'x' ESCAPE 'ab'", "one character"),
        ("a LIKE 'x!' ESCAPE '!'", "incomplete escape"),
        ("1a = 1", "is followed by 'a'"),
        ("0x = 1", "is not a number"),
        ("08 = 1", "is not a number"),
        ("a = 1 AND", "its end where a value"),
        ("AND", "has AND where a value"),
        ("(" * (MAX_DEPTH + 1) + "a", "at most 50 deep"),
        ("NOT " * (MAX_DEPTH + 1) + "a", "at most 50 deep"),
        ("-" * (MAX_DEPTH + 1) + "a", "at most 50 deep"),
        ("a" * (MAX_FILTER_BYTES + 1), "at most 1024 bytes"),
    ],
)
def test_what_cannot_be_understood(text: str, reason: str) -> None:
    with pytest.raises(FilterError) as found:
        read_selector(text)
    assert reason in str(found.value)


@given(st.text(max_size=60))
def test_any_text_is_a_selector_or_is_refused(text: str) -> None:
    try:
        node = read_selector(text)
    except FilterError:
        return
    node.of(SAID.get)


# --- Another reader ------------------------------------------------------------------------------

_NUMBERS = st.integers(-3, 3)
_TEXTS = st.text("ab%_", max_size=4)


def _quoted(text: str) -> str:
    return f"'{text}'"


def _numeric(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(_NUMBERS.map(lambda n: f"({n})"), st.sampled_from(["n", "m", "nil"]))
    if not depth:
        return leaf
    inner = _numeric(depth - 1)
    return st.one_of(
        leaf, st.tuples(inner, st.sampled_from("+-*"), inner).map(" ".join).map("({})".format)
    )


def _logical(depth: int) -> st.SearchStrategy[str]:
    number, name = _numeric(1), st.sampled_from(["s", "gone"])
    operator = st.sampled_from(["=", "<>", "<", ">", "<=", ">="])
    leaf = st.one_of(
        st.tuples(number, operator, number).map(" ".join),
        st.tuples(name, st.sampled_from(["=", "<>"]), _TEXTS.map(_quoted)).map(" ".join),
        st.tuples(number, number, number).map(lambda p: f"{p[0]} BETWEEN {p[1]} AND {p[2]}"),
        st.tuples(name, _TEXTS, _TEXTS).map(lambda p: f"{p[0]} IN ('{p[1]}', '{p[2]}')"),
        st.tuples(name, _TEXTS).map(lambda p: f"{p[0]} LIKE '{p[1]}' ESCAPE '!'"),
        st.one_of(number, name).map("{} IS NULL".format),
    )
    if not depth:
        return leaf
    inner = _logical(depth - 1)
    return st.one_of(
        leaf,
        inner.map("NOT ({})".format),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
    )


DATABASE: Final = sqlite3.connect(":memory:", check_same_thread=False)
DATABASE.execute("PRAGMA case_sensitive_like = ON")


@given(_logical(3), _NUMBERS, _NUMBERS, _TEXTS)
def test_sqlite_finds_the_same(text: str, n: int, m: int, s: str) -> None:
    said = {"n": n, "m": m, "s": s}
    if len(text) > MAX_FILTER_BYTES:
        return
    columns = "? AS n, ? AS m, ? AS s, NULL AS nil, NULL AS gone"
    query = f"SELECT {text} FROM (SELECT {columns})"  # noqa: S608 - it is our own
    ((found,),) = DATABASE.execute(query, (n, m, s)).fetchall()
    wanted = None if found is None else bool(found)
    assert value(text, said) is wanted


# --- Of messages ---------------------------------------------------------------------------------


def _message(letter: Letter) -> Message:
    origin = Origin(0, "producer", None, None, "test")
    return Message("the-id", origin, "c", 0, 1, letter, 0, 1)


class _Owner(OwnBodies):
    """Its messages are letters."""

    name = "test"
    number = 200

    def letter(self, wire: object) -> Letter:
        assert isinstance(wire, Letter)
        return wire


@pytest.mark.parametrize(
    "text",
    [
        "JMSPriority = 7",
        "JMSTimestamp = 5 AND JMSExpiration = 6",
        "JMSMessageID = 'the-id'",
        "JMSCorrelationID = 'c' AND JMSType = 'k' AND JMSReplyTo = 'r'",
        "JMSXGroupID = 'g'",
        "JMSDeliveryMode = 'PERSISTENT'",
        "JMSOther IS NULL",
        "n = 3 AND x > 0.4 AND yes",
        "colour = 'red' AND Colour IS NULL",
        "size = '3' AND NOT size = 3",
    ],
)
def test_what_a_message_says(text: str) -> None:
    letter = Letter(b"")
    letter.priority, letter.timestamp_ms, letter.expires_ms = 7, 5, 6
    letter.correlation_id, letter.kind, letter.reply_to, letter.group_key = "c", "k", "r", "g"
    letter.headers = [("persistent", "true"), ("colour", "red"), ("colour", "blue"), ("size", "3")]
    letter.properties = [
        Property("n", INT, 3),
        Property("x", DOUBLE, 0.5),
        Property("yes", BOOLEAN, True),
    ]
    assert selector_filter(text, Letters([_Owner()])).accepts(_message(letter))
    empty = Letter(b"")
    accepted = selector_filter(text, Letters([_Owner()])).accepts(_message(empty))
    assert accepted == (text in ("JMSMessageID = 'the-id'", "JMSOther IS NULL"))


def test_equal_selectors_are_one_filter() -> None:
    one, two, other = (selector_filter(text, Letters()) for text in ("a", "a", "b"))
    assert isinstance(one, SelectorFilter)
    assert one.identity() == two.identity() != other.identity()


def test_a_message_of_stomp_is_read() -> None:
    wire = StompMessage("the-id", "c", 5, b"colour:red\nexpires:9\n", b"", 0)
    origin = Origin(0, "producer", None, None, "stomp")
    message = Message("the-id", origin, "c", 0, 1, wire, 0, 1)
    chosen = selector_filter("colour = 'red' AND JMSExpiration = 9", Letters([StompBodies()]))
    assert chosen.accepts(message)
