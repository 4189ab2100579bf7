"""What a client over HTTP has taken is its own until its time is up, and no longer."""

from __future__ import annotations

from tests.tmqp_server.doors.http.stage import QUEUE, Stage
from tmqp_server.doors.http.limits import HttpLimits


def test_what_has_timed_out_leaves_room_for_other_messages() -> None:
    stage = Stage(HttpLimits(max_held_deliveries=1))
    stage.make_queue("orders", 1, "pull", AcknowledgeTimeout=1_000, handler="retry-timeouts")
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    take = f"{QUEUE}/deliveries?ack=manual"
    assert peer.ask("POST", take).items
    assert peer.ask("POST", take).status == 429
    stage.sleep(1.5)
    assert peer.ask("POST", f"{QUEUE}/deliveries/m1/ack").status == 404
    assert [each["id"] for each in peer.ask("POST", take).items] == ["m1"]
    assert peer.ask("POST", f"{QUEUE}/deliveries/m1/ack").status == 204
