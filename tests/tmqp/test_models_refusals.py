"""The checks of what ``tmqp.models`` refuses: what errors say, every bound, hostile bodies.

Every bound is tested from both sides: at the bound a body is read, one beyond it is refused.
Hostile bodies are those of case A10 (nesting, long numbers, doubled names, NaN, sheer size) and
random ones; each is read or refused with ``ModelError``, in bounded time.
"""

from __future__ import annotations

import json
import math
import pickle
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine import machine_s
from tmqp.constants import NackReason, QueueStatus, ResultCode
from tmqp.errors import TmqpError
from tmqp.models import (
    MAX_BODY_BYTES,
    MAX_LIST_BYTES,
    MAX_NESTING_DEPTH,
    MAX_NUMBER_DIGITS,
    MAX_PROPERTIES,
    MAX_TEXT_CHARACTERS,
    MIN_BYTES_PER_CONTAINER,
    MIN_BYTES_PER_VALUE,
    BindingInformation,
    ChannelEvent,
    ChannelInformation,
    ChannelOptions,
    ClientEvent,
    ClientInformation,
    MessageEvent,
    Model,
    ModelError,
    NodeInformation,
    QueueEvent,
    QueueInformation,
    QueueOptions,
    RouterInformation,
    parse_list,
    properties_of,
)
from tmqp.models._json import JsonRefusedError, load

MIB: Final = 1_048_576


