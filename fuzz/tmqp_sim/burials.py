"""What dead letters say of themselves, checked by those who get them.

The simulation's queues of dead letters get what was put back too often.  Whoever gets such a
message is told why, from which queue, and after how many sendings; whoever gets any other is told
nothing of the kind, whatever its producer wrote.
"""

from __future__ import annotations

from typing import Final

from tmqp.extensions import (
    DEAD_LETTER_HEADERS,
    HEADER_DEAD_LETTER_ATTEMPTS,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DEAD_LETTER_REASON,
)
from tmqp.frames import Frame
from tmqp_sim.history import Place
from tmqp_sim.world import Violation

__all__ = ["FORGED", "check_letter"]

#: What a producer writes who wants his message to pass for a dead letter.
FORGED: Final = ((HEADER_DEAD_LETTER_REASON, "full"), (HEADER_DEAD_LETTER_ATTEMPTS.lower(), "77"))
_NAMES: Final = frozenset([name.lower() for name in DEAD_LETTER_HEADERS])


def check_letter(frame: Frame, origin: Place, here: tuple[str, int]) -> bool:
    """Whether a message that came from *here* and was pushed into *origin* is a dead letter.

    :raises Violation: when it does not say what it must, or says more.
    """
    said = [(name, value) for name, value in frame.headers if name.lower() in _NAMES]
    if here == origin.key:
        if said:
            raise Violation("letters", f"{frame.message_id} of {origin} says {said}")
        return False
    found = dict(said)
    wanted = {
        HEADER_DEAD_LETTER_REASON: "put-backs",
        HEADER_DEAD_LETTER_QUEUE: f"{origin.channel};{origin.queue_id}",
    }
    attempts = found.pop(HEADER_DEAD_LETTER_ATTEMPTS, "")
    if len(said) != len(_NAMES) or found != wanted:
        raise Violation("letters", f"{frame.message_id}, a dead letter of {origin}, says {said}")
    # Each put-back that counts follows a sending.
    if not attempts.isdigit() or int(attempts) <= origin.put_back_limit:
        text = f"{frame.message_id} was put back by {origin} after {attempts!r} sendings only"
        raise Violation("letters", text)
    return True
