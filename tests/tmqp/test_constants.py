"""The check that the numbers and words of ``tmqp.constants`` are the protocol's.

The expectations are written as the protocol's description has them (ranges, sentences, tables), not
as the module does, so that a slip of the pen in either shows.
"""

from __future__ import annotations

import types
from enum import IntEnum, StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import constants
from tmqp.constants import (
    ACCEPTED_PREAMBLES,
    DOCUMENT_OPERATION_OF_WIRE,
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    STATUS_EVENT_WORDS,
    STATUS_HEADER_WORDS,
    STATUS_INFORMATION_WORDS,
    WIRE_OPERATION_OF_DOCUMENT,
    AcknowledgeDecision,
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
    DocumentOperation,
    EventName,
    HeaderName,
    MessageType,
    NackReason,
    NoContent,
    Operation,
    PullClear,
    PutBack,
    QueueStatus,
    ResultCode,
    RouteMethod,
    ServerCode,
    queue_status_from_word,
)

# The prefix of the plain constants, and the enumeration that is made of them.
PAIRS: list[tuple[str, type[IntEnum | StrEnum]]] = [
    ("TYPE_", MessageType),
    ("RESULT_", ResultCode),
    ("SERVER_", ServerCode),
    ("OP_", Operation),
    ("NACK_", NackReason),
    ("PUT_BACK_", PutBack),
    ("DECIDE_ACK_", AcknowledgeDecision),
]


def names(enumeration: type[IntEnum], *numbers: int) -> list[str]:
    return [enumeration(number).name for number in numbers]


def numbers(sentence: str) -> set[int]:
    """Read "1, 400-402" as numbers."""
    result: set[int] = set()
    for piece in sentence.split(","):
        low, _, high = piece.partition("-")
        result.update(range(int(low), int(high or low) + 1))
    return result


def test_all_lists_every_public_name() -> None:
    public = {
        name
        for name, value in vars(constants).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and name not in {"annotations", "Final", "IntEnum", "StrEnum"}
    }
    assert set(constants.__all__) == public
    assert len(constants.__all__) == len(public)


@pytest.mark.parametrize(("prefix", "enumeration"), PAIRS, ids=str)
def test_plain_constants_are_members(prefix: str, enumeration: type[IntEnum | StrEnum]) -> None:
    plain = {
        name.removeprefix(prefix): value
        for name, value in vars(constants).items()
        if name.startswith(prefix)
    }
    assert plain
    for name, value in plain.items():
        assert type(value) in {int, str}  # an exact type is what a compiler folds
        assert enumeration[name].value == value


def test_statuses_and_headers_have_plain_constants_too() -> None:
    for status in QueueStatus:
        assert getattr(constants, f"STATUS_{status.name}") == status.value
    plain = {
        name.removeprefix("HEADER_"): value
        for name, value in vars(constants).items()
        if name.startswith("HEADER_") and name != "HEADER_VALUE_YES"
    }
    for name, value in plain.items():
        assert HeaderName[name].value == value


@pytest.mark.parametrize(
    "enumeration",
    [value for value in vars(constants).values() if isinstance(value, type)],
    ids=lambda value: value.__name__,
)
def test_no_two_members_share_a_value(enumeration: type) -> None:
    if issubclass(enumeration, (IntEnum, StrEnum)) and enumeration not in {IntEnum, StrEnum}:
        assert len(enumeration.__members__) == len({member.value for member in enumeration})
        assert enumeration.__doc__


def test_bytes_of_the_wire() -> None:
    assert bytes.fromhex("54 4D 51 50 2F 32 2E 30") == PREAMBLE
    assert ACCEPTED_PREAMBLES == (b"TMQP/2.0", b"TMQ/1.01")
    assert bytes.fromhex("89 FF 00 00 00 00 00 00") == PING_BYTES
    assert bytes.fromhex("8A FF 00 00 00 00 00 00") == PONG_BYTES
    assert PING_BYTES[0] & 0x3F == MessageType.PING
    assert PONG_BYTES[0] & 0x3F == MessageType.PONG


