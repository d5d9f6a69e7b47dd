"""Columns of Python's own values, as spreadsheets and databases give them, in pandas' types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pandas as pd


def type_column(values: Sequence[object]) -> pd.Series:
    """Values [n], None where there is none, in the dtype that holds them all exactly.

    Whole numbers with gaps become Int64, dates and moments datetime64[us], what is mixed or has no
    such type (texts, moments with a time zone) stays objects.
    """
    series = pd.Series(list(values), dtype=object)
    kind = pd.api.types.infer_dtype(series, skipna=True)
    gaps = bool(series.isna().any())
    if kind == "boolean" and not gaps:
        return series.astype(bool)
    if kind in ("floating", "mixed-integer-float"):
        return series.astype(np.float64)
    known = [one for one in values if isinstance(one, int)]
    if kind == "integer" and all(-(2**63) <= one < 2**63 for one in known):
        return series.astype("Int64" if gaps else np.int64)
    if kind in ("date", "datetime") and not any(
        isinstance(one, datetime) and one.tzinfo is not None for one in values
    ):
        # Not nanoseconds, which end in 2262.
        return pd.Series(np.array(values, dtype="datetime64[us]"))
    return series
