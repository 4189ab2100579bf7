"""The zoo: small peers that are right, and many that are broken on purpose, for ``self-test``."""

from __future__ import annotations

__all__: list[str] = []