def test_bounds_of_the_wire() -> None:
    assert constants.MAX_NAME_BYTES == 2**8 - 1
    assert constants.MAX_HEADER_BLOCK_BYTES == constants.MAX_QUEUE_ID == 2**16 - 1
    assert constants.MAX_TTL == 2**5 - 1
    assert constants.DEFAULT_TTL == 16


def test_message_types() -> None:
    assert set(MessageType) == {0x00, 0x08, 0x09, 0x0A, *range(0x10, 0x18)}  # F16
    assert names(MessageType, 0x13, 0x14, 0x15) == ["ACKNOWLEDGE", "RESPONSE", "PULL_REQUEST"]
    assert max(MessageType) < 2**6  # F2


def test_result_codes() -> None:
    f18 = (
        "0, 1, 204, 400-406, 408, 409, 410-417, 421-424, 426, 428, 429, 431, 451, 481, 482, "
        "500-508, 510, 511, 581"
    )
    assert {code.value for code in ResultCode} == numbers(f18)
    assert names(ResultCode, 0, 1, 204) == ["OK", "FAILED", "NO_CONTENT"]
    assert names(ResultCode, 400, 401, 404) == ["BAD_REQUEST", "UNAUTHORIZED", "NOT_FOUND"]
    assert names(ResultCode, 406, 408) == ["UNACCEPTABLE", "REQUEST_TIMEOUT"]
    assert names(ResultCode, 481, 482, 500) == [
        "DUPLICATE",
        "LIMIT_EXCEEDED",
        "INTERNAL_SERVER_ERROR",
    ]
    assert names(ResultCode, 503, 581) == ["BUSY", "SEND_ERROR"]
    assert max(ResultCode) < constants.FIRST_CUSTOM_RESULT


def test_server_codes() -> None:
    f19 = "101, 200, 202, 400, 401, 404, 406, 481, 482, 500, 503"
    assert {code.value for code in ServerCode} == numbers(f19)
    assert names(ServerCode, 101, 202, 503) == ["HELLO", "ACCEPTED", "BUSY"]
    for code in ServerCode:  # where both know a number, they say the same
        if code.value in set(ResultCode):
            assert ResultCode(code.value).name == code.name


F19_OPERATIONS = (
    "601 Join, 602 Leave, 603 CreateChannel, 604 RemoveChannel, 605 ChannelInformation, "
    "606 ChannelList, 607 ChannelConsumers, 610 CreateQueue, 611 RemoveQueue, 612 UpdateQueue, "
    "613 ClearMessages, 615 QueueInformation, 616 QueueList, 621 InstanceList, 631 ClientList, "
    "641 DecisionOverNode, 651 ListRouters, 652 CreateRouter, 653 RemoveRouter, 661 ListBindings, "
    "662 AddBinding, 663 RemoveBinding"
)


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def test_operations_of_the_wire() -> None:
    assert ", ".join(f"{op.value} {camel(op.name)}" for op in Operation) == F19_OPERATIONS


def test_operations_of_the_specification() -> None:
    assert {op.value for op in DocumentOperation} == numbers("101,103-105,110,111,201-205,301,302")
    # The order of the table of contradictions, row 1.
    pairs = dict(
        zip(
            sorted(numbers("101,103-105,110,111,201-205,301,302")),
            [603, 604, 606, 605, 601, 602, 610, 612, 611, 616, 615, 621, 631],
            strict=True,
        )
    )
    assert pairs == WIRE_OPERATION_OF_DOCUMENT
    for document, wire in WIRE_OPERATION_OF_DOCUMENT.items():
        assert DocumentOperation(document).name == Operation(wire).name
        assert type(document) is type(wire) is int


def test_the_two_numberings_do_not_overlap() -> None:
    assert not set(DocumentOperation) & set(Operation)
    assert {value: key for key, value in DOCUMENT_OPERATION_OF_WIRE.items()} == (
        WIRE_OPERATION_OF_DOCUMENT
    )
    without = {op.name for op in Operation if op.value not in DOCUMENT_OPERATION_OF_WIRE}
    assert without == {
        "CHANNEL_CONSUMERS",
        "CLEAR_MESSAGES",
        "DECISION_OVER_NODE",
        *("LIST_ROUTERS", "CREATE_ROUTER", "REMOVE_ROUTER"),
        *("LIST_BINDINGS", "ADD_BINDING", "REMOVE_BINDING"),
    }


