"""SDV's single-table metadata into columns and back; sdv itself is an extra (its licence: BUSL)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from fedsynth.errors import SchemaError
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
)
from fedsynth.schema.drafting import draft_column
from fedsynth.schema.proposing import enclose

_V1_KEYS = ("sdtype", "datetime_format")
"""What SDV 1 knows of a column; SDV 2 knows ranges too."""


def columns_from_sdv(
    content: Mapping[str, Any], table: pd.DataFrame | None
) -> list[Modelled | Identifier]:
    """Columns of SDV's metadata (`Metadata.to_dict()`, versions 1 and 2).

    Bounds and categories that the metadata does not give are read off the table. Keys, and personal
    kinds such as phone_number, become identifiers.

    Raises:
        SchemaError: if there are several tables, or a column's range stands nowhere.
    """
    tables = list(content.get("tables", {"": content}).values())
    if len(tables) != 1:
        raise SchemaError(f"SDV metadata describes {len(tables)} tables; give it with one")
    key = tables[0].get("primary_key")
    columns = tables[0].get("columns", {})
    return [_read_column(name, entry, key, table) for name, entry in columns.items()]


def sdv_content(
    columns: tuple[Modelled | Identifier, ...], version: str, person: str | None = None
) -> dict[str, Any]:
    """Metadata (`Metadata.load_from_dict`) of SDV's version "V1" or "V2".

    Args:
        person: the identifier that has several rows, and so is no key of SDV's.
    """
    entries = {column.name: _describe(column) for column in columns}
    keys = [one.name for one in columns if isinstance(one, Identifier) and one.name != person]
    if version == "V1":
        entries = {
            name: {key: value for key, value in entry.items() if key in _V1_KEYS}
            for name, entry in entries.items()
        }
    table: dict[str, Any] = {"columns": entries}
    if keys:
        table["primary_key"] = keys[0]
    return {"tables": {"table": table}, "relationships": [], "METADATA_SPEC_VERSION": version}


def _read_column(
    name: str, entry: Mapping[str, Any], key: str | None, table: pd.DataFrame | None
) -> Modelled | Identifier:
    kind = entry.get("sdtype", "unknown")
    series = None if table is None or name not in table else table[name]
    modelled = ("numerical", "categorical", "ordinal", "boolean", "datetime")
    if name == key or kind not in modelled:
        return Identifier(name=name) if series is None else draft_column(series, kind="identifier")
    missing = bool(entry.get("range_is_nullable", series is not None and series.isna().any()))
    if kind == "boolean":
        return Boolean(name=name, missing=missing)
    if kind in ("categorical", "ordinal") and entry.get("range_values"):
        return Categorical(name=name, values=entry["range_values"], missing=missing)
    if "range_min" in entry and "range_max" in entry:
        return _read_range(name, entry, missing)
    if series is None:
        raise SchemaError(
            f"column {name!r}: SDV's metadata gives no range for it; pass the table too, or add "
            f"range_min and range_max (range_values for a categorical)"
        )
    categorical = kind in ("categorical", "ordinal")
    return draft_column(series, kind="categorical" if categorical else None, is_target=True)


def _read_range(name: str, entry: Mapping[str, Any], missing: bool) -> Modelled:
    lowest, highest = entry["range_min"], entry["range_max"]
    if entry["sdtype"] == "datetime":
        bounds = pd.to_datetime(
            pd.Series([lowest, highest]),
            format=entry.get("datetime_format"),
            errors="coerce",
            utc=True,
        ).dt.tz_localize(None)
        if bounds.isna().any():
            raise SchemaError(f"column {name!r}: SDV's range does not fit its datetime_format")
        return Datetime(
            name=name,
            lower=bounds[0].floor("s").to_pydatetime(),
            upper=bounds[1].floor("s").to_pydatetime(),
            resolution="day" if (bounds == bounds.dt.normalize()).all() else "second",
            format=entry.get("datetime_format"),
            missing=missing,
        )
    decimals = min(int(entry.get("decimal_places", 12)), 12)
    if decimals == 0:
        return Integer(name=name, lower=int(lowest), upper=int(highest), missing=missing)
    return enclose(name, lowest, highest, decimals, missing)


def _describe(column: Modelled | Identifier) -> dict[str, Any]:
    if isinstance(column, Identifier):
        return {"sdtype": "id"}
    entry: dict[str, Any] = {"range_is_nullable": column.missing}
    if isinstance(column, Boolean):
        return {"sdtype": "boolean", **entry}
    if isinstance(column, Categorical):
        return {"sdtype": "categorical", "range_values": list(column.categories), **entry}
    if isinstance(column, Datetime):
        return {
            "sdtype": "datetime",
            "datetime_format": column.pattern,
            "range_min": column.lower.replace(tzinfo=column.clock).strftime(column.pattern),
            "range_max": column.upper.replace(tzinfo=column.clock).strftime(column.pattern),
            **entry,
        }
    # SDV refuses cells of more decimals, which are rounded here.
    whole = {} if isinstance(column, Continuous) else {"decimal_places": 0}
    return {
        "sdtype": "numerical",
        "range_min": column.lower,
        "range_max": column.upper,
        **whole,
        **entry,
    }
