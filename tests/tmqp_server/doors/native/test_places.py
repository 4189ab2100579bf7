"""Lists of places are read as their models read them, whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp.constants import TYPE_SERVER
from tmqp.frames import Frame
from tmqp.models import GroupOffsets, KnownOffsets, ModelError, parse_list
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.native.places import group_places, known_places

NAMES = ["Channel", "channel", "CHANNEL", "Queue", "queue", "Sequence", "sEQUENCE", "Latest"]
NAMES += ["latest", "Incarnation", "incarnation", "Other"]
VALUES: list[Any] = ["a", "", "\u00fc", 0, 7, 65_535, 65_536, -1, 2**63 - 1, 2**63, 1.5, True, None]
VALUES += [[], {}]
ITEMS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES)) | st.sampled_from(VALUES)
USUAL = st.builds(
    lambda channel, queue, sequence: {"Channel": channel, "Queue": queue, "Sequence": sequence},
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 65_535),
    st.integers(0, 2**63 - 1),
)


def frame(payload: bytes) -> Frame:
    return Frame.build(TYPE_SERVER, "", 718, payload)


def told(model: type[Any], payload: bytes) -> object:
    """What the model reads, or says."""
    try:
        items = parse_list(model, payload)
    except ModelError as error:
        return str(error)
    at = "sequence" if model is GroupOffsets else "latest"
    return [(each.channel, each.queue, getattr(each, at), each.incarnation) for each in items]


def read(model: type[Any], payload: bytes) -> object:
    try:
        return (group_places if model is GroupOffsets else known_places)(frame(payload))
    except BadRequestError as error:
        return str(error)


@pytest.mark.parametrize("model", [GroupOffsets, KnownOffsets])
@given(items=st.lists(ITEMS | USUAL, max_size=4))
def test_a_list_is_read_as_the_model_reads_it(model: type[Any], items: list[Any]) -> None:
    payload = json.dumps(items).encode()
    assert read(model, payload) == told(model, payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[1]",
        b"[",
        b'[{"Channel":"\\ud800","Queue":1}]',
        b'[{"Channel":"a","Queue":1},{"Channel":"a","Queue":1,"Queue":2}]',
        b'[{"Channel":"' + b"x" * 65_536 + b'","Queue":1}]',
        b'[{"Channel":"a","Queue":1,"More":{"Queue":3}}]',
        b'\xef\xbb\xbf[{"Channel":"a","Queue":1}]',
    ],
)
@pytest.mark.parametrize("model", [GroupOffsets, KnownOffsets])
def test_what_no_generator_makes(model: type[Any], payload: bytes) -> None:
    assert read(model, payload) == told(model, payload)
