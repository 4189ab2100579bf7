"""Checks of ``mode=drain``: no other reader may need the messages."""

from __future__ import annotations

from collections.abc import Iterable

from tmqp.constants import Operation
from tmqp.models import ModelError, QueueInformation, parse_list
from tmqp_spark.catalog import QueueState
from tmqp_spark.errors import DecodeFailed, InvalidOption
from tmqp_spark.options import SourceOptions
from tmqp_spark.transport import BrokerLink

__all__ = ["check_drain_options", "check_drained"]


def check_drain_options(options: SourceOptions) -> None:
    """Check that a drain commits, because the broker keeps messages until it does.

    :raises InvalidOption: if it does not.
    """
    if options.mode != "drain":
        return
    if not options.group:
        raise InvalidOption("mode=drain needs the option group: messages are kept until it commits")
    if options.commit_mode == "none":
        raise InvalidOption("mode=drain commits: commitMode must be eager or lagged")


def check_drained(link: BrokerLink, states: Iterable[QueueState]) -> None:
    """Check that messages of these queues time out, because otherwise they would accumulate.

    :raises InvalidOption: if they do not; the text names a queue.
    """
    channels = sorted({state.channel for state in states})
    wanted = {(state.channel, state.queue) for state in states}
    for channel in channels:
        answer = link.ask(int(Operation.QUEUE_LIST), f"queues of {channel}", channel)
        try:
            found = parse_list(QueueInformation, answer.payload)
        except ModelError as error:
            raise DecodeFailed(
                f"{link.options.url}: the list of queues is invalid: {error}"
            ) from None
        for queue in found:
            if (channel, queue.id) in wanted and not queue.message_timeout_ms:
                raise InvalidOption(
                    f"{link.options.url} {channel}/{queue.id}: mode=drain would leave every message"
                    " in the queue, which has no MessageTimeout; set one (with Durable and"
                    " RetainForReaders, so that the group still gets them), or use mode=tap"
                )
