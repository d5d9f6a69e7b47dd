"""What somebody who writes a release's files may put into them in place of what belongs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 1e308, 10**8, 10**12, 10**30, float("inf"), float("nan")),
    *("", "abc", "x" * 300, "\0", [], {}, [1, 2], [None], {"a": {"b": []}}, [[1], ["a"]]),
)
"""That JSON holds, or that Python's reader of JSON gives."""

ARRAYS: dict[str, Callable[[Any], Any]] = {
    "int8": lambda a: a.astype(np.int8),
    "float64": lambda a: a.astype(np.float64),
    "bool": lambda a: a.astype(bool),
    "negative": lambda a: (-np.abs(a) - 1).astype(a.dtype),
    "zeros": np.zeros_like,
    "large": lambda a: np.full_like(a, np.iinfo(a.dtype).max if a.dtype.kind in "iu" else 1e30),
    "not a number": lambda a: np.full(a.shape, np.nan, a.dtype if a.dtype.kind == "f" else float),
    "infinite": lambda a: np.full(a.shape, np.inf, a.dtype if a.dtype.kind == "f" else float),
    "short": lambda a: a.ravel()[:-1],
    "long": lambda a: np.concatenate([a, a]) if a.ndim else a,
    "deep": lambda a: a[None],
    "flat": np.ravel,
    "empty": lambda a: a.ravel()[:0],
    "one": lambda a: np.asarray(a.ravel()[0] if a.size else 0),
}


def leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in plain content, but for the content itself."""
    inner = plain.items() if isinstance(plain, dict) else ()
    inner = enumerate(plain) if isinstance(plain, list) else inner
    for key, value in inner:
        yield (*path, key)
        yield from leaves(value, (*path, key))


def changed(plain: Any, path: tuple[Any, ...], *value: Any) -> Any:
    """A copy with another value there, or without what stands there."""
    copy = deepcopy(plain)
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    if value:
        parent[path[-1]] = value[0]
    else:
        del parent[path[-1]]
    return copy


def mutations(arrays: dict[str, Any], plain: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """States with one thing changed: each with a name, and what makes its arrays and plain values
    when it is called."""
    for name, array in arrays.items():
        yield (
            f"no {name}",
            lambda name=name: (
                {other: own for other, own in arrays.items() if other != name},
                plain,
            ),
        )
        for kind, change in ARRAYS.items():
            yield (
                f"{name}: {kind}",
                lambda name=name, array=array, change=change: (
                    {**arrays, name: _quietly(change, array)},
                    plain,
                ),
            )
    for path in leaves(plain):
        yield f"no {path}", lambda path=path: (arrays, changed(plain, path))
        for value in VALUES:
            yield (
                f"{path} = {value!r:.40}",
                lambda path=path, value=value: (
                    arrays,
                    changed(plain, path, value),
                ),
            )


def _quietly(change: Callable[[Any], Any], array: Any) -> Any:
    with np.errstate(all="ignore"):
        return change(array)
