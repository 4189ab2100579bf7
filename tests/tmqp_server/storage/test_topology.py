"""How channels, queues and routers are kept: everything comes back, and other versions are read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueOptions
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS
from tmqp_server.engine.records import field_names
from tmqp_server.storage.port import StoreError
from tmqp_server.storage.topology import (
    channel_from_bytes,
    channel_to_bytes,
    queue_from_bytes,
    queue_to_bytes,
    retention_of,
    router_from_bytes,
    router_to_bytes,
)

numbers = st.integers(0, 2**40)
queues = st.builds(
    QueueOptions,
    status=st.integers(0, 6),
    request_acknowledge=st.booleans(),
    acknowledge_timeout_ms=numbers,
    message_timeout_ms=numbers,
    dead_letter=st.none() | st.tuples(st.text(), st.integers(0, 65_535)),
    delivery_handler=st.text(),
    tag=st.none() | st.text(),
    durable=st.booleans(),
    memory_limit=numbers,
    retain_bytes=numbers,
    retain_for_readers=st.booleans(),
)
channels = st.builds(
    ChannelOptions,
    allow_multiple_queues=st.booleans(),
    allowed_queues=st.none() | st.tuples(st.integers(0, 9)),
    client_limit=numbers,
    destroy_when_empty=st.booleans(),
    queue=queues,
)


@given(channels)
def test_a_channel_comes_back(options: ChannelOptions) -> None:
    assert repr(channel_from_bytes(channel_to_bytes(options))) == repr(options)


@given(queues, numbers)
def test_a_queue_comes_back(options: QueueOptions, suspect: int) -> None:
    kept = queue_from_bytes(queue_to_bytes(options, suspect))
    assert repr(kept.options) == repr(options)
    assert kept.suspect == suspect


def test_a_router_comes_back() -> None:
    bindings = [
        BindingOptions("b", 1, "c", None, 5, 0, 2),
        BindingOptions("a", 0, "@x", 9, 1, 1, 0),
    ]
    method, again, enabled = router_from_bytes(router_to_bytes(2, bindings, enabled=False))
    assert (method, enabled) == (2, False)
    assert repr(again) == repr(bindings)


def test_every_option_is_kept() -> None:
    for kept, kind, declared in (
        (queue_to_bytes(QueueOptions(), 0), QueueOptions, QUEUE_OPTIONS),
        (channel_to_bytes(ChannelOptions()), ChannelOptions, CHANNEL_OPTIONS),
    ):
        assert set(field_names(kind)) - {"queue"} == {each.name for each in declared}
        assert {each.kept for each in declared} <= set(json.loads(kept))


def test_the_stored_names_of_options_stay() -> None:
    """A name that changed would make every store forget the option."""
    assert set(json.loads(queue_to_bytes(QueueOptions(), 0))) == {
        "version", "suspect", "status", "request_acknowledge", "acknowledge_timeout_ms",
        "message_timeout_ms", "use_message_id", "wait_for_acknowledge", "hide_client_names",
        "send_only_first_acquirer", "message_limit", "message_size_limit", "put_back_limit",
        "dead_letter", "delivery_handler", "tag", "durable", "overflow", "ephemeral",
        "memory_limit", "retain_bytes", "retain_ms", "retain_for_readers", "bytes_limit",
        "when_full", "expired_to_dead_letter", "group_keys", "disk_limit_bytes", "priorities",
        "skip_slow_consumers",
    }  # fmt: skip
    assert set(json.loads(channel_to_bytes(ChannelOptions()))) == {
        "version", "queue", "allow_multiple_queues", "allowed_queues", "client_limit",
        "queue_limit", "destroy_when_empty", "authenticator", "event_handler", "lifetime",
        "idle_timeout_ms", "owner_only", "single_consumer",
    }  # fmt: skip


def test_unknown_names_are_passed_over_and_missing_ones_are_defaults() -> None:
    kept = queue_from_bytes(b'{"version": 1, "tag": "x", "colour": "blue"}')
    assert kept.options.tag == "x"
    assert kept.options.acknowledge_timeout_ms == QueueOptions().acknowledge_timeout_ms
    assert channel_from_bytes(b'{"version": 1, "queue": {"later": 1}}').queue.tag is None


@pytest.mark.parametrize("kept", [b"", b"{", b"[]", b"{}", b'{"version": 2}'])
def test_what_cannot_be_read_is_said(kept: bytes) -> None:
    for read in (channel_from_bytes, queue_from_bytes, router_from_bytes):
        with pytest.raises(StoreError, match="the options of a"):
            read(kept)


def test_a_binding_without_its_fields_is_said() -> None:
    with pytest.raises(StoreError, match="a binding"):
        router_from_bytes(b'{"version": 1, "bindings": [{"name": "x"}]}')


def test_what_is_retained() -> None:
    kept = retention_of(QueueOptions(retain_bytes=5, retain_time_ms=6, retain_for_readers=True))
    assert (kept.retain_bytes, kept.retain_time_ms, kept.retain_for_readers) == (5, 6, True)
