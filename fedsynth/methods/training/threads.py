"""Linear algebra of small matrices on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def small_products() -> AbstractContextManager[Any]:
    """While a fit runs: products this small are slower on several threads, which OpenBLAS keeps
    spinning."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """Looked for once, among all libraries of the process, and so when all that compute are in."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
