"""The errors: what they say, what they carry, and that they survive the way to another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from tmqp import LocalProtocolError, TmqpError
from tmqp_client import (
    AlreadyAcknowledged,
    AlreadyConsuming,
    AlreadyListening,
    BatchFailed,
    BatchFailure,
    BatchReport,
    ClientClosed,
    ClientError,
    ConnectFailed,
    ConnectionLost,
    ConnectRefused,
    MalformedParts,
    NegativeAcknowledge,
    OperationError,
    OperationFailed,
    OperationTimeout,
    OutOfRange,
    PullRefused,
    Refuse,
    Unreadable,
    WouldBlock,
    errors,
)
from tmqp_client.errors import code_words

FAILED = OperationFailed("join channel 'orders'", "id1", 404)
ERRORS: dict[str, ClientError] = {
    "message 'm1' was answered": AlreadyAcknowledged("message 'm1' was answered"),
    "queue 2 of 'orders' has a consumer on this client already": AlreadyConsuming("orders", 2),
    "this client listens": AlreadyListening("this client listens"),
    "channel 'orders' has a consumer on this client already": AlreadyConsuming("orders", None),
    "1 of 3 messages were not confirmed; the first: join channel 'orders': the server answered"
    " 404 not found: there is no such channel": BatchFailed(
        BatchReport(3, 2, 1, (BatchFailure(0, "id1", FAILED),))
    ),
    "0 of 0 messages were not confirmed": BatchFailed(BatchReport(0, 0, 0, ())),
    "the client was closed": ClientClosed("the client was closed"),
    "cannot connect to tmq://h:1: no": ConnectFailed("tmq://h:1", "no"),
    "cannot connect to tmq://h:1: the server refused: 503 busy": ConnectRefused("tmq://h:1", 503),
    "connection lost: gone": ConnectionLost("violation", "gone", "utf8"),
    "push to 'o'/1: negative acknowledgement, reason 'none'": NegativeAcknowledge(
        "push to 'o'/1", "id", "none"
    ),
    "ping: something": OperationError("ping", "id", "something"),
    "join channel 'orders': the server answered 404 not found: there is no such channel": FAILED,
    "join channel 'x': the server answered 1234": OperationFailed("join channel 'x'", "id", 1234),
    "read 'o': the server answered 416 requested range not satisfiable": OutOfRange(
        "read 'o'", "id", 416, b'{"Channel":"o"}'
    ),
    "pull from 'o'/1: the server refused the pull: No-Queue (there is no such queue)": PullRefused(
        "pull from 'o'/1", "id", "No-Queue"
    ),
    "the parts add up": MalformedParts("the parts add up"),
    "too late": Refuse("too late", 410),
    "no pizza": Unreadable("no pizza"),
    "the send buffer is full": WouldBlock("the send buffer is full"),
    "ping: no answer within 1.5 s": OperationTimeout("ping", "id", 1.5),
    "ping: no answer within 2 s; why": OperationTimeout("ping", "id", 2.0, "; why"),
}


def test_nobody_made_the_codes_that_never_travel() -> None:
    """F18: 581 where nothing could be sent, 408 where time ran out; the client makes them."""
    lost = ("cannot connect to tmq://h:1: no", "connection lost: gone", "the client was closed")
    assert [getattr(ERRORS[words], "code", 0) for words in lost] == [581, 581, 581]
    assert [code_words(getattr(ERRORS[words], "code", 0)) for words in lost[:1]] == [
        "581 send error"
    ]
    late = ERRORS["ping: no answer within 1.5 s"]
    assert isinstance(late, OperationTimeout)
    assert late.code == 408
    refused = ERRORS["cannot connect to tmq://h:1: the server refused: 503 busy"]
    assert isinstance(refused, ConnectRefused)
    assert refused.code == 503
    assert there_and_back(ERRORS["connection lost: gone"]).code == 581  # type: ignore[attr-defined]


def there_and_back(error: ClientError) -> object:
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes


@pytest.mark.parametrize("words", ERRORS)
def test_an_error_says_what_happened_here_and_elsewhere(words: str) -> None:
    error = ERRORS[words]
    assert str(error) == words
    assert isinstance(error, TmqpError)
    for again in (there_and_back(error), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == words
        left = {name: str(value) for name, value in vars(again).items()}
        assert left == {name: str(value) for name, value in vars(error).items()}


def test_every_kind_is_covered_and_none_is_a_wrong_argument() -> None:
    kinds = {getattr(errors, name) for name in errors.__all__} - {errors.code_words, ClientError}
    assert {type(error) for error in ERRORS.values()} == kinds
    assert not any(issubclass(kind, LocalProtocolError) for kind in kinds)
