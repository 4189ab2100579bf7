"""The table of access rules: tokens, their roles, and the rights of each role.

Whatever no role allows is refused.  A role is a set of rights, each for the channels, queues,
clients or routers whose names match one of its patterns.  Patterns are those of the protocol's
lists (F53).  Their case matters for clients and routers, whose names are case-sensitive, but not
for channels (F46): otherwise a client could evade a pattern by spelling the channel differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.access.certificates import CertificatePatterns
from tmqp_server.access.patterns import fits
from tmqp_server.access.rights import (
    CANCEL,
    CLEAR_MESSAGES,
    CONFIGURE,
    CREATE_CHANNEL,
    CREATE_QUEUE,
    JOIN,
    MANAGE_CLIENTS,
    MANAGE_SERVER,
    OF_APPLICATIONS,
    OF_CHANNELS,
    OF_CLIENTS,
    OF_NOTHING,
    OF_SPACES,
    REMOVE_CHANNEL,
    REMOVE_QUEUE,
    RIGHTS,
    SEE_AUDIT,
    SEE_CHANNEL,
    SEE_CLIENTS,
    SEE_CONSUMERS,
    SEE_METRICS,
    SEE_NODES,
    SEE_ROUTERS,
    SEE_SERVER,
    SUBSCRIBE,
    UPDATE_CHANNEL,
    UPDATE_QUEUE,
)
from tmqp_server.access.tokens import TokenHash, hash_token

__all__ = [
    "ADMIN",
    "MONITOR",
    "OPEN",
    "OPERATOR",
    "TABLE",
    "AccessConfig",
    "AccessError",
    "Entry",
    "Role",
    "parse_access",
]

#: Kinds of access: everybody may do everything, the table decides, or the class of that path.
OPEN: Final = "open"
TABLE: Final = "table"

_ALL: Final = "all"
#: The keys that identify an entry, and those of them that are secret.
_PROOFS: Final = ("token", "password", "hash", "public_key", "common_name")
_SECRETS: Final = ("token", "password", "hash")
_EVERYTHING: Final = ("*",)
#: Hexadecimal digits of a fingerprint.
_FINGERPRINT: Final = 64
#: Tokens whose comparison is slow: all of them are compared for every client that brings one.
_MAX_SLOW: Final = 4
#: These are about a whole channel; with some queues only they would never be allowed.
_WHOLE_CHANNEL: Final = (JOIN, CREATE_CHANNEL, REMOVE_CHANNEL, SEE_CONSUMERS)


class AccessError(ValueError):
    """The table ``[access]`` is invalid; the text says why."""


@attrs.frozen
class Role:
    """A set of rights and the names for which they are valid.

    ``queues`` are pairs of the first and the last id; empty for all queues.
    """

    name: str
    rights: frozenset[str]
    channels: tuple[str, ...] = ()
    queues: tuple[tuple[int, int], ...] = ()
    clients: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    spaces: tuple[str, ...] = ()

    def allows(self, right: str, subject: str, queue_id: int) -> bool:
        """Whether the role allows this.  A right without a particular name (for a list, or an event
        of the whole server) needs the pattern ``*``.
        """
        if right not in self.rights:
            return False
        of = RIGHTS[right]
        if of == OF_CHANNELS:
            if self.queues and not any(low <= queue_id <= high for low, high in self.queues):
                return False
            return fits(subject, self.channels, any_case=True)
        if of == OF_CLIENTS:
            return fits(subject, self.clients)
        if of == OF_APPLICATIONS:
            return fits(subject, self.applications)
        if of == OF_SPACES:
            return fits(subject, self.spaces)
        return of == OF_NOTHING or fits(subject, self.routers)


#: The role that allows everything; it exists without a declaration.
ADMIN: Final = Role(
    "admin",
    frozenset(RIGHTS),
    channels=_EVERYTHING,
    clients=_EVERYTHING,
    routers=_EVERYTHING,
    applications=_EVERYTHING,
    spaces=_EVERYTHING,
)

#: The role that sees everything except the contents of messages and the audit.
MONITOR: Final = Role(
    "monitor",
    frozenset(
        {
            SEE_CHANNEL,
            SEE_CLIENTS,
            SEE_CONSUMERS,
            SEE_METRICS,
            SEE_NODES,
            SEE_ROUTERS,
            SEE_SERVER,
            SUBSCRIBE,
        }
    ),
    channels=_EVERYTHING,
    routers=_EVERYTHING,
)
#: The role that also manages, and still sees no message: neither does it lead any elsewhere, as
#: routers and feeds would.
OPERATOR: Final = Role(
    "operator",
    MONITOR.rights
    | {
        CANCEL,
        CLEAR_MESSAGES,
        CONFIGURE,
        CREATE_CHANNEL,
        CREATE_QUEUE,
        MANAGE_CLIENTS,
        MANAGE_SERVER,
        REMOVE_CHANNEL,
        REMOVE_QUEUE,
        SEE_AUDIT,
        UPDATE_CHANNEL,
        UPDATE_QUEUE,
    },
    channels=_EVERYTHING,
    routers=_EVERYTHING,
)


@attrs.frozen
class Entry:
    """An entry of ``[access]`` for clients with this token, password, public key or certificate, or
    none.

    ``hash`` is that of the token, or of the password if there is a ``user``.

    ``client_ids``, ``client_names`` and ``client_types`` are patterns for the names that such a
    client may give itself, because others send direct messages to these names.
    """

    name: str
    roles: tuple[Role, ...]
    hash: TokenHash | None = None
    client_ids: tuple[str, ...] = _EVERYTHING
    client_names: tuple[str, ...] = _EVERYTHING
    client_types: tuple[str, ...] = _EVERYTHING
    node: bool = False
    user: str = ""
    public_key: str = attrs.field(default="", repr=False)
    common_name: str = ""
    certificate: CertificatePatterns | None = None


@attrs.frozen
class AccessConfig:
    """The access rules: who may connect, and what they may do.

    ``kind`` is ``open``, ``table``, or the path ``module:Class`` of the user's own
    :class:`tmqp_server.Access`, made with ``arguments``.  ``certificates`` are the entries for
    clients with a certificate, of which the first match applies; ``anonymous`` is the entry for
    clients without credentials, None to refuse them.
    """

    kind: str = OPEN
    tokens: tuple[Entry, ...] = ()
    anonymous: Entry | None = None
    certificates: tuple[Entry, ...] = ()
    arguments: Mapping[str, Any] = attrs.field(factory=dict)


def parse_access(table: Mapping[str, Any]) -> AccessConfig:
    """Read the table ``[access]`` of a configuration.

    :raises AccessError: if it is invalid, with the reason.
    """
    known = ("kind", "roles", "tokens", "certificates", "anonymous", "arguments")
    _check_keys(table, known, "")
    kind = table.get("kind", TABLE)
    if not isinstance(kind, str) or not kind:
        raise AccessError("kind is 'open', 'table' or 'module:Class'")
    if kind != TABLE:
        for key in ("roles", "tokens", "certificates", "anonymous"):
            if key in table:
                raise AccessError(f"{key} belongs to the kind 'table', not to {kind!r}")
        arguments = _table_of(table, "arguments")
        if kind == OPEN and arguments:
            raise AccessError("arguments belong to a class of your own")
        if kind != OPEN and not _is_path(kind):
            raise AccessError(f"kind is 'open', 'table' or 'module:Class', got {kind!r}")
        return AccessConfig(kind, arguments=dict(arguments))
    if "arguments" in table:
        raise AccessError("arguments belong to a class of your own, not to the kind 'table'")
    roles = {each.name: each for each in (ADMIN, MONITOR, OPERATOR)}
    for name, fields in _table_of(table, "roles").items():
        if name == ADMIN.name:
            raise AccessError("the role 'admin' is predefined, and allows everything")
        roles[name] = _role(name, fields)
    listed = table.get("tokens", [])
    if not isinstance(listed, list):
        raise AccessError("tokens is a list of tables: [[access.tokens]]")
    tokens = [_entry(f"tokens[{place}]", each, roles) for place, each in enumerate(listed)]
    if sum(entry.hash is not None and entry.hash.slow for entry in tokens) > _MAX_SLOW:
        raise AccessError(f"at most {_MAX_SLOW} tokens may have a scrypt hash; use sha256")
    shown = table.get("certificates", [])
    if not isinstance(shown, list):
        raise AccessError("certificates is a list of tables: [[access.certificates]]")
    certificates = [
        _certificate(f"certificates[{place}]", each, roles) for place, each in enumerate(shown)
    ]
    anonymous = None
    if "anonymous" in table:
        anonymous = _entry("anonymous", table["anonymous"], roles, token=False)
    if not tokens and not certificates and anonymous is None:
        raise AccessError("no client could connect: add [[access.tokens]] or [access.anonymous]")
    return AccessConfig(kind, tuple(tokens), anonymous, tuple(certificates))


def _is_path(text: str) -> bool:
    module, _, name = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), name))


def _role(name: str, fields: object) -> Role:
    where = f"roles.{name}"
    if not isinstance(fields, dict):
        raise AccessError(f"{where} is a table: [access.{where}]")
    known = ("rights", "channels", "queues", "clients", "routers", "applications", "spaces")
    _check_keys(fields, known, f"{where}.")
    rights = frozenset(_texts(fields, "rights", where))
    if _ALL in rights:
        rights = frozenset(RIGHTS)
    for right in sorted(rights):
        if right not in RIGHTS:
            near = _nearest(right, RIGHTS)
            raise AccessError(f"{where}: {right!r} is not a right{_hint(near)}")
    if not rights:
        raise AccessError(f"{where}.rights is missing: a list of rights, or ['all']")
    queues = _ranges(fields.get("queues", []), where)
    if queues:
        for right in _WHOLE_CHANNEL:
            if right in rights:
                raise AccessError(
                    f"{where}: {right} is about a whole channel; a role with queues cannot have it"
                )
    return Role(
        name,
        rights,
        _patterns(fields, "channels", where),
        queues,
        _patterns(fields, "clients", where),
        _patterns(fields, "routers", where),
        _patterns(fields, "applications", where),
        _patterns(fields, "spaces", where),
    )


def _entry(where: str, fields: object, roles: Mapping[str, Role], *, token: bool = True) -> Entry:
    if not isinstance(fields, dict):
        raise AccessError(f"{where} is a table")
    keys = ["roles", "client_ids", "client_names", "client_types"]
    if token:
        keys += ["name", *_PROOFS, "user", "node"]
    _check_keys(fields, keys, f"{where}.")
    names = _texts(fields, "roles", where)
    for name in names:
        if name not in roles:
            near = _nearest(name, roles)
            raise AccessError(f"{where}: there is no role {name!r}{_hint(near)}")
    node = fields.get("node", False)
    if not isinstance(node, bool):
        raise AccessError(f"{where}.node is true or false")
    if not names and not node:
        raise AccessError(f"{where}.roles is missing: a list of roles")
    name = fields.get("name", "" if token else "anonymous")
    if not isinstance(name, str):
        raise AccessError(f"{where}.name must be a string")
    proof = _proof(fields, where) if token else ""
    return Entry(
        name or where,
        tuple(roles[each] for each in names),
        _hash(fields, proof, where) if proof in _SECRETS else None,
        _patterns(fields, "client_ids", where, _EVERYTHING),
        _patterns(fields, "client_names", where, _EVERYTHING),
        _patterns(fields, "client_types", where, _EVERYTHING),
        node,
        fields.get("user", ""),
        fields[proof] if proof == "public_key" else "",
        fields[proof] if proof == "common_name" else "",
    )


def _certificate(where: str, fields: object, roles: Mapping[str, Role]) -> Entry:
    """One of ``[[access.certificates]]``."""
    if not isinstance(fields, dict):
        raise AccessError(f"{where} is a table")
    kinds = [each.name for each in attrs.fields(CertificatePatterns)]
    rest = {key: value for key, value in fields.items() if key not in kinds and key != "name"}
    known = ("name", "roles", *kinds, "client_ids", "client_names", "client_types")
    _check_keys(fields, known, f"{where}.")
    patterns = {kind: _patterns(fields, kind, where) for kind in kinds}
    if not any(patterns.values()):
        raise AccessError(f"{where} needs one of these: {', '.join(kinds)}")
    patterns["fingerprint"] = tuple(each.replace(":", "") for each in patterns["fingerprint"])
    for each in patterns["fingerprint"]:
        digits = each.strip("*").lower()
        if len(digits) > _FINGERPRINT or not set(digits) <= set("0123456789abcdef"):
            raise AccessError(
                f"{where}.fingerprint: {each!r} is not a SHA-256 fingerprint in hexadecimal"
            )
    name = fields.get("name", where)
    if not isinstance(name, str) or not name:
        raise AccessError(f"{where}.name must be a string")
    entry = _entry(where, rest, roles, token=False)
    return attrs.evolve(entry, name=name, certificate=CertificatePatterns(**patterns))


def _proof(fields: Mapping[str, Any], where: str) -> str:
    """The key that has an entry's secret."""
    given = [key for key in _PROOFS if key in fields]
    if len(given) != 1:
        raise AccessError(
            f"{where} needs one of these: token, password, hash, public_key or common_name"
        )
    proof = given[0]
    for key in (proof, "user"):
        value = fields.get(key, "-")
        if not isinstance(value, str) or not value:
            raise AccessError(f"{where}.{key} must be a string")
    if "user" in fields and proof not in ("password", "hash"):
        raise AccessError(f"{where}.user needs a password or its hash, not a {proof}")
    if proof == "password" and "user" not in fields:
        raise AccessError(f"{where}.password needs a user; without one it is a token")
    return proof