def refusal(model: type[Model], body: bytes | str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        model.from_json(body)
    with pytest.raises(ModelError) as values_alone:
        model.values_in(body)
    assert str(values_alone.value) == str(caught.value)
    return caught.value


def read_or_refused(read: Callable[[], object]) -> object:
    """Return what *read* returns, or its ModelError; anything else goes through."""
    try:
        return read()
    except ModelError as error:
        return error


# --- What an error says --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "body", "sentence"),
    [
        (QueueOptions, '{"Status":"Pull"}', "Status must be an integer 0..6, got 'Pull'"),
        (QueueOptions, '{"Status":7}', "Status must be an integer 0..6, got 7"),
        (QueueOptions, '{"Status":true}', "Status must be an integer 0..6, got true"),
        (QueueOptions, '{"Status":1.0}', "Status must be an integer 0..6, got 1.0"),
        (QueueOptions, '{"Status":[]}', "Status must be an integer 0..6, got an array of 0"),
        (
            QueueOptions,
            '{"RequestAcknowledge":"yes"}',
            "RequestAcknowledge must be true or false, got 'yes'",
        ),
        (QueueOptions, '{"UseMessageId":1}', "UseMessageId must be true or false, got 1"),
        (
            QueueOptions,
            '{"MessageLimit":-1}',
            "MessageLimit must be an integer 0..2147483647, got -1",
        ),
        (
            QueueOptions,
            '{"AcknowledgeTimeout":2147483648}',
            "AcknowledgeTimeout must be an integer 0..2147483647, got 2147483648",
        ),
        (
            QueueOptions,
            '{"MessageTimeout":1e400}',
            "MessageTimeout must be an integer 0..2147483647, got inf",
        ),
        (
            QueueOptions,
            '{"MessageDeliveryHandler":{"a":1}}',
            "must be Unicode text of at most 65535 characters, got an object",
        ),
        (
            QueueOptions,
            '{"MessageDeliveryHandler":"\\ud800"}',
            "must be Unicode text of at most 65535 characters, got '\\ud800'",
        ),
        (
            ChannelOptions,
            '{"AllowedQueues":[1,65536]}',
            "AllowedQueues must be an array of at most 65536 integers 0..65535, got an array of 2",
        ),
        (
            ChannelOptions,
            '{"AllowedQueues":[true]}',
            "AllowedQueues must be an array of at most 65536 integers 0..65535, got an array of 1",
        ),
        (
            ChannelOptions,
            '{"AllowedQueues":3}',
            "AllowedQueues must be an array of at most 65536 integers 0..65535, got 3",
        ),
        (
            BindingInformation,
            '{"Name":"b","Method":3}',
            "Method must be an integer (0 DISTRIBUTE, 1 ROUND_ROBIN, 2 ONLY_FIRST), got 3",
        ),
        (
            BindingInformation,
            '{"Name":"b","Interaction":"Maybe"}',
            "Interaction must be an integer (0 NONE, 1 ACKNOWLEDGE, 2 RESPONSE), got 'Maybe'",
        ),
        (
            BindingInformation,
            '{"Name":"b","Interaction":false}',
            "Interaction must be an integer (0 NONE, 1 ACKNOWLEDGE, 2 RESPONSE), got false",
        ),
        (
            BindingInformation,
            '{"Target":"t"}',
            "Name must be Unicode text of at most 65535 characters, got nothing",
        ),
        (
            RouterInformation,
            '{"Name":"r","Method":4294967296}',
            "Method must be an integer (0 DISTRIBUTE, 1 ROUND_ROBIN, 2 ONLY_FIRST), got 4294967296",
        ),
        (
            QueueInformation,
            '{"Channel":"c","Id":65536}',
            "Id must be an integer 0..65535, got 65536",
        ),
        (
            QueueEvent,
            '{"Channel":"c","Id":1,"Status":"Full"}',
            "Pull, Cache, Paused, Stopped, got 'Full'",
        ),
        (
            ChannelEvent,
            '{"Name":"c","ActiveClient":"3"}',
            "ActiveClients must be an integer -2147483648..2147483647, got '3'",
        ),
        (
            NodeInformation,
            '{"Lifetime":9223372036854775808}',
            "-9223372036854775808..9223372036854775807, got 9223372036854775808",
        ),
        (
            NodeInformation,
            '{"Lifetime":' + "9" * 40 + "}",
            "-9223372036854775808..9223372036854775807, got a far larger number",
        ),
        (QueueOptions, "[]", "the body must be a JSON object, got an array of 0"),
        (QueueOptions, "null", "the body must be a JSON object, got null"),
        (QueueOptions, '"{}"', "the body must be a JSON object, got '{}'"),
        (QueueOptions, b"", "the body must be JSON, got no bytes"),
        (QueueOptions, "", "the body must be JSON, got no bytes"),
        (QueueOptions, "{'a':1}", "the body must be valid JSON, got a fault at 1"),
        (QueueOptions, '{"a":1}{}', "the body must be valid JSON, got a fault at 7 (Extra data)"),
        (QueueOptions, b'{"a":"\x01"}', "the body must be valid JSON, got a fault at 6"),
        (QueueOptions, b'{"a":"\xff"}', "the body must be UTF-8, got byte 0xff at 6"),
        (QueueOptions, b'{"a":"\xc3', "the body must be UTF-8, got byte 0xc3 at 6"),
        (QueueOptions, '{"a":"\ud800"}', "the body must be UTF-8, got half a surrogate pair at 6"),
        (QueueOptions, "\ufeff\ufeff{}".encode(), "the body must be valid JSON, got a fault at 0"),
        (QueueOptions, "{}".encode("utf-16"), "the body must be UTF-8, got byte 0xff at 0"),
        (QueueOptions, '{"a":NaN}', "the body must be JSON, which has no such numbers, got NaN"),
        (QueueOptions, '{"a":-Infinity}', "such numbers, got -Infinity"),
        (
            QueueOptions,
            '{"Status":1,"Status":2}',
            "the body must be JSON with each name once in an object, got 'Status' twice",
        ),
        (
            QueueOptions,
            '{"Future":{"\\ud800":1,"\\ud800":1}}',
            "the body must be JSON with each name once in an object, got '\\ud800' twice",
        ),
    ],
)
def test_an_error_names_model_property_expectation_and_value(
    model: type[Model], body: bytes | str, sentence: str
) -> None:
    error = refusal(model, body)
    assert str(error).startswith(f"{model.__name__}: {sentence}") or str(error).endswith(sentence)
    assert str(error).startswith(f"{model.__name__}: ")
    assert error.model == model.__name__
    assert str(error).endswith(f"must be {error.expected}, got {error.got}")
    if sentence.startswith(("Status", "Name")):
        assert error.property_name == sentence.split(maxsplit=1)[0]
    assert error.index is None
    assert isinstance(error, TmqpError)
    str(error).encode("utf-8")  # whatever came, the sentence can be logged and sent


