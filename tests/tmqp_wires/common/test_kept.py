"""What is kept of simple messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.common.kept import read, stored_head


@given(
    st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=50)
)
def test_what_is_kept_is_read_again(name: bytes, source: bytes, place: bytes, body: bytes) -> None:
    found = read(stored_head(name, source, place) + body)
    assert (found.message_id, found.source, found.place, found.body) == (name, source, place, body)


@pytest.mark.parametrize("data", [b"", b"\x02" + b"\0" * 6, b"\x01\xff\xff" + b"\0" * 4])
def test_what_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="kept message"):
        read(data)


def test_a_head_has_room_for_no_more_than_its_sizes_say() -> None:
    with pytest.raises(ValueError, match="65,535"):
        stored_head(b"x" * 65_536, b"", b"")
