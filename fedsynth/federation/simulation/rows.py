"""What a cut may look at: the rows' labels, their features and their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import suggestion
from fedsynth.data.tables import Images
from fedsynth.demands import demand_kind
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import (
    Continuous,
    Identifier,
    ImageSchema,
    Integer,
    Modelled,
    Schema,
    demand_schema,
)

_ONE_HOT_LIMIT = 50
_CHUNK = 4096


Data = TypeVar("Data", pd.DataFrame, Images)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table or an image set, with the column that holds the labels and, if known, the schema."""

    data: pd.DataFrame | Images
    schema: Schema | ImageSchema | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if self.schema is not None:
            demand_schema(self.schema, "a cut")
        if self.target is not None:
            demand_kind("target", self.target, str, "a column's name")
        if len(self) == 0:
            raise DataError("there are no rows to cut")

    def __len__(self) -> int:
        return len(self.data)

    @property
    def label_column(self) -> str | None:
        """The target given, else the schema's."""
        if self.target is None and isinstance(self.schema, Schema):
            return self.schema.target
        return self.target

    def column(self, name: str) -> pd.Series:
        """A column of the table; DataError when there is none of that name."""
        if isinstance(self.data, Images):
            raise ConfigError(f"images have no column {name!r}: give an array with a value each")
        if name not in self.data.columns:
            hint = suggestion(name, map(str, self.data.columns))
            raise DataError(f"the table has no column {name!r}{hint}")
        return self.data[name]

    def declaration(self, name: str) -> Modelled | Identifier | None:
        """What the schema says of a column; None where it says nothing."""
        columns = self.schema.columns if isinstance(self.schema, Schema) else ()
        return next((column for column in columns if column.name == name), None)


def label_codes(rows: Rows) -> NDArray[np.int64]:
    """Each row's label as a code int64 [n] from 0 up; missing labels are one label more.

    Raises ConfigError when the target is unknown or a number with fractions, DataError when it is
    absent.
    """
    if isinstance(rows.data, Images):
        if rows.data.labels is None:
            raise DataError("the images carry no labels, and this cut needs them")
        labels = pd.Series(rows.data.labels)
    elif rows.label_column is None:
        raise ConfigError("this cut needs the column with the labels: give target=...")
    else:
        labels = rows.column(rows.label_column)
    if pd.api.types.is_float_dtype(labels.dtype):
        values = labels.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.any(values[np.isfinite(values)] % 1):
            raise ConfigError(
                f"target {rows.label_column!r} is a number with fractions, not a label; choose a "
                "column of categories"
            )
    codes, _ = pd.factorize(labels, use_na_sentinel=False)
    return codes.astype(np.int64)


def feature_matrix(rows: Rows) -> NDArray[np.float32]:
    """The features as float32 [n, d]: pixels in [0, 1]; or numbers and dates with mean 0 and
    standard deviation 1, a gap at the mean, and small sets of categories one-hot.

    The target, identifiers and columns of more than 50 categories are left out.
    """
    if isinstance(rows.data, Images):
        pixels = rows.data.pixels.reshape(len(rows), -1)
        return np.asarray(np.divide(pixels, 255, dtype=np.float32))
    parts = [
        _standardise(_numbers(rows.data[name]))
        if _is_ordered(rows.data[name])
        else _one_hot(rows.data[name])
        for name in rows.data.columns
        if name != rows.label_column and not isinstance(rows.declaration(name), Identifier)
    ]
    matrix = np.concatenate([np.empty((len(rows), 0), dtype=np.float32), *parts], axis=1)
    if matrix.shape[1] == 0:
        raise DataError("the table has no numbers and no small sets of categories to cluster by")
    return matrix


