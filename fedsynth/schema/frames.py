"""Tables as they are handed in, of whatever library, as pandas DataFrames with named columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fedsynth.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def demand_frame(table: object, where: str) -> pd.DataFrame:
    """The table as a pandas DataFrame whose columns all have a name of their own.

    Args:
        table: of pandas, which is given back as it is; or of any library that speaks Arrow's C
            stream: a polars DataFrame or LazyFrame, a DuckDB relation, a PyArrow table.

    Raises:
        DataError: it is none of them, cannot be turned into a DataFrame, or has columns without a
            name or with the same.
    """
    import pandas as pd

    frame = table if isinstance(table, pd.DataFrame) else _to_pandas(table, where)
    unnamed = [name for name in frame.columns if not isinstance(name, str)]
    if unnamed:
        raise DataError(f"{where}: column {unnamed[0]!r} has no text for a name; rename it")
    repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
    if repeated:
        raise DataError(
            f"{where}: several columns are called {', '.join(map(repr, repeated))}; rename them"
        )
    return frame


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """The frame with columns of any names set: `DataFrame.assign` takes none called `self`."""
    changed = frame.copy(deep=False)
    for name, values in columns.items():
        changed[name] = values
    return changed


def is_foreign(table: object) -> bool:
    """Whether it is a table of another library than pandas."""
    return _is_lazy(table) or (
        hasattr(table, "__arrow_c_stream__") and not type(table).__module__.startswith("pandas")
    )


def frame_of(arrow: Any) -> pd.DataFrame:
    """A PyArrow table as a DataFrame; whole numbers with gaps stay whole, of type Int64."""
    import pandas as pd
    import pyarrow as pa

    def column(values: Any) -> pd.Series:
        if pa.types.is_integer(values.type) and values.null_count:
            # As float64, which pandas takes for them, numbers above 2**53 would become others.
            return pd.Series(values.to_pandas(integer_object_nulls=True), dtype="Int64")
        series: pd.Series = values.to_pandas()
        return series

    if b"pandas" in (arrow.schema.metadata or {}):
        # It was a DataFrame once, and knows of which types and with which index.
        whole: pd.DataFrame = arrow.to_pandas()
        return whole
    frame = pd.DataFrame(dict(enumerate(map(column, arrow.columns))), index=range(len(arrow)))
    return frame.set_axis(pd.Index(arrow.column_names, dtype=object), axis=1)


def _to_pandas(table: object, where: str) -> pd.DataFrame:
    import pyarrow as pa

    kind = type(table).__name__
    if not is_foreign(table):
        raise DataError(f"{where}: is a {kind}; {_ADVICE.get(kind) or _advice(table)}")
    try:
        # A lazy frame is a question that has not been asked yet.
        asked: Any = table.collect() if _is_lazy(table) else table  # type: ignore[attr-defined]
        # By its own way where it has one: it spells types that more versions of PyArrow know.
        return frame_of(asked.to_arrow() if hasattr(asked, "to_arrow") else pa.table(asked))
    except Exception as error:
        # Whatever the library raises may quote cells.
        raise DataError(
            f"{where}: the {kind} cannot be turned into a pandas DataFrame "
            f"({type(error).__name__}); turn it into one, and give that"
        ) from None


def _is_lazy(table: object) -> bool:
    """Whether it is a polars LazyFrame; where nobody imported polars, nothing is."""
    lazy = getattr(sys.modules.get("polars"), "LazyFrame", None)
    return lazy is not None and isinstance(table, lazy)


_ADVICE = {
    "ndarray": "its columns have no names: give pd.DataFrame(array, columns=[..])",
    "Series": "give a table: series.to_frame()",
}


def _advice(table: object) -> str:
    if isinstance(table, str | PurePath):
        return "read the file first: fs.read_table(path)"
    return (
        "give a table of pandas, polars, PyArrow or DuckDB; pd.DataFrame(..) makes one of lists "
        "and dicts"
    )
