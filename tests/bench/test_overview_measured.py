"""The measurement of the overview's claims does what it times, with small numbers."""

from __future__ import annotations

import json

import pytest

from tmqp_bench import __main__ as command


def test_every_consumer_gets_every_message_and_every_queue_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["overview", "--build", "interpreted", "--consumers", "20", "--messages", "5"]
    assert command.main([*arguments, "--queues", "1200", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["broadcast"]["consumers"], shown["queues"]["queues"]) == (20, 1_200)
    assert shown["broadcast"]["deliveries_per_s"] > 0
    assert shown["queues"]["after_bytes"] > shown["queues"]["before_bytes"]
