"""Add the files outside ``docs/`` that pages link to, as pages of the site: a hook of MkDocs.

A page may link to an example, a test or a source file (``../examples/demo.py``).  Each of these
files becomes a page that shows it, so no link leads out of the site.  A link to a folder becomes
plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

__all__ = ["on_files", "on_page_markdown", "outside", "page_of", "relinked", "shown"]

ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDER: Final = "files"
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".json": "json"}
_FENCE: Final = "`" * 5


def outside(path: str, text: str) -> dict[str, str]:
    """Return the links of a file that lead out of ``docs/``, each with its target.

    :param path: the file, relative to the project's root, as are the targets.
    """
    found: dict[str, str] = {}
    for _label, link, _anchor in _LINK.findall(text):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        if "://" not in link and not target.startswith(("docs/", "../")):
            found[link] = target
    return found


def page_of(path: str) -> str:
    """Return the page that shows a file, relative to ``docs/``; it wraps files that are not
    Markdown.

    A leading dot becomes ``dot-``, because the site omits pages whose names begin with a dot.
    """
    visible = "/".join(part.replace(".", "dot-", part.startswith(".")) for part in path.split("/"))
    return f"{_FOLDER}/{visible}" if path.endswith(".md") else f"{_FOLDER}/{visible}.md"


def relinked(path: str, text: str, page: str) -> str:
    """Return the text of a file with its links changed for a page of the site.

    :param path: the file, relative to the project's root.
    :param page: the page, relative to ``docs/``.
    """
    others = outside(path, text)

    def link(found: re.Match[str]) -> str:
        label, name, anchor = found[1], found[2], found[3] or ""
        if "://" in name:
            return found[0]
        if name in others:
            if not (ROOT / others[name]).is_file():
                return label
            target = page_of(others[name])
        else:
            folder = posixpath.dirname(path)
            target = posixpath.normpath(posixpath.join(folder, name)).removeprefix("docs/")
        return f"[{label}]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor})"

    return _LINK.sub(link, text)


def shown(path: str) -> str:
    """Return the Markdown of the page that shows a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return relinked(path, text, page_of(path))
    language = _LANGUAGES.get(Path(path).suffix, "text")
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    return f"{head}{_FENCE}{language}\n{text}{_FENCE}\n"


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for each file that a page links to, directly or through another file."""
    waiting: set[str] = set()
    for file in files:
        if file.src_uri.endswith(".md"):
            path = f"docs/{file.src_uri}"
            waiting.update(outside(path, file.content_string).values())
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in done or not (ROOT / path).is_file():
            continue
        done.add(path)
        files.append(File.generated(config, page_of(path), content=shown(path)))
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            waiting.update(outside(path, text).values())
    return files


def on_page_markdown(markdown: str, *, page: Any, **_others: Any) -> str:
    """Change the links of a page so that they lead to the pages that show the files."""
    uri: str = page.file.src_uri
    if uri.startswith(f"{_FOLDER}/"):
        return markdown
    return relinked(f"docs/{uri}", markdown, uri)
