"""The kind of import contract that may name modules which are still to come.

import-linter refuses a contract that names a missing module.  Some rules must stand before the
first line of what they rule, or they come too late; this kind passes over missing modules.  That a
name is spelt right is shown by ``test_contract.py``, in a tree where all of them exist.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import ContractCheck
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.domain.imports import ModuleExpression

__all__ = ["ForbiddenPresentContract"]


class ForbiddenPresentContract(ForbiddenContract):
    """``forbidden``, about those of the named modules that exist."""

    type_name = "forbidden_present"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Forget the missing modules of ours, then check as usual."""
        for field in ("source_modules", "forbidden_modules"):
            setattr(self, field, present(getattr(self, field), graph))
        return super().check(graph, verbose)


def present(expressions: set[ModuleExpression], graph: ImportGraph) -> set[ModuleExpression]:
    """The expressions without those that name one missing module of ours.

    Wildcards may match nothing anyway, and a foreign module that nobody imports is not missed.
    """
    return {
        expression
        for expression in expressions
        if expression.has_wildcard_expression()
        or expression.expression in graph.modules
        or not expression.expression.startswith("tmqp")
    }
