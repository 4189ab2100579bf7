"""Options: what each may be, what is said of mistakes, and that the documentation has them all."""

from __future__ import annotations

import pickle
import re
from dataclasses import fields
from typing import Any

import pytest

from tests.project import ROOT
from tmqp_spark.errors import InvalidOption
from tmqp_spark.options import (
    ConnectionOptions,
    SinkOptions,
    SourceOptions,
    check_names,
    option_names,
    parse_duration_ms,
    parse_size,
    read_options,
)
from tmqp_spark.schema import COLUMNS, Projection


@pytest.mark.parametrize(
    ("text", "ms"), [("250", 250), ("15s", 15_000), ("1.5 m", 90_000), ("1H", 3_600_000)]
)
def test_a_duration_has_a_unit_or_is_in_milliseconds(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "size"), [("100", 100), ("64m", 64 << 20), ("2 KiB", 2048), ("1G", 1 << 30)]
)
def test_a_size_has_a_unit_or_is_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5 years", "m", "1e3"])
def test_what_is_no_duration_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as"):
        parse_duration_ms(text)


@pytest.mark.parametrize("text", ["", "0", "64x", "-5"])
def test_what_is_no_size_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="a positive size"):
        parse_size(text)


def test_names_count_whatever_their_case() -> None:
    found = read_options(SourceOptions, {"STARTINGOFFSETS": "latest", "maxbytespertrigger": "2k"})
    assert found.starting_offsets == "latest"
    assert found.max_bytes == 2048
    assert found.batch_bytes == 2 << 20


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("startOffsets", "did you mean startingOffsets"),
        ("kafka.bootstrap.servers", "did you mean url"),
        ("topic", "no option 'topic'"),
        ("qwxyz", "known: url, clientId"),
    ],
)
def test_an_unknown_option_names_the_nearest(name: str, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        check_names([name], "source", ConnectionOptions, SourceOptions)


@pytest.mark.parametrize(
    ("group", "name", "value", "text"),
    [
        (ConnectionOptions, "url", "http://x", "url must be an address such as"),
        (ConnectionOptions, "retries", "many", "retries must be a whole number from 0 on, got"),
        (ConnectionOptions, "tls", "maybe", "tls must be true or false"),
        (SourceOptions, "mode", "tip", "mode must be tap or drain, got 'tip'"),
        (SourceOptions, "subscribePattern", "(", "a regular expression for channel/queue"),
        (SourceOptions, "batchBytes", "none", "a positive size"),
        (SourceOptions, "batchBytes", "2g", "at most 1g"),
        (SourceOptions, "prefetch", "7", "a whole number from 0 to 6"),
        (SinkOptions, "queue", "70000", "a queue id"),
    ],
)
def test_a_value_that_cannot_be_is_said_so(group: Any, name: str, value: str, text: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(text)):
        read_options(group, {name: value})


def test_the_address_must_be_given() -> None:
    with pytest.raises(InvalidOption, match="url is missing"):
        read_options(ConnectionOptions, {})


def test_a_token_is_not_shown_and_options_travel() -> None:
    found = read_options(ConnectionOptions, {"url": "tmq://b", "token": "secret"})
    assert "secret" not in repr(found)
    copy = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own
    assert copy == found
    assert hash(copy) == hash(found)


def test_the_manual_has_each_option_with_its_default_and_no_other() -> None:
    for title, group in (
        ("Connection", ConnectionOptions),
        ("Source", SourceOptions),
        ("Sink", SinkOptions),
    ):
        rows = _rows(f"### {title}")
        assert [name for name, _, _ in rows] == option_names(group), title
        given = {"url": "tmq://b"} if group is ConnectionOptions else {}
        for (name, shown, _), each in zip(rows, fields(group), strict=True):
            if "`" in each.metadata["shown"]:
                assert shown == each.metadata["shown"], "it depends on what else is given"
            elif shown:
                read = read_options(group, {**given, name: shown.strip("`")})
                assert getattr(read, each.name) == each.default, name
            else:
                assert each.default in (None, ""), f"{name} has a default"


def test_the_manual_has_each_column_and_which_the_broker_sends_alone() -> None:
    rows = _rows("## Columns")
    assert [(name, null) for name, _, null in rows] == [
        (column.name, "yes" if column.nullable else "no") for column in COLUMNS
    ]
    for (_, types, _), column in zip(rows, COLUMNS, strict=True):
        assert types.strip("`") == " or ".join(column.types)
    alone = [
        column.name
        for column in COLUMNS
        if Projection([(column.name, column.types[0], True)]).at_broker is not None
    ]
    indexed = [
        column.name
        for column in COLUMNS
        if not Projection([(column.name, column.types[0], True)]).bodies
    ]
    (told,) = re.findall(r"in the broker's indexes\n\((.*?)\)", _section("## Columns"), re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", told)) == sorted(indexed)
    (told,) = re.findall(
        r"has no columns except (.*?), `prune", _section("### Less over the network"), re.DOTALL
    )
    assert sorted(re.findall(r"`(\w+)`", told)) == sorted(alone)


def _section(title: str) -> str:
    """The text of a section of the manual, up to the next one."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    return re.split(r"\n#+ ", text.split(f"\n{title}\n")[1])[0]


def _rows(title: str) -> list[tuple[str, str, str]]:
    """The first three cells of each row of a section's tables; the first without its quotes."""
    cells = [line.split("|") for line in _section(title).splitlines() if line.startswith("| `")]
    return [(row[1].strip().strip("`"), row[2].strip(), row[3].strip()) for row in cells]