def test_an_error_in_a_list_tells_which_item() -> None:
    with pytest.raises(ModelError, match=r"^ClientInformation, item 1: Online must be") as caught:
        parse_list(ClientInformation, '[{"Id":"a"},{"Id":"b","Online":"long"}]')
    assert caught.value.index == 1
    with pytest.raises(ModelError, match=r"item 0: the body must be a JSON object, got 5$"):
        parse_list(ClientInformation, "[5]")
    with pytest.raises(ModelError, match=r"^ClientInformation: the body must be a JSON array"):
        parse_list(ClientInformation, '{"Id":"a"}')


def test_an_error_survives_pickling() -> None:
    error = refusal(QueueOptions, '{"Status":"Pull"}')
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_error_shows_only_the_beginning_of_a_long_text() -> None:
    error = refusal(QueueOptions, json.dumps({"Status": "x" * 60_000}))
    assert error.got == f"'{'x' * 40}'... of 60000 characters"


@pytest.mark.parametrize("obj", [None, 1, "{}", [], [("Status", 1)], b"{}", object()])
def test_from_object_wants_a_dict(obj: object) -> None:
    with pytest.raises(ModelError, match="the body must be a JSON object, got "):
        QueueOptions.from_object(obj)


def test_from_object_passes_over_names_that_are_no_text() -> None:
    assert ClientEvent.from_object({1: 2, None: 3, "id": "a"}).id == "a"


# --- The same checks when a program makes an instance --------------------------------------------


def test_an_instance_is_checked_when_it_is_made() -> None:
    wrong: Any = "Pull"
    with pytest.raises(ModelError, match=r"^QueueOptions: Status must be an integer 0\.\.6, got"):
        QueueOptions(status=wrong)
    nothing: Any = None
    with pytest.raises(ModelError, match=r"^ClientEvent: Id must be Unicode text .*, got null$"):
        ClientEvent(id=nothing)
    with pytest.raises(ModelError, match="far larger number"):
        MessageEvent(channel="c", queue=10**5_000)
    with pytest.raises(TypeError, match="id"):
        ClientEvent()  # type: ignore[call-arg]


def test_values_with_a_better_type_get_it() -> None:
    number: Any = 3
    ids: Any = [1, 2]
    options = ChannelOptions(status=number, allowed_queues=ids)
    assert options.status is QueueStatus.PULL
    assert options.allowed_queues == (1, 2)
    event = MessageEvent(channel="c", queue=ResultCode.OK, id=NackReason.NONE)
    assert type(event.queue) is int
    assert type(event.id) is str
    assert ChannelInformation(name="c", queues=()).to_object()["Queues"] == []


# --- Bounds, from both sides ---------------------------------------------------------------------


def test_bound_of_the_size() -> None:
    for model, most in ((QueueOptions, MAX_BODY_BYTES), (ChannelInformation, MAX_LIST_BYTES)):
        assert model.max_bytes == most
        body = json.dumps({"Name": "c"}).encode()
        fits = body + b" " * (most - len(body))
        assert isinstance(model.from_json(fits), model)
        assert refusal(model, fits + b" ").got == f"{most + 1} bytes"
        assert refusal(model, (fits + b" ").decode()).got == f"{most + 1} characters"
    assert QueueOptions.from_json("{}", max_bytes=2) == QueueOptions()
    with pytest.raises(ModelError, match="of at most 1 bytes, got 2"):
        QueueOptions.from_json("{}", max_bytes=1)
    with pytest.raises(ModelError, match="of at most 9 bytes, got 11 bytes"):
        QueueOptions.from_json('{"é":"é"}', max_bytes=9)  # 9 characters


