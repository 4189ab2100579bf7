"""Names of destinations that mean several: ``A,B``, ``A.*`` and ``A.>``.

A consumer of a name with wildcards joins channel by channel: those that there are, which the broker
lists (:func:`listed_by`), and each that is made later, of which the broker tells.  Each is joined
by a command of the client's own, so rights are asked about channel by channel, and a channel's own
authenticator decides about it.

A table of patterns in the broker would join in the very step that makes a channel.  The doors do it
instead, for three reasons.  The broker would have to know beforehand what the client may join, and
rights, which may be asked of a program, are none of its business.  It would have to tell names by
the rules of each door: what differs by case only, what is escaped, what is a topic.  And the doors
would keep nearly all that they have, for the subscription's channels, its limit of matches and what
becomes of a channel that is removed are theirs.  Nor can the message that makes a topic be held
until the consumers have joined, as a push is that waits for room: each of them may first have to
read what it was sent before, and a producer would wait for the slowest.

The price is that a topic which a message brings into being may have passed that message on before
the consumer has joined.  A producer of OpenWire that names its topic makes it when it begins, so
there nothing is missed.
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
    """Whether a name means all that are like it."""
    if "*" not in name and ">" not in name:
        return False
    parts = name.split(".")
    return "*" in parts or ">" in parts


def matches(pattern: str, name: str) -> bool:
    """Whether a name is like a pattern: ``*`` is one part of it, ``>`` any number of them."""
    wanted = pattern.split(".")
    found = name.split(".")
    for at, part in enumerate(wanted):
        if part == ">":
            return True
        if at >= len(found) or part not in ("*", found[at]):
            return False
    return len(wanted) == len(found)


def listed_by(*, is_topic: bool) -> str:
    """What finds, among all channels, those that may be like a pattern; a name's capitals may be
    escaped in its channel, so more cannot be said."""
    return f"{TOPIC_SCHEME}*" if is_topic else "*"


def name_like(pattern: str, channel: str, names: DoorNames, *, is_topic: bool) -> str:
    """The name of the queue or topic that a channel is, if it is like a pattern; else empty."""
    name = names.foreign_name(channel.removeprefix(EXACT_MARK)).decode("utf-8", "replace")
    if name.startswith(TOPIC_SCHEME) != is_topic:
        return ""
    name = name.removeprefix(TOPIC_SCHEME)
    return "" if "://" in name or not matches(pattern, name) else name
