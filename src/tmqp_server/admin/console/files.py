"""Serves the files of the console: the HTML document, scripts, a style sheet, and vendored files.

They are read when the door opens and answered from memory.  A browser asks for them each time and
gets 304 if nothing has changed, so a page never runs with scripts of another version. Names are
looked up in a table; the path of a request never reaches a file system.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, final

from tmqp_server.admin.console.tables import console_tables
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.routes import Route

__all__ = ["ConsoleFile", "console_files", "console_routes"]

_TYPES: Final = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
}
#: The document; it names all others relative to itself, so it may be after a proxy's prefix.
_INDEX: Final = "index.html"
_TABLES: Final = "tables.js"
#: Where ActiveMQ has its console, also with a slash behind it.
_FORMER: Final = "/admin"
#: The browser asks each time whether the file has changed.
_CACHE: Final = (b"Cache-Control", b"no-cache")
_VARY: Final = (b"Vary", b"Accept-Encoding")


@final
class ConsoleFile:
    """One file: its bytes and headers.

    :param name: the path below the console's folder.
    :param data: its contents.
    """

    __slots__ = ("_small", "data", "media_type", "name", "tag")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.media_type = _TYPES[name.rpartition(".")[2]]
        self.tag = b'"%s"' % hashlib.sha256(data).hexdigest()[:32].encode("ascii")
        self._small: bytes | None = None

    def small(self) -> bytes:
        """Its bytes, compressed with gzip at the first request for them."""
        if self._small is None:
            self._small = gzip.compress(self.data, 6, mtime=0)
        return self._small


def console_files() -> dict[str, ConsoleFile]:
    """All files of the console by their names."""
    found: dict[str, ConsoleFile] = {}
    _collect(files("tmqp_server.admin.console") / "page", "", found)
    found[_TABLES] = ConsoleFile(_TABLES, console_tables())
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, ConsoleFile]) -> None:
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            _collect(each, f"{name}/", found)
        elif name.rpartition(".")[2] in _TYPES:
            found[name] = ConsoleFile(name, each.read_bytes())


def console_routes() -> list[Route]:
    """The routes of the console: ``/`` is the document, the other files are below ``/console``.

    They need no credentials: the files are the same for everybody, and say nothing about the
    server.
    """
    found = console_files()
    routes = [
        Route("GET", f"/console/{name}", partial(_serve, file), public=True)
        for name, file in sorted(found.items())
        if name != _INDEX
    ]
    return [
        Route("GET", "/", partial(_serve, found[_INDEX]), public=True),
        Route("GET", _FORMER, _go_to_index, public=True),
        *routes,
    ]


def _go_to_index(exchange: Exchange) -> None:
    """Redirect ``GET /admin``, where the document was before."""
    exchange.respond(HttpResponse(302, b"", b"", (b"Location", b"/")))


def _serve(file: ConsoleFile, exchange: Exchange) -> None:
    request = exchange.wanted
    fields = [(b"ETag", file.tag), _CACHE, _VARY]
    known = request.header(b"if-none-match") or b""
    if any(each.strip() in (file.tag, b"W/" + file.tag, b"*") for each in known.split(b",")):
        exchange.respond(HttpResponse(304, b"", b"", *fields))
        return
    data = file.data
    if request.takes_gzip():
        data = file.small()
        fields.append((b"Content-Encoding", b"gzip"))
    exchange.respond(HttpResponse(200, data, file.media_type, *fields))