def test_queue_statuses() -> None:
    f72 = "BROADCAST PUSH ROUND_ROBIN PULL CACHE PAUSED STOPPED"
    assert [status.name for status in QueueStatus] == f72.split()
    assert [status.value for status in QueueStatus] == list(range(7))
    assert STATUS_INFORMATION_WORDS == (
        "broadcast",
        "push",
        "roundrobin",
        "pull",
        "cache",
        "paused",
        "stopped",
    )
    assert tuple(camel(status.name) for status in QueueStatus) == STATUS_EVENT_WORDS


def test_status_words() -> None:
    f55 = (
        "broadcast, push, round / roundrobin / round-robin, pull, cache, pause / paused, "
        "stop / stoped / stopped"
    )
    expected = {
        word.strip(): QueueStatus(number)
        for number, words in enumerate(f55.split(","))
        for word in words.split("/")
    }
    assert expected == STATUS_HEADER_WORDS
    for word, status in expected.items():
        assert queue_status_from_word(word) is status
        assert queue_status_from_word(word.upper()) is status
        assert queue_status_from_word(word.title()) is status
    for words in (STATUS_INFORMATION_WORDS, STATUS_EVENT_WORDS):
        assert [queue_status_from_word(word) for word in words] == list(QueueStatus)


@given(st.text())
def test_other_status_words_are_unknown(word: str) -> None:
    if word.lower() not in STATUS_HEADER_WORDS:
        assert queue_status_from_word(word) is None
    assert queue_status_from_word(f"{word}!") is None


def test_header_names_are_written_as_the_wire_has_them() -> None:
    expected = (
        "Channel-Name Channel-Topic Queue-Id Queue-Status Queue-Tag Delivery-Handler "
        "Wait-For-Acknowledge Nack-Reason Request-Id Index Count Order Clear Info "
        "Priority-Messages Messages No-Content CC Route-Method Binding-Name "
        "Client-Id Client-Name Client-Type Client-Token"
    )
    assert [name.value for name in HeaderName] == expected.split()
    for name in HeaderName:
        assert name.name == name.value.replace("-", "_").upper()


def test_words_of_headers() -> None:
    assert [reason.value for reason in NackReason] == ["none", "error", "no-consumers", "timeout"]
    assert [word.value for word in NoContent] == (
        ["Empty", "Unacceptable", "Unauthorized", "No-Channel", "No-Queue", "Id-Required", "End"]
    )
    assert {word.value.lower() for word in PullClear} == (
        {"none", "all", "high-priority", "default-priority"}
    )
    assert set(constants.FORBIDDEN_NAME_CHARACTERS) == {"@", " ", ";", "*"}  # F47
    assert (constants.TARGET_NAME_PREFIX, constants.TARGET_TYPE_PREFIX) == ("@name:", "@type:")


def test_event_names() -> None:
    of_the_specification = (
        "ClientConnected ClientDisconnected ClientJoined ClientLeft ChannelCreated ChannelRemoved "
        "QueueCreated QueueUpdated QueueRemoved MessageProduced"
    )
    assert [name.value for name in EventName] == (
        [*of_the_specification.split(), "NodeConnected", "NodeDisconnected"]  # F131
    )
    for name in EventName:
        assert camel(name.name) == name.value


@pytest.mark.parametrize(
    ("enumeration", "words"),
    [
        (RouteMethod, "DISTRIBUTE ROUND_ROBIN ONLY_FIRST"),  # F120; the specification's order lies
        (BindingType, "DIRECT QUEUE HTTP TAG"),
        (BindingInteraction, "NONE ACKNOWLEDGE RESPONSE"),
        (BindingHttpMethod, "GET POST PUT PATCH DELETE"),
        (PutBack, "NO START END"),  # F103
        (AcknowledgeDecision, "NONE ALWAYS IF_SAVED NEGATIVE"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_numbers_counted_from_zero(enumeration: type[IntEnum], words: str) -> None:
    assert [(member.name, member.value) for member in enumeration] == [
        (word, number) for number, word in enumerate(words.split())
    ]
