"""The judgement at the end: pure functions over what the clients saw and the server sent.

Each returns complaints, none when all is well, so that a test can show it a bad history.

The heart is multiset algebra over the whole history, after everything has had its time: *lost* was
confirmed and never dealt with; *unexplained* came over a wire otherwise than the broker sent it;
*stuck* is still owed although nothing is in its way.  (What was *invented* is noticed at once,
see ``history.py``.)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from tmqp_sim.history import History, Place

__all__ = ["first_flags", "judge", "lost", "stuck", "unexplained", "untaken"]


def lost(history: History, lives: int) -> Iterator[str]:
    """What was confirmed and never dealt with.

    :param lives: how many lives the server had: what it had in memory only is gone with each.
    """
    for sent in history.sent.values():
        place = sent.place
        if place.promise != "once-or-more" or not sent.confirms or history.done(sent.uid):
            continue
        if sent.last_life < lives and not place.saves:
            continue
        if sent.uid in history.excused:
            continue
        got = len(history.receipts.get(sent.uid, ()))
        yield f"{sent.uid} of {place} was confirmed, came {got} times, and nobody dealt with it"


def untaken(
    history: History, accepted: Mapping[tuple[str, int], Iterable[str]], places: Iterable[Place]
) -> Iterator[str]:
    """What the broker took in, in its last life, for a place that promises so, and nobody got."""
    for place in places:
        if place.promise != "accepted":
            continue
        for uid in accepted.get(place.key, ()):
            if not history.done(uid):
                yield f"{uid} was accepted by {place} and nobody dealt with it, nor its dead letter"


def unexplained(
    history: History,
    sent: Mapping[int, Sequence[str]] | None,
    lapsed: Mapping[int, Container[str]] | None = None,
) -> Iterator[str]:
    """What came over a link is the beginning of what the broker sent over it, in its order.

    :param sent: by link, which is the session's number too; None if nobody counted.
    :param lapsed: by link what the client was told not to hand out any more: it may be missing.
    """
    if sent is None:
        return
    for link, uids in history.by_link.items():
        out = sent.get(link, ())
        gone = () if lapsed is None else lapsed.get(link, ())
        place = -1
        for at, uid in enumerate(uids):
            place += 1
            while place < len(out) and out[place] != uid and out[place] in gone:
                place += 1
            if place >= len(out) or out[place] != uid:
                wanted = out[place] if place < len(out) else "nothing more"
                yield f"{uid} came over link {link} as number {at + 1}, sent was {wanted}"
                break


def first_flags(history: History) -> Iterator[str]:
    """Messages that more consumers were told to be the first to have than can be (F87).

    Each push makes one first acquirer, and so does its dead letter; a message that comes back with
    a new life of the server has had its own, or may have had it.
    """
    for uid, receipts in history.receipts.items():
        first = sum(receipt.first for receipt in receipts)
        sent = history.sent[uid]
        per_push = 1 if sent.place.dead_letter is None else 2
        most = sent.pushes * per_push
        if first > most:
            yield f"{uid} had {first} first acquirers, pushed {sent.pushes} times"


def stuck(history: History, owed: Mapping[str, int]) -> Iterator[str]:
    """What should have come to an end.

    :param owed: what is left, by who or what has it.
    """
    for name, count in owed.items():
        if count:
            yield f"{name} still has {count}"
    for sent in history.sent.values():
        if sent.asks and not sent.confirms:
            yield f"{sent.uid} to {sent.place} was pushed {sent.pushes} times and never confirmed"


def judge(
    history: History,
    lives: int,
    sent: Mapping[int, Sequence[str]] | None,
    accepted: Mapping[tuple[str, int], Iterable[str]],
    owed: Mapping[str, int],
    lapsed: Mapping[int, Container[str]] | None = None,
) -> tuple[str, list[str]]:
    """The first kind of complaint there is, with its cases; empty when all is well."""
    for name, complaints in (
        ("lost", lost(history, lives)),
        ("lost", untaken(history, accepted, history.places.values())),
        ("duplicate", unexplained(history, sent, lapsed)),
        ("flags", first_flags(history)),
        ("stuck", stuck(history, owed)),
    ):
        found = list(complaints)
        if found:
            return name, found
    return "", []