def _hash(fields: Mapping[str, Any], proof: str, where: str) -> TokenHash:
    value = fields[proof]
    try:
        return TokenHash(value if proof == "hash" else hash_token(value))
    except ValueError as error:
        raise AccessError(f"{where}: {error}") from None


def _patterns(
    fields: Mapping[str, Any], key: str, where: str, missing: tuple[str, ...] = ()
) -> tuple[str, ...]:
    if key not in fields:
        return missing
    found = _texts(fields, key, where)
    for pattern in found:
        if not pattern or "*" in pattern[1:-1]:
            raise AccessError(
                f"{where}.{key}: a star must be at the beginning, at the end or at both,"
                f" got {pattern!r}"
            )
    return found


def _texts(fields: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = fields.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise AccessError(f"{where}.{key} must be a list of strings")
    return tuple(value)


def _ranges(value: object, where: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for each in value if isinstance(value, list) else [value]:
        low, _, high = str(each).partition("-")
        ends = (low, high or low)
        if isinstance(each, bool) or not all(end.isascii() and end.isdigit() for end in ends):
            raise AccessError(f"{where}.queues: 7 or '7-9' are queues, got {each!r}")
        pair = (int(ends[0]), int(ends[1]))
        if not pair[0] <= pair[1] <= MAX_QUEUE_ID:
            raise AccessError(
                f"{where}.queues: {each!r} are not queues between 0 and {MAX_QUEUE_ID}"
            )
        found.append(pair)
    return tuple(found)


def _table_of(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise AccessError(f"{key} is a table: [access.{key}]")
    return value


def _check_keys(table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            near = _nearest(key, known)
            raise AccessError(f"unknown key {prefix}{key}{_hint([prefix + each for each in near])}")


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that is most similar to *name*, if there is one."""
    import difflib  # noqa: PLC0415 - for a configuration that is wrong

    return difflib.get_close_matches(name, list(known), 1)


def _hint(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]}?" if near else ""
