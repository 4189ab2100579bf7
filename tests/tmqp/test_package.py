"""The checks of ``tmqp`` itself and ``tmqp._compat``: the face, and which build is loaded."""

from __future__ import annotations

import tmqp
from tmqp import codec, connection, frames
from tmqp._compat import i64, mypyc_attr


def test_the_face_offers_what_it_lists() -> None:
    assert len(tmqp.__all__) == len(set(tmqp.__all__))
    for name in tmqp.__all__:
        assert getattr(tmqp, name) is not None
    assert tmqp.Connection is connection.Connection
    assert tmqp.FrameDecoder is codec.FrameDecoder
    assert tmqp.Frame is frames.Frame


def test_the_build_is_all_compiled_or_all_interpreted() -> None:
    """One unit: a mixture would cross the border with every call."""
    files = [str(module.__file__) for module in (codec, connection, frames)]
    assert [not file.endswith(".py") for file in files] == [tmqp.compiled] * 3


def test_the_compilers_words_mean_nothing_to_the_interpreter() -> None:
    decorate = mypyc_attr("anything", acyclic=True)
    assert decorate(int) is int
    assert i64(7) == 7
