"""The facts of Throttr that the cases are about."""

from __future__ import annotations

from typing import Final

__all__ = ["FACTS"]

FACTS: Final = {
    "T1": "INSERT makes a counter with a quota and a time to live; a live key is not changed.",
    "T2": "QUERY is answered with the quota, the unit, and the whole units that are left.",
    "T3": "UPDATE of the quota sets, adds or takes off; never more than there is.",
    "T4": "UPDATE of the time to live is in the key's own unit, and moves its end.",
    "T5": "SET and GET keep a value; its size has as many bytes as quotas have.",
    "T6": "SET of an existing buffer overwrites it.",
    "T7": "PURGE removes a key; a missing one is answered with 0x00.",
    "T8": "GET of a counter and QUERY of a buffer are answered with 0x00.",
    "T9": "A key ends at its deadline for every request, and is free at once.",
    "T10": "A unit, attribute or change that there is not is answered with 0x00.",
    "T11": "Each request is answered, in order, however the stream is cut.",
    "T12": "Keys and channels are any bytes.",
    "T13": "An unknown request is answered with 0x00 and ends the connection.",
    "T14": "SUBSCRIBE is answered with 0x01; the second to a channel adds nothing.",
    "T15": "UNSUBSCRIBE without a subscription is answered with 0x00.",
    "T16": "PUBLISH is answered with 0x01 if a subscriber gets the message, otherwise with 0x00.",
    "T17": "A push of 7.1 is 0x03, size and payload; the publisher gets none.",
    "T18": "A push of 7.3 is 0x19, sizes, channel, payload; a publisher's own precedes its status.",
    "T19": "WHOAMI is answered with the status and an id of 16 bytes, which CONNECTION takes.",
    "T20": "A connection's entry has 235 bytes in 7.1 and 237, with type and kind, in 7.3.",
    "T21": "INFO is answered with the status, 52 numbers of 8 bytes and the version: 433 bytes.",
    "T22": "A listing begins with the status, then come the number of fragments and these.",
    "T23": "STAT is answered with four numbers of 8 bytes; an unknown key with one 0x00.",
    "T24": "CHANNELS has 25 bytes and a name for each channel, CHANNEL 40 for each subscriber.",
    "T25": "A connection of 7.3 is on the channel * and on the one that its id names.",
    "T26": "EVENT (7.3) is answered with 0x01 and with what the request in it is answered with.",
}
