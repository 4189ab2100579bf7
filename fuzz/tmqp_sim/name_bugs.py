"""The bugs that are planted in names of channels that differ by case; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.model.channels import Channel, ChannelTable

__all__ = ["NAME_BUGS"]


def _in_any_case(_original: Any) -> Any:
    def find(self: ChannelTable, name: str) -> Channel | None:
        return self.by_key.get(name.lower())

    return find


def _real(_original: Any) -> Any:
    return property(lambda self: self.name)


#: What a mutant is made of.
NAME_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "found-in-any-case", "two names that differ by case are one channel",
        ChannelTable, "_find_exact", _in_any_case,
    ),
    (
        "decision-misnamed", "a decision about a name that differs by case bears the real name",
        Channel, "shared_name", _real,
    ),
)  # fmt: skip
