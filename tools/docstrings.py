"""Turn the docstrings' reStructuredText into Markdown for the API pages of the site.

mkdocstrings reads field lists (``:raises X: ...``) itself; cross-references and literal blocks are
rewritten here.  ``make docs`` loads this module as an extension of griffe.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

__all__ = ["RestToMarkdown", "to_markdown"]

_ROLE: Final = re.compile(r":(?:attr|class|const|data|exc|func|meth|mod|obj):`~?([^`]+)`")
_LITERAL: Final = re.compile(r"^(.*)::$", re.MULTILINE)


def to_markdown(text: str) -> str:
    """Rewrite cross-references as code and ``::`` before a literal block as a colon."""
    text = _ROLE.sub(r"`\1`", text)
    return _LITERAL.sub(lambda line: f"{line[1]}:" if line[1] else "", text)


class RestToMarkdown(griffe.Extension):
    """Rewrites all docstrings of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_others: Any) -> None:
        """Rewrite the docstrings of a package."""
        waiting: list[griffe.Object] = [pkg]
        while waiting:
            each = waiting.pop()
            if each.docstring is not None:
                each.docstring.value = to_markdown(each.docstring.value)
            waiting += [
                member for member in each.members.values() if isinstance(member, griffe.Object)
            ]
