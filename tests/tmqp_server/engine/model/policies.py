"""What the built-in delivery handlers decide, as a table: their documentation, row by row."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["POLICIES", "Policy"]


@dataclass(frozen=True)
class Policy:
    """What one handler decides at each step at which any of them decides anything.

    ``receipt``: tell the producer on receipt, ``always``, if ``asked``, when ``saved``, that it is
    ``refused``, or never.  ``takes``: whether a push is taken in.  ``sent``: tell when it was sent.
    ``passes``: pass the consumer's answer on.  ``refused_back`` and ``silent_back``: where a
    message goes that was refused, or not answered for; ``silent_asked`` is for those only whose
    producer asked.  ``silent_nack``: tell the producer that nobody answered.
    """

    takes: bool = True
    receipt: str = ""
    sent: bool = False
    passes: bool = False
    refused_back: str = ""
    silent_back: str = ""
    silent_asked: bool = False
    silent_nack: bool = False


POLICIES = {
    "allow-all": Policy(),
    "ack-if-asked": Policy(receipt="asked", silent_back="end", silent_asked=True),
    "retry-timeouts": Policy(receipt="asked", silent_back="end"),
    "ack-received": Policy(receipt="always"),
    "ack-sent": Policy(sent=True),
    "ack-consumer": Policy(passes=True, silent_nack=True),
    "ack-ifsaved": Policy(receipt="saved", silent_back="end"),
    "reject": Policy(takes=False),
    "reject-nack": Policy(takes=False, receipt="refused"),
    "putback-start": Policy(refused_back="start", silent_back="start"),
    "putback-end": Policy(refused_back="end", silent_back="end"),
}
