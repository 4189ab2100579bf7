"""Custom code inside a server: who may connect, who may do what, and custom messages.

    PYTHONPATH=examples tmqp-server --config examples/access_hooks.toml

A client with the token ``north-...`` is a clerk of the shop ``north``: it may do everything in the
channels of this shop, ``north-...``, and nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest

from tmqp_server import Access, Admission, Answer, Applicant, CustomMessage, Identity

__all__ = ["ShopAccess", "echo"]


class ShopAccess(Access):
    """Clerks, each of one shop.

    :param shops: the names of the shops.
    :param word: the secret part of each token, after the shop's name; a real server would query a
        database.
    """

    keep_s = 60.0  # otherwise every push would call the method again

    def __init__(self, shops: Iterable[str], word: str = "sesame") -> None:
        self._tokens = {shop: f"{shop}-{word}" for shop in shops}

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """Admit the client and attach its shop as ``data``."""
        found = None
        for shop, token in self._tokens.items():
            if compare_digest(token.encode(), applicant.token.encode()):
                found = shop
        return found is not None and Admission(data=found)

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Allow everything in the shop's own channels; a refusal is not cached."""
        if subject.lower().startswith(f"{who.data}-"):
            return True
        return Answer(right == "custom")


async def echo(message: CustomMessage) -> None:
    """Send a message back to its client."""
    if message.wants_response:
        await message.respond(0, message.payload)
    else:
        await message.reply(message.payload, content_type=message.content_type)
