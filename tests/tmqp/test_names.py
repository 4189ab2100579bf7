"""The characters that no name may have."""

from __future__ import annotations

import unicodedata

import pytest

from tmqp.names import fault_of_name


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_c1_controls_were_allowed_in_names(code: int) -> None:
    assert fault_of_name(f"a{chr(code)}b") == f"a control character (U+{code:04X})"


def test_every_mark_that_turns_text_is_refused() -> None:
    """All that Unicode gives the property Bidi_Control, and both line separators."""
    kinds = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    marks = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in kinds]
    for mark in [*marks, "\u200e", "\u200f", "\u061c"]:
        fault = f"a mark that turns the direction of text (U+{ord(mark):04X})"
        assert fault_of_name(mark) == fault
    for mark in "\u2028\u2029":
        assert fault_of_name(f"x{mark}") == f"a line separator (U+{ord(mark):04X})"


@pytest.mark.parametrize(
    "name", ["", "orders", "a b", "ünï-日本", "שלום", "a\u200db", "\xa0", "🙂"]
)
def test_other_names_are_fine(name: str) -> None:
    assert fault_of_name(name) == ""
