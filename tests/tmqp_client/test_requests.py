"""Golden bytes: what the client writes is what the original client was recorded to write.

Ids are taken from the recordings, for each client makes its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.project import ROOT
from tmqp import ConnectionInformation, Frame, FrameDecoder, LocalProtocolError, QueueStatus
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import ClientLimits
from tmqp_client._core import arguments, requests
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.standing import Standing

CAPTURES = ROOT / "tests" / "data" / "captures"


def recorded(name: str, direction: str) -> list[bytes]:
    """The pieces one side sent in a recorded exchange."""
    (path,) = CAPTURES.glob(f"{name}-*.json")
    items: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return [
        bytes.fromhex(item["hex"]) for item in items if item["dir"] == direction and item["hex"]
    ]


def frame_of(data: bytes) -> Frame:
    (frame,) = FrameDecoder().feed(data)
    return frame


def options_006() -> ChannelOptions:
    return ChannelOptions(
        allow_multiple_queues=True,
        allowed_queues=(1, 2),
        client_limit=5,
        destroy_when_empty=False,
        send_only_first_acquirer=True,
        acknowledge_timeout_ms=33_000,
        status=QueueStatus.PULL,
    )


def queue(
    channel: str,
    queue_id: int,
    options: QueueOptions | None = None,
    status: QueueStatus | str | None = None,
    tag: str | None = None,
    handler: str | None = None,
    wait: bool | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> requests.Request:
    return requests.create_queue(
        channel, queue_id, options, status, tag, handler, wait, tuple(headers)
    )


Build = Callable[[str], requests.Request]

OPERATIONS: dict[str, Build] = {
    "real-005": lambda name: requests.create_channel(name, None),
    "real-006": lambda name: requests.create_channel(name, options_006()),
    "real-012": requests.join,
    "real-014": requests.join,
    "real-016": requests.leave,
    "real-019": lambda name: queue(name, 100),
    "real-021": lambda name: queue(name, 101, status=QueueStatus.BROADCAST),
    "real-023": lambda name: queue(name, 102, status="push"),
    "real-025": lambda name: queue(name, 103, status=QueueStatus.ROUND_ROBIN),
    "real-027": lambda name: queue(name, 104, status="Pull"),
    "real-029": lambda name: queue(name, 105, status="cache"),
    "real-031": lambda name: queue(name, 106, status="pause"),
    "real-033": lambda name: queue(name, 107, status=QueueStatus.STOPPED),
    "real-035": lambda name: queue(
        name,
        1,
        QueueOptions(acknowledge_timeout_ms=7_000, status=QueueStatus.PULL, message_limit=3),
    ),
    "real-049": lambda name: queue(name, 1, handler="ack-received"),
    "real-061": lambda name: queue(name, 1, status="push", wait=True),
    "real-042": lambda name: requests.remove_queue(name, 2),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_the_originals_bytes(name: str) -> None:
    data = recorded(name, "c2s")[0]
    golden = frame_of(data)
    request = OPERATIONS[name](golden.target)
    assert request.to_frame(golden.message_id, golden.source, True).raw == data


@pytest.mark.parametrize("name", ["real-044", "real-045", "real-046", "real-047"])
def test_pushes_are_the_originals_bytes(name: str) -> None:
    compared = 0
    for data in recorded(name, "c2s"):
        frames = FrameDecoder().feed(data)
        if not frames or frames[0].type != 0x11:
            continue  # cut short by the recording, or not a push
        golden = frames[0]
        made = requests.push_frame(
            golden.target,
            golden.content_type,
            golden.payload,
            golden.message_id,
            golden.source,
            golden.headers,
            golden.high_priority,
            golden.pending_acknowledge,
        )
        assert made.raw == data
        compared += 1
    assert compared


@pytest.mark.parametrize(
    ("name", "reason"), [("real-051", None), ("real-052", "my-reason"), ("real-054", "retry")]
)
def test_acknowledges_are_the_originals_bytes(name: str, reason: str | None) -> None:
    decoder = FrameDecoder()
    messages = {
        frame.message_id: frame
        for data in recorded(name, "s2c")
        for frame in decoder.feed(data)
        if frame.type == 0x11
    }
    first = next(data for data in recorded(name, "c2s") if frame_of(data).type == 0x13)
    golden = frame_of(first)
    delivered = next(iter(messages.values()))
    if golden.first_acquirer:
        delivered = frame_of(delivered.forwarded(True, True, delivered.ttl))
    made = requests.acknowledge_frame(delivered, golden.source, reason)
    assert made.raw == first


@pytest.mark.parametrize("name", ["real-000", "real-001", "real-003"])
def test_the_greeting_is_the_originals_bytes(name: str) -> None:
    preamble, hello = recorded(name, "c2s")[:2]
    golden = frame_of(hello)
    information = ConnectionInformation.parse(golden.payload)
    machine = ClientMachine(information, ClientLimits(), lambda: golden.message_id)
    machine.start(0.0)
    assert machine.data_to_send() == preamble + hello


@pytest.mark.parametrize(
    "name", ["", "a b", "a@b", "a;b", "a*", "a\nb", "a\rb", "a\x9bb", "\u202ea"]
)
def test_a_name_that_cannot_be_a_channels_is_refused_here(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="channel name"):
        arguments.check_channel(name)


@pytest.mark.parametrize("queue_id", [-1, 65_536])
def test_a_queue_id_has_sixteen_bits(queue_id: int) -> None:
    with pytest.raises(LocalProtocolError, match=r"0 to 65535"):
        queue("orders", queue_id)
    assert queue("orders", 65_535).headers[1] == ("Queue-Id", "65535")


def test_an_unknown_status_is_named_with_the_known_ones() -> None:
    with pytest.raises(LocalProtocolError, match=r"'fast' is not a queue status.*round-robin"):
        queue("orders", 1, status="fast")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(b"a", b"a"), ("ü", b"\xc3\xbc"), (bytearray(b"b"), b"b"), (memoryview(b"c"), b"c")],
)
def test_a_payload_is_bytes_or_text(given: arguments.Payload, expected: bytes) -> None:
    assert arguments.payload_bytes(given) == expected


@pytest.mark.parametrize(
    ("given", "words"), [("\ud800", "not valid Unicode"), (17, "got int"), (None, "got NoneType")]
)
def test_anything_else_is_no_payload(given: Any, words: str) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        arguments.payload_bytes(given)


def test_more_headers_follow_the_standard_ones() -> None:
    request = queue("orders", 1, tag="t", handler="h", wait=False, headers=[("X-Own", "1")])
    assert request.headers == (
        ("Channel-Name", "orders"),
        ("Queue-Id", "1"),
        ("Delivery-Handler", "h"),
        ("Queue-Tag", "t"),
        ("Wait-For-Acknowledge", "0"),
        ("X-Own", "1"),
    )


# --- The other direction: what the original server was recorded to answer -------------------------


def greeted(golden: Frame) -> ClientMachine:
    """A machine of the recorded client, taken in by the original server."""
    machine = ClientMachine(
        ConnectionInformation(golden.source), ClientLimits(), lambda: golden.message_id
    )
    machine.start(0.0)
    preamble, accepted = recorded("real-000", "s2c")
    machine.receive(preamble + frame_of(accepted).replace(target=golden.source).raw, 0.0)
    assert machine.accepted
    return machine


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_originals_answers_are_understood(name: str) -> None:
    golden = frame_of(recorded(name, "c2s")[0])
    machine = greeted(golden)
    pending = machine.request(OPERATIONS[name](golden.target), 0.0)
    for data in recorded(name, "s2c"):
        machine.receive(data, 1.0)
    assert pending.done
    assert pending.error is None
    assert machine.lost is None


@pytest.mark.parametrize(
    ("name", "index", "reason"),
    [
        ("real-049", 1, None),
        ("real-051", 1, None),
        ("real-052", 0, "my-reason"),
        ("real-053", 1, "none"),
    ],
)
def test_the_originals_acknowledges_are_understood(
    name: str, index: int, reason: str | None
) -> None:
    golden = frame_of(recorded(name, "c2s")[index])
    machine = greeted(golden)
    pending = machine.push(
        golden.target, golden.content_type, golden.payload, (), 0.0, confirm=True
    )
    for data in recorded(name, "s2c"):
        machine.receive(data, 1.0)
    assert pending.done
    assert getattr(pending.error, "reason", None) == reason


def test_everything_the_original_was_recorded_to_send_is_taken() -> None:
    taken = 0
    for path in sorted(CAPTURES.glob("real-*.json")):
        machine = greeted(frame_of(recorded("real-005", "c2s")[0]))
        for item in json.loads(path.read_text(encoding="utf-8")):
            data = bytes.fromhex(item["hex"])
            if item["dir"] == "s2c" and data and data[:4] != b"TMQP" and "total_bytes" not in item:
                machine.receive(data, 1.0)
                assert machine.lost is None, path.name
                taken += 1
    assert taken > 200


def test_terms_as_headers() -> None:
    assert requests.terms_headers(None, None, None, None, None) == ()
    assert requests.terms_headers(0, -1, 0, "timeout", 127) == (
        ("Window", "0"),
        ("Credit", "-1"),
        ("Acknowledge-Timeout", "0"),
        ("Return", "timeout"),
        ("Consumer-Priority", "127"),
    )
    assert requests.terms_headers(None, None, None, None, 5, True) == (
        ("Consumer-Priority", "5"),
        ("Exclusive", "1"),
    )
    no_more = requests.terms_headers(None, None, None, None, None, exclusive=False)
    assert no_more == (("Exclusive", "0"),)
    assert requests.terms_headers(None, None, float("inf"), None, None) == (
        ("Acknowledge-Timeout", "-1"),
    )
    assert requests.terms_headers(None, None, 0.000_1, None, None) == (
        ("Acknowledge-Timeout", "1"),
    )
    for wrong in (
        (-2, None, None, None, None),
        (None, -2, None, None, None),
        (None, None, -0.1, None, None),
        (None, None, float("nan"), None, None),
        (None, None, None, "never", None),
        (None, None, None, None, 128),
        (None, None, None, None, -1),
    ):
        with pytest.raises(LocalProtocolError):
            requests.terms_headers(*wrong)
    with pytest.raises(LocalProtocolError):
        requests.set_terms("c", ())
    for seconds in (0.0, -1.0, float("inf")):
        with pytest.raises(LocalProtocolError):
            requests.extend("c", 1, "m", seconds)


def test_a_new_connection_is_joined_with_the_terms_of_last() -> None:
    standing = Standing()
    standing.note(requests.set_terms("c", requests.terms_headers(9, None, None, None, None)), 0)
    assert standing.requests() == []
    first = requests.terms_headers(1, 5, None, "front", None)
    standing.note(requests.join("C", terms=first), 0)
    standing.note(requests.set_terms("c", requests.terms_headers(2, None, 3, None, None)), 0)
    standing.note(requests.grant("c", 7), 0)
    standing.note(requests.grant("c", 8), 404)
    (again,) = standing.requests()
    assert again.target == "C"
    assert dict(again.headers) == {
        "Window": "2", "Credit": "7", "Return": "front", "Acknowledge-Timeout": "3000",
    }  # fmt: skip
    standing.note(requests.join("c"), 0)
    (again,) = standing.requests()
    assert "Credit" not in dict(again.headers)
    assert standing.joins == ("C",)
