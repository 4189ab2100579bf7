"""Names that mean several destinations: ``A,B``, ``A.*`` and ``A.>``.

A consumer of a name with wildcards joins channel by channel: the existing ones, which the broker
lists (:func:`listed_by`), and each that is created later, which the broker reports.  Each is joined
by a separate command of the client, so rights are checked channel by channel, and a channel's own
authenticator decides about it.

A table of patterns in the broker could join in the same step that creates a channel.  The doors do
it instead, for three reasons.  The broker would have to know in advance what the client may join,
but rights, which may be decided by a program, are not its task.  It would have to distinguish names
by the rules of each door: names that differ by case only, escaped names, topics.  And the doors
would still need nearly all of their code, because they track the subscription's channels, its limit
of matches and removed channels.  Nor can the message that creates a topic be held until the
consumers have joined, as a push is that waits for room: each of them may first have to read its
earlier messages, and a producer would wait for the slowest.

The price is that a topic that a message creates may have forwarded that message before the consumer
has joined.  A producer of OpenWire that names its topic creates it when it begins, so nothing is
missed there.
"""

from __future__ import annotations

from typing import Final

from tmqp.names import EXACT_MARK
from tmqp_server.doors.names import DoorNames

__all__ = ["MAX_COMPOSITE", "TOPIC_SCHEME", "has_wildcards", "listed_by", "matches", "name_like"]

#: How the name of a topic's channel begins.
TOPIC_SCHEME: Final = "topic://"

#: Destinations that one name may mean.
MAX_COMPOSITE: Final = 32


def has_wildcards(name: str) -> bool:
    """Whether a name has wildcards, alone between its dots."""
    if "*" not in name and ">" not in name:
        return False
    parts = name.split(".")
    return "*" in parts or ">" in parts


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern: ``*`` stands for one part, ``>`` for all further parts, or
    none."""
    wanted = pattern.split(".")
    found = name.split(".")
    for at, part in enumerate(wanted):
        if part == ">":
            return True
        if at >= len(found) or part not in ("*", found[at]):
            return False
    return len(wanted) == len(found)


def listed_by(*, is_topic: bool) -> str:
    """The pattern for listing the channels that may match.  It cannot be narrower, because
    characters of a name may be escaped in its channel."""
    return f"{TOPIC_SCHEME}*" if is_topic else "*"


def name_like(pattern: str, channel: str, names: DoorNames, *, is_topic: bool) -> str:
    """The name of the queue or topic of a channel, if it matches a pattern; else empty."""
    name = names.foreign_name(channel.removeprefix(EXACT_MARK)).decode("utf-8", "replace")
    if name.startswith(TOPIC_SCHEME) != is_topic:
        return ""
    name = name.removeprefix(TOPIC_SCHEME)
    return "" if "://" in name or not matches(pattern, name) else name
