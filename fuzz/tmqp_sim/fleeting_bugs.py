"""The bugs that are planted in the destroying of what is empty; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.operations import administration
from tmqp_server.engine.operations.administration import Administration

__all__ = ["FLEETING_BUGS"]


def _stays(original: Any) -> Any:
    def destroy(self: Administration) -> None:
        self._core.emptied.clear()

    return destroy


def _goes_with_messages(original: Any) -> Any:
    """Whoever leaves last takes all queues along, full ones too."""

    def part(self: Administration, session: Any, channel: Any) -> None:
        module: Any = administration
        right = module.is_disposable
        module.is_disposable = lambda _: True
        try:
            original(self, session, channel)
        finally:
            module.is_disposable = right

    return part


#: Name, words, owner, attribute, and what makes the bug.
FLEETING_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "empty-stays", "a queue of a deserted channel stays when it becomes empty",
        Administration, "destroy_emptied", _stays,
    ),
    (
        "full-goes", "a deserted channel is destroyed with messages in its queues",
        Administration, "_part", _goes_with_messages,
    ),
)  # fmt: skip
