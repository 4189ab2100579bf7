"""A client with all its branches."""

from __future__ import annotations

from tmqp_server.engine.model.sessions import Session

__all__ = ["with_branches"]


def with_branches(session: Session) -> list[Session]:
    """A client and all its branches, given any of them."""
    client = session.parent or session
    return [client, *(client.branches or {}).values()]
