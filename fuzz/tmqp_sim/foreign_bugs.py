"""The bugs that are planted between doors of different kinds; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp.blocks import FLAG_DOOR_SHIFT
from tmqp.frames import Frame
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.delivery import batch_checks
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.operations.clients import Clients
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.looks import Looks
from tmqp_server.shell.outbound import Outbound
from tmqp_server.storage.forms import StoredForms

__all__ = ["FOREIGN_BUGS"]


def _of_another(original: Any) -> Any:
    bodies: list[bytes] = []

    def of(self: Letters, message: Message, channel: str = "") -> Letter:
        letter: Letter = original(self, message, channel)
        bodies.append(letter.body)
        letter.body = bodies[-2:][0]
        return letter

    return of


def _forgets_its_door(original: Any) -> Any:
    def flags(self: StoredForms, message: Message) -> int:
        found: int = original(self, message)
        return found & ((1 << FLAG_DOOR_SHIFT) - 1) | NativeDoor.number << FLAG_DOOR_SHIFT

    return flags


def _only_its_own(original: Any) -> Any:
    def encode(self: NativeDoor, effect: Deliver) -> bytes:
        assert isinstance(effect.message.wire, Frame), "this door delivers what it received"
        data: bytes = original(self, effect)
        return data

    return encode


def _always(original: Any) -> Any:
    def reads(self: Hub, number: int) -> bool:
        return True

    return reads


def _outlived(original: Any) -> Any:
    def let_go(self: Clients, session: Session) -> None:
        session.branches = None
        original(self, session)

    return let_go


def _of_its_client(original: Any) -> Any:
    def joined(branch: Session, number: int) -> Session | None:
        found: Session | None = original(branch, number)
        return None if found is None else branch

    return joined


def _not_held(original: Any) -> Any:
    def hold(self: Outbound) -> None:
        pass

    return hold


FOREIGN_BUGS: Final = (
    (
        "clear-in-a-handshake", "what is sent while a connection changes to TLS is sent at once",
        Outbound, "hold", _not_held,
    ),
    (
        "branch-outlives", "branches do not end with their connection",
        Clients, "let_go", _outlived,
    ),
    (
        "branch-answers-for-none", "a batch takes a branch's answers for those of its connection",
        batch_checks, "_one_of", _of_its_client,
    ),
    (
        "stopped-and-read", "a peer is read from although its session has stopped it",
        Looks, "reads", _always,
    ),
    (
        "letter-of-another", "a message that came by another door has the one before's contents",
        Letters, "of", _of_another,
    ),
    (
        "forgets-its-door", "what is kept does not say by which door it came",
        StoredForms, "_flags", _forgets_its_door,
    ),
    (
        "only-its-own", "a door does not deliver what came in by another one",
        NativeDoor, "encode_delivery", _only_its_own,
    ),
)  # fmt: skip
