"""The description of the API in OpenAPI 3.1, generated from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from tmqp_server.admin.api.schemas import SCHEMAS
from tmqp_server.admin.api.table import PREFIX, Operation

__all__ = ["OF_ALL", "description_of"]

#: What any operation may be answered with: without a log-in, by who asks too fast, and where the
#: server is busy.
OF_ALL: Final = (400, 401, 403, 413, 421, 429, 503)
_PARAMETER: Final = re.compile(r"\{([a-z_]+)(:int)?\}")
_DESCRIPTION: Final = (
    "What operators do with a tmqp server: see what is in it, change it, and look at messages. "
    "Log in with a token (Authorization: Bearer), or with the cookie of a session; then what "
    "changes something needs the field X-Tmqp-Csrf. A name in a path is percent-encoded."
)
#: Headers of requests that change something.
_CONDITIONS: Final[dict[str, str]] = {
    "If-Match": "Change an existing resource; for a removal, the number of messages seen.",
    "If-None-Match": "`*`: only create.",
}


def description_of(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The description of some operations."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        path = PREFIX + _PARAMETER.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "tmqp", "version": version or "0", "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "tmqp"},
            },
        },
        "security": [{"token": []}, {"session": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
    }
    if operation.rights:
        found["description"] = f"Rights: {', '.join(operation.rights)}."
    parameters = [_of_path(name, bool(whole)) for name, whole in _names(operation)]
    parameters += [
        {"name": each.name, "in": "query", "description": each.meaning, "schema": each.schema}
        for each in operation.query
    ]
    if 412 in operation.failures:
        parameters += [
            {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
            for name, meaning in _CONDITIONS.items()
        ]
    if operation.repeats:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "The same request with the same key is executed once.",
                "schema": {"type": "string", "pattern": "^[!#-~]{1,128}$"},
            }
        )
    if parameters:
        found["parameters"] = parameters
    if operation.body:
        kind = "*/*" if operation.body == "Payload" else "application/json"
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        found["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    found["responses"] = _responses(operation)
    if operation.public:
        found["security"] = []
    return found


def _names(operation: Operation) -> list[tuple[str, str]]:
    return _PARAMETER.findall(operation.path)


def _of_path(name: str, whole: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1}
    if whole:
        schema = {"type": "integer", "minimum": 0, "maximum": 65_535}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    good = [operation.status, *[each for each in operation.failures if each < 300]]
    if operation.method == "PUT" and operation.status == 201:
        good.append(200)
    for status in sorted(good):
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if operation.answer and status != 204:
            schema = {"$ref": f"#/components/schemas/{operation.answer}"}
            answer["content"] = {operation.kind: {"schema": schema}}
            for kind in operation.other_kinds:
                answer["content"][kind] = {"schema": {"type": "string"}}
        found[str(status)] = answer
    problem = {"$ref": "#/components/schemas/Problem"}
    for status in sorted({*OF_ALL, *[each for each in operation.failures if each >= 300]}):
        found[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/problem+json": {"schema": problem}},
        }
    return found
