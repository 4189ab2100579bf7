"""The checks of ``tmqp.errors``: whose fault, which rule, which answer."""

from __future__ import annotations

import copy
import pickle

import pytest

from tmqp import AbuseError, LocalProtocolError, RemoteProtocolError, ResultCode, TmqpError


def test_the_tree_says_whose_fault_it_was() -> None:
    assert issubclass(LocalProtocolError, TmqpError)
    assert issubclass(RemoteProtocolError, TmqpError)
    assert issubclass(AbuseError, RemoteProtocolError)
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
    assert not issubclass(TmqpError, ValueError | OSError)


def test_a_peers_fault_names_the_rule_and_the_answer() -> None:
    error = RemoteProtocolError("utf8", "not UTF-8")
    assert (error.rule, error.message, error.code) == ("utf8", "not UTF-8", ResultCode.BAD_REQUEST)
    assert str(error) == "not UTF-8"
    abuse = AbuseError("payload-limit", "too large")
    assert abuse.code == ResultCode.LIMIT_EXCEEDED
    assert repr(abuse) == "AbuseError('payload-limit', 'too large', 482)"
    assert AbuseError("rule", "text", 408).code == 408


@pytest.mark.parametrize(
    "error", [RemoteProtocolError("a", "b", 401), AbuseError("a", "b"), LocalProtocolError("b")]
)
def test_an_error_survives_copying_and_pickling(error: TmqpError) -> None:
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert type(again) is type(error)
        assert repr(again) == repr(error)
        assert str(again) == str(error)