def test_bound_of_a_list() -> None:
    body = b"[]" + b" " * (MAX_LIST_BYTES - 2)
    assert parse_list(ClientInformation, body) == []
    with pytest.raises(ModelError, match=f"of at most {MAX_LIST_BYTES} bytes"):
        parse_list(ClientInformation, body + b" ")
    assert parse_list(ClientInformation, body + b" ", max_bytes=MAX_LIST_BYTES + 1) == []


def test_bound_of_nesting() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        nested = opening * (MAX_NESTING_DEPTH - 1) + "1" + closing * (MAX_NESTING_DEPTH - 1)
        assert QueueOptions.from_json(f'{{"Future":{nested}}}') == QueueOptions()
        error = refusal(QueueOptions, f'{{"Future":{opening}{nested}{closing}}}')
        assert error.expected == f"JSON nested at most {MAX_NESTING_DEPTH} deep"


def test_bound_of_digits() -> None:
    for sign in ("", "-"):
        body = f'{{"Future":{sign}{"9" * MAX_NUMBER_DIGITS}}}'
        assert QueueOptions.from_json(body) == QueueOptions()
        error = refusal(QueueOptions, body.replace("9}", "99}"))
        assert error.expected == f"JSON with numbers of at most {MAX_NUMBER_DIGITS} digits"
    handler = "9" * 1_000
    options = QueueOptions.from_json(f'{{"MessageDeliveryHandler":"{handler}"}}')
    assert options.message_delivery_handler == handler


def test_bound_of_properties() -> None:
    names = [f'"n{number}":1' for number in range(MAX_PROPERTIES + 1)]
    assert QueueOptions.from_json("{" + ",".join(names[:-1]) + "}") == QueueOptions()
    error = refusal(QueueOptions, "{" + ",".join(names) + "}")
    assert error.got == f"{MAX_PROPERTIES + 1} of them"


def test_bound_of_values() -> None:
    most = MAX_BODY_BYTES // MIN_BYTES_PER_VALUE
    body = '{"Future":[' + ",".join("1" * most) + "]}"
    assert QueueOptions.from_json(body) == QueueOptions()
    error = refusal(QueueOptions, body.replace("]", ",1]"))
    assert error.expected == f"JSON with at most {most} values"
    options = QueueOptions(message_delivery_handler="," * 60_000)
    assert QueueOptions.from_json(options.to_json()) == options


def test_bound_of_containers() -> None:
    most = MAX_BODY_BYTES // MIN_BYTES_PER_CONTAINER
    body = '{"Future":[' + ",".join(["[]"] * (most - 2)) + "]}"
    assert QueueOptions.from_json(body) == QueueOptions()
    error = refusal(QueueOptions, body.replace("[[]", "[[],[]"))
    assert error.expected == f"JSON with at most {most} objects and arrays"


def test_bound_of_text() -> None:
    fits = "é" * MAX_TEXT_CHARACTERS
    channel = ChannelInformation(name=fits)
    assert ChannelInformation.from_json(channel.to_json()) == channel
    error = refusal(ChannelInformation, json.dumps({"Name": fits + "é"}))
    assert error.property_name == "Name"
    assert f"of at most {MAX_TEXT_CHARACTERS} characters" in error.expected


def test_the_largest_honest_bodies_are_read() -> None:
    every_id = tuple(range(65_536))
    channel = ChannelInformation(name="c" * 255, queues=every_id, allowed_queues=every_id)
    assert ChannelInformation.from_json(channel.to_json()) == channel
    error = refusal(ChannelInformation, channel.to_json().replace(b"[0,", b"[0,0,", 1))
    assert error.property_name == "Queues"
    clients = [ClientInformation(id=f"{number:032x}", name="n") for number in range(10_000)]
    body = b"[" + b",".join([client.to_json() for client in clients]) + b"]"
    assert len(body) < MAX_LIST_BYTES
    assert parse_list(ClientInformation, body) == clients


