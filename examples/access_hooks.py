"""Code of one's own inside a server: who may connect, who may do what, and custom messages.

    PYTHONPATH=examples tmqp-server --config examples/access_hooks.toml

Whoever brings the token ``north-...`` is a clerk of the shop ``north``: he may do everything in the
channels of his shop, ``north-...``, and nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest

from tmqp_server import Access, Admission, Answer, Applicant, CustomMessage, Identity

__all__ = ["ShopAccess", "echo"]


class ShopAccess(Access):
    """Clerks and their shops.

    :param shops: their names.
    :param word: what follows the shop's name in its token; a real one would ask a database.
    """

    keep_s = 60.0  # so that not each single push is asked about

    def __init__(self, shops: Iterable[str], word: str = "sesame") -> None:
        self._tokens = {shop: f"{shop}-{word}" for shop in shops}

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """The shop whose token it is goes along with the client as ``data``."""
        found = None
        for shop, token in self._tokens.items():
            if compare_digest(token.encode(), applicant.token.encode()):
                found = shop
        return found is not None and Admission(data=found)

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Everything about the shop's own channels; to tell of a no only once, it is not kept."""
        if subject.lower().startswith(f"{who.data}-"):
            return True
        return Answer(right == "custom")


async def echo(message: CustomMessage) -> None:
    """Tell a client what it has said."""
    if message.wants_response:
        await message.respond(0, message.payload)
    else:
        await message.reply(message.payload, content_type=message.content_type)
