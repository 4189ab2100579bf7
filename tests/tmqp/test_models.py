"""The checks of what ``tmqp.models`` reads and writes: names, order, recordings, tolerance.

``data/model_bodies.json`` holds every JSON body of the recorded exchanges with the original client
and server, and which model it is.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import types
import typing
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import ROOT
from tmqp import models
from tmqp.constants import (
    BindingInteraction,
    BindingType,
    EventName,
    QueueStatus,
    RouteMethod,
)
from tmqp.models import (
    EVENT_MODELS,
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
    SubscriptionEvent,
    dump_list,
    parse_list,
    properties_of,
)
from tmqp.models._kinds import AddressKind

ALL_MODELS: Final[list[type[Model]]] = [
    *(QueueOptions, ChannelOptions, BindingInformation),
    *(ChannelInformation, QueueInformation, NodeInformation, ClientInformation, RouterInformation),
    *(ClientEvent, ChannelEvent, SubscriptionEvent, QueueEvent, MessageEvent),
]
each_model = pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: model.__name__)

BODIES: Final = json.loads(
    (ROOT / "tests" / "data" / "model_bodies.json").read_text(encoding="utf-8")
)


def model_named(name: str) -> type[Model]:
    return next(model for model in ALL_MODELS if model.__name__ == name)


def strategy_of(hint: object) -> st.SearchStrategy[Any]:
    """Draw what an attribute of that type may hold."""
    if isinstance(hint, types.UnionType):
        return st.one_of([strategy_of(part) for part in typing.get_args(hint)])
    if hint == tuple[int, ...]:
        return st.lists(st.integers(0, 2**16 - 1), max_size=5).map(tuple)
    if hint is type(None):
        return st.none()
    if hint is str:
        return st.text(max_size=20)
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(0, 2**16 - 1)  # fits every number type of the models
    return st.sampled_from(list(typing.cast("Any", hint)))


addresses = st.just("") | st.builds(
    "{};{}".format, st.text("aé; ", min_size=1, max_size=9), st.integers(0, 2**16 - 1)
)


def instances(model: type[Model]) -> st.SearchStrategy[Model]:
    hints = typing.get_type_hints(model)
    return st.builds(
        model,
        **{
            item.attribute: st.none() | addresses
            if isinstance(item.kind, AddressKind)
            else strategy_of(hints[item.attribute])
            for item in properties_of(model)
        },
    )


any_instance = st.sampled_from(ALL_MODELS).flatmap(instances)


def minimal(model: type[Model]) -> dict[str, object]:
    """Return the smallest object that *model* reads."""
    hints = typing.get_type_hints(model)
    return {
        item.name: 7 if hints[item.attribute] is int else "x"
        for item in properties_of(model)
        if item.required
    }


def refusal(model: type[Model], body: bytes | str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        model.from_json(body)
    return caught.value


# --- Names and order -----------------------------------------------------------------------------

# F67-F70, F121, F130, word for word.
WIRE_NAMES: Final = {
    "QueueOptions": "SendOnlyFirstAcquirer, RequestAcknowledge, AcknowledgeTimeout, MessageTimeout,"
    " UseMessageId, WaitForAcknowledge, HideClientNames, Status, MessageDeliveryHandler,"
    " MessageLimit",
    "ChannelOptions": "AllowMultipleQueues, AllowedQueues, ChannelEventHandler, Authenticator,"
    " ClientLimit, QueueLimit, DestroyWhenEmpty, SendOnlyFirstAcquirer, RequestAcknowledge,"
    " AcknowledgeTimeout, MessageTimeout, UseMessageId, WaitForAcknowledge, HideClientNames,"
    " Status, MessageDeliveryHandler, MessageLimit",
    "BindingInformation": "Name, Target, ContentType, Priority, Interaction, BindingType, Method",
    "ChannelInformation": "Name, Queues, AllowMultipleQueues, AllowedQueues, OnlyFirstAcquirer,"
    " RequestAcknowledge, AcknowledgeTimeout, MessageTimeout, UseMessageId, WaitForAcknowledge,"
    " HideClientNames, ActiveClients, ClientLimit, QueueLimit, DestroyWhenEmpty",
    "QueueInformation": "Channel, TagName, Id, PriorityMessages, Messages, Status,"
    " OnlyFirstAcquirer, RequestAcknowledge, AcknowledgeTimeout, MessageTimeout, UseMessageId,"
    " WaitForAcknowledge, HideClientNames, ReceivedMessages, SentMessages, Deliveries,"
    " NegativeAcks, Acks, TimeoutMessages, SavedMessages, RemovedMessages, Errors,"
    " LastMessageReceived, LastMessageSent, MessageLimit, MessageSizeLimit",
    "ClientInformation": "Id, Name, Type, Online, IsAuthenticated",
    "NodeInformation": "Id, Name, Host, Slave, Connected, Lifetime",
    "RouterInformation": "Name, IsEnabled, Method",
    "ClientEvent": "Id, Name, Type, Node",
    "ChannelEvent": "Name, ActiveClients, ClientLimit, Node",
    "SubscriptionEvent": "Channel, ClientId, ClientName, ClientType, Node",
    "QueueEvent": "Channel, Id, Tag, Status, PriorityMessages, Messages, Node",
    "MessageEvent": "Channel, Queue, Id, Saved, ProducerId, ProducerName, ProducerType",
}


#: This implementation's own: not written when they say nothing.
EXTENSIONS: Final = {
    "QueueOptions": "MessageSizeLimit, BytesLimit, DiskLimitBytes, WhenFull, GroupKeys,"
    " Priorities, SkipSlowConsumers, ExpiredToDeadLetter, DeadLetterQueue, PutBackLimit,"
    " Durable, Overflow, Ephemeral, MemoryLimit,"
    " RetainBytes, RetainTime, RetainForReaders",
    "QueueInformation": "Durable, Overflow, Ephemeral, MemoryLimit, SpilledMessages,"
    " DroppedMessages, ReleasedMessages, DisplacedMessages, DeadMessages, DeferredMessages,"
    " RefusedMessages, SkippedDeliveries, BytesLimit, DiskLimitBytes, DiskBytes, WhenFull,"
    " GroupKeys, Priorities, SkipSlowConsumers, ExpiredToDeadLetter, DeadLetterQueue,"
    " PutBackLimit, RetainBytes, RetainTime, RetainForReaders",
}
_OF_CHANNELS: Final = "Lifetime, IdleTimeout, OwnerOnly, SingleConsumer"
EXTENSIONS["ChannelOptions"] = f"{_OF_CHANNELS}, {EXTENSIONS['QueueOptions']}"
EXTENSIONS["NodeInformation"] = "Role, Shard, Epoch, Applied, Behind"
EXTENSIONS["ChannelInformation"] = f"{_OF_CHANNELS}, Owner"


@each_model
def test_extensions_are_written_only_when_they_say_something(model: type[Model]) -> None:
    extensions = [item for item in properties_of(model) if item.extension]
    expected = EXTENSIONS.get(model.__name__, "")
    assert ", ".join(item.name for item in extensions) == expected
    for item in extensions:
        assert item.nullable
        assert item.name not in model.from_object(minimal(model)).to_object()
        for value in (True, 7):
            try:
                made = model.from_object({**minimal(model), item.name: value})
            except ModelError:
                continue
            assert made.to_object()[item.name] is value


@each_model
def test_names_and_their_order(model: type[Model]) -> None:
    names = [item.name for item in properties_of(model) if not item.extension]
    assert ", ".join(names) == WIRE_NAMES[model.__name__]
    assert list(model.from_object(minimal(model)).to_object()) == (
        WIRE_NAMES[model.__name__].split(", ")
    )


@each_model
def test_attributes_are_the_names_in_snake_case(model: type[Model]) -> None:
    attributes = [item.attribute for item in properties_of(model)]
    assert sorted(attributes) == sorted(
        field.name for field in dataclasses.fields(typing.cast("Any", model))
    )
    for item in properties_of(model):
        plain = item.attribute.removesuffix("_ms").replace("_", "")
        assert plain in {item.name.lower(), *(name.lower() for name in item.also)}


@each_model
def test_every_model_says_what_it_is(model: type[Model]) -> None:
    assert model.__doc__
    assert model.__name__ in models.__all__


def test_all_is_complete() -> None:
    assert set(models.__all__) <= set(dir(models))
    for name in models.__all__:
        assert getattr(models, name) is not None, "it is loaded when it is used"
    public = {
        name
        for name, value in vars(models).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    ours = public - {"TYPE_CHECKING", "Final", "annotations", "import_module"}
    assert ours == set(models.__all__)


def test_there_is_no_model_of_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Unheard'"):
        _ = models.Unheard


def test_each_event_has_its_model() -> None:
    of_the_specification = {
        "ClientConnected": "ClientEvent",
        "ClientDisconnected": "ClientEvent",
        "ClientJoined": "SubscriptionEvent",
        "ClientLeft": "SubscriptionEvent",
        "ChannelCreated": "ChannelEvent",
        "ChannelRemoved": "ChannelEvent",
        "QueueCreated": "QueueEvent",
        "QueueUpdated": "QueueEvent",
        "QueueRemoved": "QueueEvent",
        "MessageProduced": "MessageEvent",
    }
    of_nodes = dict.fromkeys(("NodeConnected", "NodeDisconnected"), "NodeInformation")
    assert {name: model.__name__ for name, model in EVENT_MODELS.items()} == {
        **of_the_specification,
        **of_nodes,
    }
    assert EVENT_MODELS[EventName.CLIENT_JOINED] is EVENT_MODELS["ClientJoined"]


# --- Recorded bodies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recorded",
    [body for body in BODIES if body["written_by"] != "hand"],
    ids=lambda body: f"{body['model']}:{body['source'][:10]}",
)
def test_recorded_body_is_written_back_to_the_same_bytes(recorded: dict[str, Any]) -> None:
    model, body = model_named(recorded["model"]), recorded["body"].encode()
    if recorded["list"]:
        assert dump_list(parse_list(model, body)) == body
    else:
        assert model.from_json(body).to_json() == body
    if recorded["event"]:
        assert EVENT_MODELS[recorded["event"]] is model


@pytest.mark.parametrize(
    "recorded",
    [body for body in BODIES if body["written_by"] == "hand"],
    ids=lambda body: f"{body['model']}:{body['source'][:10]}",
)
def test_body_written_by_hand_is_read_as_the_original_server_read_it(
    recorded: dict[str, Any],
) -> None:
    model, body = model_named(recorded["model"]), recorded["body"]
    given_names = json.loads(body)
    if recorded["source"].startswith("probe-029"):  # the server closed the connection on it
        assert refusal(model, body).property_name == "Status"
        return
    written = model.from_json(body).to_object()
    kept = {name: value for name, value in given_names.items() if name in written}
    assert {name: written[name] for name in kept} == kept
    untouched = model.from_object(minimal(model)).to_object()
    for name in written.keys() - kept.keys():
        assert written[name] == untouched[name]


def test_there_is_a_recorded_body_of_every_kind() -> None:
    with_one = {body["model"] for body in BODIES if body["body"] != "[]"}
    assert with_one == {model.__name__ for model in ALL_MODELS} - {"NodeInformation"}
    assert len(BODIES) == 78


def test_a_router_with_a_method_that_does_not_exist_is_read() -> None:
    body = next(body for body in BODIES if body["source"].startswith("probe-047"))
    by_name = {router.name: router for router in parse_list(RouterInformation, body["body"])}
    assert by_name["nr2"].method == 9
    assert by_name["r-rr"].method is RouteMethod.ROUND_ROBIN


# --- Round trips ---------------------------------------------------------------------------------


@given(any_instance)
def test_what_is_written_is_read_back(instance: Model) -> None:
    body = instance.to_json()
    assert type(instance).from_json(body) == instance
    assert type(instance).from_json(body.decode("utf-8")) == instance
    assert type(instance).from_object(instance.to_object()) == instance
    assert json.loads(body) == instance.to_object()
    values = {
        each.attribute: getattr(instance, each.attribute) for each in properties_of(type(instance))
    }
    assert type(instance).values_in(body) == {
        name: value for name, value in values.items() if value is not None
    }


@given(any_instance)
def test_instances_are_values(instance: Model) -> None:
    copied = pickle.loads(pickle.dumps(instance))  # noqa: S301 - made here
    assert copied == instance == copy.deepcopy(instance)
    assert hash(copied) == hash(instance)
    attribute = properties_of(type(instance))[0].attribute
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(instance, attribute, None)


@given(st.sampled_from(ALL_MODELS).flatmap(lambda model: st.lists(instances(model), max_size=4)))
def test_lists_are_read_back(items: list[Model]) -> None:
    body = dump_list(items)
    model = type(items[0]) if items else ClientInformation
    assert parse_list(model, body) == items


def test_text_is_escaped_as_the_original_does() -> None:
    name = "é 😀 / ' < & \" \\ \n\r\t\b\f \x1f \x7f \x85 \u2028 \u2029"
    written = ClientEvent(id=name).to_json().decode("utf-8")
    assert written == (
        '{"Id":"é 😀 / \' < & \\" \\\\ \\n\\r\\t\\b\\f \\u001f \x7f \\u0085 \\u2028 \\u2029",'
        '"Name":null,"Type":null,"Node":null}'
    )
    assert ClientEvent.from_json(written).id == name


# --- Tolerance -----------------------------------------------------------------------------------


@each_model
def test_unknown_properties_are_ignored(model: type[Model]) -> None:
    known = minimal(model)
    future = {"Zz": [1.5, {"a": None}], **known, "": True, "Future": {"Name": 1}}
    assert model.from_json(json.dumps(future)) == model.from_object(known)


@each_model
def test_null_is_the_same_as_missing(model: type[Model]) -> None:
    known = minimal(model)
    nulls: dict[str, object] = {item.name: None for item in properties_of(model)}
    assert model.from_object({**nulls, **known}) == model.from_object(known)


@each_model
def test_a_property_that_must_be_there_is_missed_by_name(model: type[Model]) -> None:
    for name in minimal(model):
        for without in ({}, {name: None}):
            rest = {key: value for key, value in minimal(model).items() if key != name}
            error = refusal(model, json.dumps({**rest, **without}))
            assert error.property_name == name
            assert error.got == "nothing"


@given(any_instance, st.randoms(use_true_random=False))
def test_only_options_mind_the_case_of_names(instance: Model, random: Any) -> None:
    spelt = {
        random.choice([name.lower(), name.upper(), name[0].lower() + name[1:]]): value
        for name, value in instance.to_object().items()
    }
    model = type(instance)
    if model.ignores_case:
        assert model.from_object(spelt) == instance
    else:  # F71: the original server ignores them
        assert model.from_object(spelt) == model()
    assert model.ignores_case is not issubclass(model, QueueOptions)


def test_the_exact_name_wins_over_another_case() -> None:
    assert ClientEvent.from_json('{"ID":"a","Id":"b","id":"c"}').id == "b"


def test_both_names_of_the_event_handler() -> None:
    for name in ("ChannelEventHandler", "EventHandler"):
        options = ChannelOptions.from_json(json.dumps({name: "audit"}))
        assert options.event_handler == "audit"
        assert options.to_object()["ChannelEventHandler"] == "audit"
    both = '{"EventHandler":"b","ChannelEventHandler":"a"}'
    assert ChannelOptions.from_json(both).event_handler == "a"
    v3 = '{"EventHandler":"b","ChannelEventHandler":null}'
    assert ChannelOptions.from_json(v3).event_handler == "b"


def test_both_names_of_the_active_clients() -> None:
    for name in ("ActiveClients", "ActiveClient", "activeclient"):
        event = ChannelEvent.from_json(json.dumps({"Name": "c", name: 3}))
        assert event.active_clients == 3
        assert event.to_object()["ActiveClients"] == 3


def test_use_message_id_is_true_unless_said_otherwise() -> None:  # F56, F70
    assert QueueOptions().use_message_id
    assert b'"UseMessageId":true' in QueueOptions.from_json("{}").to_json()
    assert QueueOptions.from_json('{"UseMessageId":null}').use_message_id
    assert not QueueOptions.from_json('{"UseMessageId":false}').use_message_id


def test_options_of_a_channel_are_options_of_its_queues() -> None:
    options = ChannelOptions.from_json('{"Status":3,"ClientLimit":5}')
    assert isinstance(options, QueueOptions)
    assert options.status is QueueStatus.PULL
    assert QueueOptions.from_json(options.to_json()).status is QueueStatus.PULL


@pytest.mark.parametrize("status", list(QueueStatus))
def test_three_spellings_of_a_status(status: QueueStatus) -> None:
    event_word = status.name.title().replace("_", "")
    assert QueueOptions.from_json(json.dumps({"Status": status.value})).status is status
    for model in (QueueInformation, QueueEvent):
        for spelling in (event_word, event_word.lower(), status.value):
            read = model.from_object({"Channel": "c", "Id": 1, "Status": spelling})
            assert read.to_object()["Status"] == (
                event_word.lower() if model is QueueInformation else event_word
            )


def test_enumerations_are_read_as_numbers_or_names() -> None:
    for body in (
        '{"Name":"b","Interaction":2,"BindingType":1,"Method":1}',
        '{"Name":"b","Interaction":"Response","BindingType":"Queue","Method":"RoundRobin"}',
        '{"Name":"b","Interaction":"response","BindingType":"QUEUE","Method":"roundrobin"}',
    ):
        binding = BindingInformation.from_json(body)
        assert binding.interaction is BindingInteraction.RESPONSE
        assert binding.binding_type is BindingType.QUEUE
        assert binding.method is RouteMethod.ROUND_ROBIN
        assert binding.to_json() == (
            b'{"Name":"b","Target":null,"ContentType":null,"Priority":0,'
            b'"Interaction":2,"BindingType":1,"Method":1}'
        )


@pytest.mark.parametrize("body", [b"\xef\xbb\xbf{}", b" \r\n\t{} ", bytearray(b"{}"), "{}"])
def test_forms_of_a_body(body: bytes | str) -> None:
    assert QueueOptions.from_json(body) == QueueOptions()
