"""The bugs that are planted where a message is saved again; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.effects import Erase
from tmqp_server.storage.journal import Journal

__all__ = ["COPY_BUGS"]


def _only_the_new(original: Any) -> Any:
    def take(self: Journal) -> Any:
        self._replaced = []
        return original(self)

    return take


def _goes_anyway(original: Any) -> Any:
    def erase(self: Journal, effect: Erase) -> None:
        depends = effect.depends
        effect.depends = False
        original(self, effect)
        effect.depends = depends  # the audit looks at it as well

    return erase


#: What a mutant is made of.
COPY_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "old-copies", "the older copy of a message that was saved again stays on the disk",
        Journal, "take", _only_the_new,
    ),
    (
        "unsure-copies", "a copy that may be the only one goes though the newer one is not written",
        Journal, "erase", _goes_anyway,
    ),
)  # fmt: skip
