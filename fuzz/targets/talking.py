"""What fuzz targets share: bytes are cut, and spoken to a door, a hub and a broker."""

from __future__ import annotations

from tmqp.testing import Seeded, pieces
from tmqp_server.doors.port import Door
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Fault

__all__ = ["cut", "speak"]


def cut(data: bytes) -> tuple[list[bytes], bytes]:
    """The first byte says how the rest is cut."""
    if not data:
        return [], b""
    return pieces(Seeded(data[0]), data[1:]), data[1:]


def speak(spoken: Door, chunks: list[bytes]) -> bytes:
    """What one session is answered to its bytes; nothing else may come of them."""
    broker = Broker(EngineLimits(max_channels=10, max_work_per_step=50))
    hub = Hub(broker, 4_096)
    hub.open(1, spoken, 0.0)
    said = b""
    for chunk in chunks:
        more = hub.receive(1, chunk, 1.0)
        said += _sent(hub)
        while more or hub.woken:
            hub.woken.clear()
            more = hub.go_on(1, 1.0)
            said += _sent(hub)
    for _ in range(100):
        due = hub.broker_deadline()
        if due is None or due > 1.0:
            break
        hub.on_broker_deadline(1.0)
    said += _sent(hub)
    hub.receive_eof(1, 2.0)
    said += _sent(hub)
    hub.forget(1, 3.0)
    faults = [each.error for each in hub.take_outside() if isinstance(each, Fault)]
    assert not faults, faults
    assert [queue for queue in broker.queues() if queue.imbalance()] == []
    return said


def _sent(hub: Hub) -> bytes:
    """What is to be sent, all of which leaves at once."""
    said = b"".join([data for _, data in hub.take_outbound()])
    while hub.awaited:
        hub.written(1, 1.0)
        said += b"".join([data for _, data in hub.take_outbound()])
    return said
