"""The options of queues: words and numbers of the status, and each option set and changed."""

from __future__ import annotations

import json
from typing import Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Properties
from tmqp.testing.conformance.steps import Answer, Step
from tmqp.testing.conformance.talk import ask, connect, create_queue, response

__all__ = ["CASES", "shown"]

_UPDATE: Final = Operation.UPDATE_QUEUE
_INFORMATION: Final = Operation.QUEUE_INFORMATION
_ID: Final = [("Queue-Id", "1")]
#: The words of the header Queue-Status, and what information calls them.
_WORDS: Final = (
    ("broadcast", "broadcast"),
    ("push", "push"),
    ("round", "roundrobin"),
    ("roundrobin", "roundrobin"),
    ("round-robin", "roundrobin"),
    ("pull", "pull"),
    ("cache", "cache"),
    ("pause", "paused"),
    ("paused", "paused"),
    ("stop", "stopped"),
    ("stoped", "stopped"),
    ("stopped", "stopped"),
    ("PUSH", "push"),
    ("RoundRobin", "roundrobin"),
)
#: The numbers of Status.
_NUMBERS: Final = ("broadcast", "push", "roundrobin", "pull", "cache", "paused", "stopped")
#: Options in JSON and where information shows them: slug, option, value, property.
_OPTIONS: Final = (
    ("first-acquirer", "SendOnlyFirstAcquirer", True, "OnlyFirstAcquirer"),
    ("request-acknowledge", "RequestAcknowledge", False, "RequestAcknowledge"),
    ("acknowledge-timeout", "AcknowledgeTimeout", 1_234, "AcknowledgeTimeout"),
    ("message-timeout", "MessageTimeout", 60_000, "MessageTimeout"),
    ("use-message-id", "UseMessageId", False, "UseMessageId"),
    ("wait-for-acknowledge", "WaitForAcknowledge", True, "WaitForAcknowledge"),
    ("hide-client-names", "HideClientNames", True, "HideClientNames"),
    ("message-limit", "MessageLimit", 17, "MessageLimit"),
)
_TRUTHS: Final = (
    ("1", "1", True),
    ("true", "true", True),
    ("upper-true", "TRUE", True),
    ("0", "0", False),
    ("yes", "yes", False),
)


def shown(
    line: str, properties: dict[str, object], queue: int = 1, channel: str = "$ch"
) -> list[Step]:
    """Request a queue's information, and expect these properties."""
    payload = Properties({"Id": queue, **properties})
    headers = [("Queue-Id", str(queue))]
    return ask(
        line, _INFORMATION, channel, headers=headers, code=Answer(response(0, payload=payload))
    )


def _word(word: str, status: str) -> Case:
    slug = f"upper-{word.lower()}" if word != word.lower() else word
    return case(
        f"server.queue.status-word-{slug}",
        f"Reads the status {word!r} in a header as {status}",
        "The words of a status have several spellings, in any case.",
        "F55 F68",
        connect("a"),
        create_queue("a", Queue_Status=word),
        shown("a", {"Status": status}),
        needs="admin",
    )


def _number(number: int, status: str) -> Case:
    return case(
        f"server.queue.status-number-{number}",
        f"Reads the status {number} in JSON as {status}",
        "Clients send the number, and two lists of numbers have been in use.",
        "F72 F68",
        connect("a"),
        create_queue("a", body=json.dumps({"Status": number}).encode()),
        shown("a", {"Status": status}),
        needs="admin",
    )


def _option(slug: str, option: str, value: object, name: str) -> tuple[Case, Case]:
    body = json.dumps({option: value}).encode()
    created = case(
        f"server.queue.create-{slug}",
        f"Creates a queue with {option}",
        "An option that is accepted and ignored surprises its user in production.",
        "F54 F70 F71",
        connect("a"),
        create_queue("a", body=body),
        shown("a", {name: value}),
        needs="admin",
    )
    updated = case(
        f"server.queue.update-{slug}",
        f"Changes {option} of a queue",
        "Options are changed while programs run, and the others must not change with them.",
        "F56 F68",
        connect("a"),
        create_queue("a", body=b'{"AcknowledgeTimeout":4321}'),
        ask("a", _UPDATE, "$ch", body, _ID),
        shown("a", {"AcknowledgeTimeout": 4_321, name: value}),
        needs="admin",
    )
    return created, updated


CASES: Final[tuple[Case, ...]] = (
    *[
        case(
            f"server.queue.wait-header-{slug}",
            f"Reads Wait-For-Acknowledge:{word} as {value}",
            "Only 1 and true, in any case, are true.",
            "F54",
            connect("a"),
            create_queue("a", Wait_For_Acknowledge=word),
            shown("a", {"WaitForAcknowledge": value}),
            needs="admin",
        )
        for slug, word, value in _TRUTHS
    ],
    *[_word(*each) for each in _WORDS],
    *[_number(number, status) for number, status in enumerate(_NUMBERS)],
    *[each for option in _OPTIONS for each in _option(*option)],
)
