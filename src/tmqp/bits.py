"""The bits and sizes of a frame's head; all masks of its first bytes are defined here.

The first eight bytes of each frame are its head (F1): two bytes of bits, the lengths of id, source
and target, two bytes of content type, and the tier, which is either the payload's length or says
how many bytes after the head have it (F4).

They are plain ``Final`` integers, because the compiler inlines these.
"""

from __future__ import annotations

from typing import Final

# fmt: off
__all__ = [
    "FIRST_ACQUIRER", "HAS_HEADER", "HEAD_BYTES", "HIGH_PRIORITY", "LARGEST_SHORT",
    "MARKED_TYPE_BITS", "MAX_U16", "PENDING_ACKNOWLEDGE", "PENDING_RESPONSE", "TIER_U16",
    "TIER_U32", "TIER_U64", "TTL_BITS", "TYPE_BITS",
]
# fmt: on

#: Of the first byte: for one consumer only.
FIRST_ACQUIRER: Final = 0x80
#: Of the first byte: ahead of regular messages; on an acknowledgement, the mark of one for a direct
#: message (F116).
HIGH_PRIORITY: Final = 0x40
#: Of the first byte: the message type (F2).
TYPE_BITS: Final = 0x3F
#: Of the first byte: the type and the mark, all but :data:`FIRST_ACQUIRER`.
MARKED_TYPE_BITS: Final = 0x7F

#: Of the second byte: the sender waits for a response.
PENDING_RESPONSE: Final = 0x80
#: Of the second byte: the sender waits for an acknowledgement.
PENDING_ACKNOWLEDGE: Final = 0x40
#: Of the second byte: a header block stands before the payload.
HAS_HEADER: Final = 0x20
#: Of the second byte: the time to live (F2, F11).
TTL_BITS: Final = 0x1F

#: Bytes of the head.
HEAD_BYTES: Final = 8
#: The longest payload whose length is the tier itself.
LARGEST_SHORT: Final = 252
#: The tiers after which the payload's length follows in two, four and eight bytes.
TIER_U16: Final = 253
TIER_U32: Final = 254
TIER_U64: Final = 255
#: The longest payload of :data:`TIER_U16`.
MAX_U16: Final = 65_535