# --- What stands in strings does not count -------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text('[]{}",:\\/aé😀\n\x00\x7f\u2028' + "0123456789", max_size=60),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text('[{"\\]}a', max_size=6), children, max_size=4)
    ),
    max_leaves=30,
)


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
def test_json_within_bounds_is_read_as_the_standard_library_reads_it(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert load(text, MIB) == value
    assert load(text.encode("utf-8"), MIB) == value


@pytest.mark.parametrize(
    "name", ["[" * 1000, "{" * 1000, '"' * 99, "\\" * 99, '\\"[' * 50, "]}" * 9]
)
def test_brackets_and_quotes_in_text_are_text(name: str) -> None:
    options = QueueOptions(message_delivery_handler=name)
    assert QueueOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize("cover", ['"]"', '"\\"]"', '"\\\\"', '"]\\\\"', '"\\\\\\"]]"', '"[]"'])
def test_nesting_cannot_hide_behind_text(cover: str) -> None:
    for depth in (MAX_NESTING_DEPTH + 1, 1_000):
        body = f"[{cover}," * depth + "1" + "]" * depth
        with pytest.raises(JsonRefusedError) as caught:
            load(body, MIB)
        assert caught.value.expected == f"JSON nested at most {MAX_NESTING_DEPTH} deep"


@pytest.mark.parametrize("stray", ['\\"', "\\", '"', '\\\\"', '"\\', "\x00", "]", "'"])
def test_stray_marks_end_the_reading_before_what_they_hide(stray: str) -> None:
    for body in (f"[{stray}" + "[" * 5_000, f"[1,{stray}" + "[" * 5_000 + "]" * 5_000 + "]"):
        with pytest.raises(JsonRefusedError):
            load(body, MIB)


# --- Hostile bodies (A10) ------------------------------------------------------------------------

HOSTILE: Final[dict[str, bytes]] = {
    "arrays 1,000 deep": b"[" * 1_000 + b"]" * 1_000,
    "objects 1,000 deep": b'{"a":' * 1_000 + b"1" + b"}" * 1_000,
    "arrays 500,000 deep": b"[" * 500_000 + b"]" * 500_000,
    "arrays deep below a property": b'{"Status":' + b"[" * 1_000 + b"]" * 1_000 + b"}",
    "10,000 digits": b'{"Status":' + b"1" * 10_000 + b"}",
    "10,000 digits, negative": b'{"Status":-' + b"1" * 10_000 + b"}",
    "10,000 digits of a fraction": b'{"Status":0.' + b"1" * 10_000 + b"}",
    "10,000 digits of an exponent": b'{"Status":1e' + b"1" * 10_000 + b"}",
    "a name twice": b'{"Status":1,"Status":1}',
    "a name 10,000 times": b"{" + b",".join([b'"Id":1'] * 9_000) + b"}",
    "NaN": b'{"Status":NaN}',
    "Infinity": b'{"Status":Infinity}',
    "text of 1 MiB": b'{"Name":"' + b"x" * (MIB - 11) + b'"}',
    "text of 1 MiB beyond ASCII": b'{"Name":"' + "é".encode() * (MIB // 2 - 6) + b'"}',
    "a name of 1 MiB": b'{"' + b"x" * (MIB - 8) + b'":1}',
    "half a surrogate pair": b'{"Id":"\\ud800"}',
    "not UTF-8": b'{"Id":"\xff\xfe"}',
    "not UTF-8 at the end of 1 MiB": b'{"Id":"' + b"x" * (MIB - 10) + b'\xff"}',
    "UTF-16": '{"Id":"a"}'.encode("utf-16"),
    "two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "nothing": b"",
    "64 KiB of values": b"[" + b"1," * 32_000 + b"1]",
    "64 KiB of names": b"{" + b",".join(b'"%x":1' % number for number in range(7_000)) + b"}",
    "64 KiB of quotes": b'"' * MAX_BODY_BYTES,
    "64 KiB of escapes": b'"' + b"\\\\" * 32_000 + b'"',
    "64 KiB of fractions": b"[" + b"1.5," * 10_000 + b"1]",
    "64 KiB of objects": b"[" + b"{}," * 21_000 + b"{}]",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("model", [QueueOptions, ChannelOptions, BindingInformation, ClientEvent])
def test_hostile_body_is_refused(model: type[Model], name: str) -> None:
    if name == "half a surrogate pair" and issubclass(model, QueueOptions):
        assert model.from_json(HOSTILE[name]) == model()  # "Id" is no option: ignored
    else:
        assert isinstance(refusal(model, HOSTILE[name]), ModelError)


def cost_ms(read: Callable[[], object]) -> float:
    """Measure the processor's time for *read*, the best of five, in milliseconds."""
    best = math.inf
    for _ in range(5):
        start = time.process_time()
        read_or_refused(read)
        best = min(best, time.process_time() - start)
    return best * 1_000


@pytest.mark.alone
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_body_is_cheap(name: str) -> None:
    body = HOSTILE[name]
    most = 600 * machine_s()
    for model in (ChannelOptions, BindingInformation, ClientEvent):
        assert cost_ms(partial(model.from_json, body)) <= most
    text = body.decode("utf-8", "surrogateescape")
    assert cost_ms(lambda: ChannelOptions.from_json(text)) <= most


@pytest.mark.alone
@pytest.mark.parametrize(
    "piece",
    [b"1,", b"[],", b'"",', b'"', b"\\\\", b'\\"', b"[", b'{"a":', b'"a":1,', b"1.1111,", b" "],
)
def test_cost_is_linear_and_bounded_up_to_the_bound(piece: bytes) -> None:
    costs = []
    for size in (MIB // 16, MIB // 4, MIB):
        body = (b"[" + piece * (size // len(piece)))[:size]
        costs.append(cost_ms(partial(parse_list, ClientInformation, body)))
    # Four times the body costs four times as much, and not sixteen; the largest costs what memory
    # costs, too.
    assert costs[1] <= 10 * max(costs[0], 20 * machine_s())
    assert costs[2] <= 4_000 * machine_s()


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200) | json_values.map(json.dumps))
def test_anything_is_read_or_refused(body: bytes | str) -> None:
    for model in (ChannelOptions, BindingInformation, QueueInformation):
        result = read_or_refused(partial(model.from_json, body))
        assert isinstance(result, (model, ModelError))
    result = read_or_refused(lambda: parse_list(RouterInformation, body))
    assert isinstance(result, (list, ModelError))


@settings(max_examples=300)
@given(
    st.sampled_from([QueueInformation, ChannelOptions, BindingInformation]),
    st.integers(0, 10_000),
    st.integers(0, 6),
    st.binary(max_size=4) | st.sampled_from([b"[" * 50, b"9" * 50, b'"', b"\\", b"null", b"{}"]),
)
def test_a_damaged_body_is_read_or_refused(
    model: type[Model], place: int, removed: int, inserted: bytes
) -> None:
    body = model.from_object({"Name": "n", "Channel": "c", "Id": 1}).to_json()
    place %= len(body)
    damaged = body[:place] + inserted + body[place + removed :]
    result = read_or_refused(lambda: model.from_json(damaged))
    assert isinstance(result, (model, ModelError))


ENOUGH: Final[dict[type[Model], dict[str, object]]] = {
    ChannelOptions: {},
    BindingInformation: {"Name": "b"},
    QueueInformation: {"Channel": "c", "Id": 1},
    MessageEvent: {"Channel": "c", "Queue": 1},
}


@settings(max_examples=300)
@given(st.sampled_from(list(ENOUGH)), st.data())
def test_any_value_in_any_property_is_read_or_refused(model: type[Model], data: Any) -> None:
    odd = json_values | st.integers() | st.sampled_from([2**15, 2**16, 2**31, 2**63, -1, 0, 6, 7])
    names = st.sampled_from([item.name for item in properties_of(model)])
    changed = data.draw(st.dictionaries(names, odd, min_size=1, max_size=3))
    result = read_or_refused(lambda: model.from_object({**ENOUGH[model], **changed}))
    if isinstance(result, ModelError):
        assert result.property_name in changed
    else:
        assert isinstance(result, model)
        assert model.from_json(result.to_json()) == result