def add_noise(
    data: Data, rows: Rows, spread: NDArray[np.float64], rng: np.random.Generator
) -> Data:
    """The data of `rows` with Gaussian noise on its numbers.

    spread: float64 [n], each row's noise in units of the feature's standard deviation. Column
    types, declared bounds and decimals are kept, whole numbers stay whole and gaps stay gaps.
    """
    if isinstance(data, pd.DataFrame):
        noisy = data.copy()
        for name in data.columns:
            if _takes_noise(rows, name):
                noisy[name] = _add_noise_to_column(rows, name, spread, rng)
        return noisy
    pixels = _add_noise_to_pixels(rows, data.pixels, spread, rng)
    return Images(pixels, data.labels, data.persons)


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(
        values.dtype
    )


def _is_ordered(values: pd.Series) -> bool:
    return (
        _is_number(values)
        or pd.api.types.is_bool_dtype(values.dtype)
        or pd.api.types.is_datetime64_any_dtype(values.dtype)
    )


def _numbers(values: pd.Series) -> NDArray[np.float64]:
    """Float64 [n] with NaN for gaps and infinities; dates as nanoseconds."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        seconds = (values - values.min()).dt.total_seconds()
        return np.asarray(seconds, dtype=np.float64)
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _deviation(numbers: NDArray[np.float64]) -> float:
    known = numbers[~np.isnan(numbers)]
    return float(known.std()) if len(known) else 0.0


def _standardise(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    deviation = _deviation(numbers)
    if deviation == 0:
        return np.zeros((len(numbers), 1), dtype=np.float32)
    scaled = (numbers - np.nanmean(numbers)) / deviation
    return np.nan_to_num(scaled)[:, None].astype(np.float32)


def _one_hot(values: pd.Series) -> NDArray[np.float32]:
    codes, levels = pd.factorize(values, use_na_sentinel=False)
    if len(levels) > _ONE_HOT_LIMIT:
        return np.empty((len(values), 0), dtype=np.float32)
    return np.asarray(codes[:, None] == np.arange(len(levels)), dtype=np.float32)


def _takes_noise(rows: Rows, name: str) -> bool:
    if name == rows.label_column or not _is_number(rows.column(name)):
        return False
    if isinstance(rows.schema, Schema):
        return isinstance(rows.declaration(name), Integer | Continuous)
    return True


def _add_noise_to_column(
    rows: Rows, name: str, spread: NDArray[np.float64], rng: np.random.Generator
) -> pd.Series:
    values = rows.column(name)
    numbers = _numbers(values)
    noisy = numbers + _deviation(numbers) * spread * rng.standard_normal(len(numbers))
    column = rows.declaration(name)
    if isinstance(column, Integer | Continuous):
        noisy = np.clip(noisy, column.lower, column.upper)
    if isinstance(column, Continuous):
        noisy = np.round(noisy, column.decimals)
    return _restore_type(noisy, values)


def _restore_type(numbers: NDArray[np.float64], like: pd.Series) -> pd.Series:
    """The numbers in the type of `like`: rounded and kept in range if that is an integer."""
    if pd.api.types.is_integer_dtype(like.dtype):
        width = np.dtype(str(getattr(like.dtype, "numpy_dtype", like.dtype)).lower())
        limits = np.iinfo(width)
        highest = np.nextafter(float(limits.max), 0)
        numbers = np.rint(np.clip(numbers, float(limits.min), highest))
    return pd.Series(numbers, index=like.index, name=like.name).astype(like.dtype)


def _add_noise_to_pixels(
    rows: Rows,
    pixels: NDArray[np.uint8],
    spread: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    white = rows.schema.maximum if isinstance(rows.schema, ImageSchema) else 255
    scale = float(pixels.std(dtype=np.float64))
    noisy = np.empty_like(pixels)
    for start in range(0, len(pixels), _CHUNK):
        block = pixels[start : start + _CHUNK]
        width = spread[start : start + _CHUNK].reshape(-1, *[1] * (block.ndim - 1))
        values = block + scale * width * rng.standard_normal(block.shape)
        noisy[start : start + _CHUNK] = np.clip(np.rint(values), 0, white)
    return noisy
