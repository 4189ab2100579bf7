"""The facts about an option of a queue or a channel, in addition to its property on the wire."""

from __future__ import annotations

__all__ = ["OptionFacts"]


class OptionFacts:
    """The declaration of an option, in addition to its property on the wire.

    :ivar initial: the default value (F73).
    :ivar meaning: what it does, as the end of the sentence "this option says ...".
    :ivar own: the server's name for it, also in the configuration.
    :ivar older: its name in stores, which a configuration may still use.
    :ivar words: the allowed texts; empty for any.
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
