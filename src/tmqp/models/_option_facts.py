"""What an option of a queue or a channel has beside its property on the wire."""

from __future__ import annotations

__all__ = ["OptionFacts"]


class OptionFacts:
    """What is declared of an option beside its property on the wire.

    :ivar initial: what holds where nobody says anything (F73).
    :ivar meaning: what it does, as the end of the sentence "this option says ...".
    :ivar own: a server's name of it, in its configuration too.
    :ivar older: the name under which stores keep it, and which a configuration may still use.
    :ivar words: the texts that it may be; empty for any.
    """

    __slots__ = ("initial", "meaning", "older", "own", "words")

    def __init__(
        self, initial: object, meaning: str, own: str, older: str, words: tuple[str, ...]
    ) -> None:
        self.words = words
        self.initial = initial
        self.meaning = meaning
        self.own = own
        self.older = older
