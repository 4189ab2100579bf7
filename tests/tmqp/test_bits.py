"""The check that the masks of a frame's head stand in one module, and are the protocol's."""

from __future__ import annotations

import itertools
import tokenize
from pathlib import Path

import pytest

from tests.project import ROOT, source_files
from tmqp import bits
from tmqp.frames import Frame

#: Written by other hands on purpose: what the codec is compared with.
INDEPENDENT = ("src/tmqp/testing/reference.py", "src/tmqp/testing/generate.py")
#: Cases lie on purpose; other protocols have heads of their own.
NOT_ABOUT_HEADS = ("src/tmqp/testing/conformance/", "src/tmqp_wires/", "src/tmqp_nsq/")
HOME = "src/tmqp/bits.py"
MASKS = frozenset({"0x80", "0x40", "0x20", "0x1F", "0x3F", "0x7F"})
WORDS = (*MASKS, *bits.__all__)


def masks_in(path: Path) -> list[str]:
    """The lines of a module that spell a mask, or define a name that stands in ``tmqp.bits``."""
    found = []
    with tokenize.open(path) as file:
        lines = file.readlines()
    if not any(word in line for line in lines for word in WORDS):
        return []  # quicker than its tokens, and nearly always so
    tokens = list(tokenize.generate_tokens(iter(lines).__next__))
    for token, following in itertools.pairwise(tokens):
        name = token.string.removeprefix("_")
        defined = token.start[1] == 0 and following.string in {"=", ":"} and name in bits.__all__
        if defined or (token.type == tokenize.NUMBER and token.string in MASKS):
            found.append(f"line {token.start[0]}: {token.string}")
    return found


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_masks_of_the_head_stand_in_one_module(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if name in INDEPENDENT or name == "src/tmqp/models/_json.py":
        pytest.skip("written by other hands, or of JSON's characters")
    if name.startswith(NOT_ABOUT_HEADS):
        pytest.skip("not about TMQP's heads, or wrong on purpose")
    assert bool(masks_in(path)) == (name == HOME)


def test_a_second_definition_is_seen(tmp_path: Path) -> None:
    module = tmp_path / "second.py"
    module.write_text("_HAS_HEADER: Final = 32\nflags = raw[1] & 0x40\n")
    assert masks_in(module) == ["line 1: _HAS_HEADER", "line 2: 0x40"]


def test_the_bits_are_those_of_a_frame() -> None:
    plain = Frame.build(0x11, "c", 1, b"", message_id="a", ttl=1).raw
    built = Frame.build(
        0x11,
        "c",
        1,
        bytes(300),
        message_id="a",
        ttl=1,
        first_acquirer=True,
        high_priority=True,
        pending_response=True,
        pending_acknowledge=True,
        headers=[("k", "v")],
    ).raw
    assert plain[0] == plain[0] & bits.TYPE_BITS == 0x11
    assert plain[1] == plain[1] & bits.TTL_BITS == 1
    assert built[0] - plain[0] == bits.FIRST_ACQUIRER | bits.HIGH_PRIORITY
    assert built[1] - plain[1] == (
        bits.PENDING_RESPONSE | bits.PENDING_ACKNOWLEDGE | bits.HAS_HEADER
    )
    assert built[7] == bits.TIER_U16
    assert plain[bits.HEAD_BYTES : bits.HEAD_BYTES + 1] == b"a"
    assert bits.MARKED_TYPE_BITS == bits.TYPE_BITS | bits.HIGH_PRIORITY
    assert bits.LARGEST_SHORT + 1 == bits.TIER_U16
    assert (bits.TIER_U32, bits.TIER_U64) == (bits.TIER_U16 + 1, bits.TIER_U16 + 2)
    assert bits.MAX_U16 == 2**16 - 1
