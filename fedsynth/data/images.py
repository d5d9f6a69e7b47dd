"""Sets of images: read from and written to .npz files of uint8 arrays."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib import format
from numpy.typing import NDArray

from fedsynth.agreed import shown
from fedsynth.demands import demand_flag, demand_kind, demand_path
from fedsynth.errors import ConfigError, DataError
from fedsynth.files import demand_unpacked, open_plain, writing
from fedsynth.schema import ImageSchema
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Categorical
from fedsynth.schema.frames import demand_frame

ARCHIVE_FAULTS = (
    *(ValueError, EOFError, OSError, LookupError, TypeError, NotImplementedError, RuntimeError),
    *(SyntaxError, MemoryError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""What NumPy and zipfile raise of an archive that is damaged, or made to harm."""


@dataclass(frozen=True, repr=False)
class Images:
    """n images of one shape, with the code of each one's label if there are labels.

    `pixels`: uint8 [n, height, width] or [n, height, width, channels]; `labels`: int64 [n] or None;
    `persons`: whose each image is, keys [n] (numbers or texts) or None: never learned, never
    released.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None
    persons: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if not _is_array(self.pixels, np.uint8) or self.pixels.ndim not in (3, 4):
            raise DataError(
                "images are uint8 arrays [n, height, width(, channels)], not "
                f"{_describe(self.pixels)}"
            )
        if self.persons is not None:
            demand_keys(self.persons, len(self.pixels), "persons")
        if self.labels is None:
            return
        if not _is_array(self.labels, np.int64) or self.labels.shape != (len(self.pixels),):
            raise DataError(
                f"labels are int64 codes [{len(self.pixels)}], one for each image, not "
                f"{_describe(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.pixels)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.pixels.shape[1:]))
        labels = "without labels" if self.labels is None else "with labels"
        return f"<{len(self):,} images of {size}, {labels}>"

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Images:
        """The images at these positions (or where the mask is true), in that order."""
        try:
            at = np.arange(len(self))[rows]
        except (IndexError, TypeError, ValueError):
            at = None
        if at is None or at.ndim != 1:
            raise DataError(
                f"take positions from 0 to {len(self) - 1}, or a mask of {len(self)}, as an array"
            )
        labels = None if self.labels is None else self.labels[at]
        persons = None if self.persons is None else self.persons[at]
        return Images(self.pixels[at], labels, persons)


def demand_keys(keys: object, images: int, where: str) -> None:
    """Raises DataError for what does not say whose each of so many images is."""
    if not isinstance(keys, np.ndarray) or keys.shape != (images,) or keys.dtype.kind not in "iuUS":
        raise DataError(
            f"{where} must be an array of {images} whole numbers or texts, one for each image, not "
            f"{_describe(keys)}"
        )
    if keys.dtype.kind in "US" and (np.char.str_len(np.char.strip(keys)) == 0).any():
        raise DataError(
            f"{where}: there are images without a person, the key is empty: whose they are is not "
            "known, so they cannot be protected together with the person's others"
        )


def _is_array(value: object, kind: type[np.generic]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == kind


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)}"
    return shown(value)


def demand_rows(data: object, where: str) -> pd.DataFrame | Images:
    """Images as they are, a table of any library (`demand_frame`) as a DataFrame.

    Raises:
        DataError: it is neither.
    """
    return data if isinstance(data, Images) else demand_frame(data, where)


def demand_image_persons(images: Images, schema: ImageSchema, where: str) -> None:
    """Raises DataError for images without persons, where their schema says that they have some."""
    if schema.person is not None and images.persons is None:
        raise DataError(
            f"{where}: nothing says whose an image is. The schema's `person` names the array "
            f"{schema.person!r} of the .npz file, a key for each image; in Python it is "
            "Images(pixels, labels, persons)"
        )


def check_images(images: Images, schema: ImageSchema, where: str) -> Images:
    """The images. Raises DataError where they do not fit the schema."""
    if images.pixels.shape[1:] != schema.shape:
        raise DataError(
            f"{where}: images of {list(images.pixels.shape[1:])}, the schema says "
            f"{list(schema.shape)}"
        )
    if (schema.target is None) != (images.labels is None):
        raise DataError(f"{where}: the schema and the images disagree about having labels")
    labels, top = images.labels, schema.classes - 1
    if labels is not None and len(labels) and not 0 <= labels.min() <= labels.max() <= top:
        raise DataError(f"{where}: image labels are codes from 0 to {top}")
    return images


def read_images(
    path: str | Path,
    schema: ImageSchema,
    keys: tuple[str, str] = ("x", "y"),
    *,
    empty: bool = False,
) -> Images:
    """Read pixels and labels from a .npz file under the two keys.

    Labels may be of any type that spells the target's values, as [n] or [n, 1]. Without a target in
    the schema, the second key is not read. Where the schema names an array that says whose an image
    is (`person`), that is read too, if the file has it.

    Args:
        empty: whether there may be no images; the arrays have their shapes all the same.

    Raises:
        DataError: naming the file, the key and what is wrong with it.
    """
    path, wanted = demand_path("path", path), _demand_keys(keys, schema)
    demand_flag("empty", empty)
    arrays = _read_arrays(path, wanted, schema.person)
    raw = arrays[wanted[0]]
    where = f"{path}: array {wanted[0]!r}"
    if raw.dtype != np.uint8:
        raise DataError(f"{where} is {raw.dtype}; store pixels as uint8, 0 to {schema.maximum}")
    pixels = raw.astype(np.uint8, copy=False)
    if pixels.shape[1:] != schema.shape:
        raise DataError(
            f"{where} has shape {list(pixels.shape)}; the schema says [n, "
            f"{', '.join(map(str, schema.shape))}]"
        )
    if not (empty or len(pixels)):
        raise DataError(f"{where} holds no images")
    if schema.maximum < 255 and (pixels > schema.maximum).any():
        raise DataError(f"{where} has pixels above the schema's `maximum` {schema.maximum}")
    persons = None if schema.person is None else arrays.get(schema.person)
    if persons is not None:
        persons = persons.reshape(-1) if persons.shape == (len(pixels), 1) else persons
        demand_keys(persons, len(pixels), f"{path}: array {schema.person!r}")
    if schema.target is None:
        return Images(pixels, None, persons)
    labels = _encode_labels(
        arrays[wanted[1]], len(pixels), schema.target, f"{path}: array {wanted[1]!r}"
    )
    return Images(pixels, labels, persons)


def write_images(
    images: Images, path: str | Path, schema: ImageSchema, keys: tuple[str, str] = ("x", "y")
) -> None:
    """Write a .npz file that `read_images` reads back: uint8 pixels, labels as the schema's values.

    Raises:
        DataError: if the images have labels and the schema no target, or the reverse.
    """
    path, wanted = demand_path("path", path), _demand_keys(keys, schema)
    demand_kind("images", images, Images, "Images")
    if (images.labels is None) != (schema.target is None):
        raise DataError("images and schema must both have labels (`target`), or neither")
    arrays = {wanted[0]: images.pixels}
    if images.labels is not None and schema.target is not None:
        arrays[wanted[1]] = np.array(schema.target.categories)[images.labels]
    with writing(path), path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _demand_keys(keys: object, schema: ImageSchema) -> tuple[str, ...]:
    """The keys: of pixels and labels, or without labels of pixels alone."""
    demand_kind("schema", schema, ImageSchema, "an ImageSchema")
    needed = 1 if schema.target is None else 2
    given = tuple(keys[:needed]) if isinstance(keys, list | tuple) else ()
    if len(set(map(str, given))) < needed or not all(isinstance(key, str) for key in given):
        raise ConfigError(
            'keys are texts, of the pixels and of the labels if there are some, as ("x", "y"), not '
            f"{shown(keys)}"
        )
    return given


def _read_arrays(
    path: Path, keys: tuple[str, ...], more: str | None
) -> dict[str, NDArray[np.generic]]:
    """The arrays under these keys, and one more where the file has it."""
    demand_unpacked(path, DataError)
    with open_plain(path, DataError) as file:
        if file.read(6) == format.MAGIC_PREFIX:
            raise DataError(f"{path}: holds a single array; save a .npz with keys {list(keys)}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            absent = [key for key in keys if key not in archive]
            if absent:
                raise DataError(
                    f"{path}: has no array {absent[0]!r}; it has {', '.join(archive)}: name the "
                    f"pixels' and the labels' key"
                )
            found = [*keys, more] if more in archive and more is not None else keys
            return {key: read_array(archive, key) for key in found}
    except ARCHIVE_FAULTS:
        raise DataError(
            f"{path}: is damaged, or holds objects instead of plain arrays; save it again with "
            f"np.savez_compressed"
        ) from None


def read_array(archive: np.lib.npyio.NpzFile, key: str) -> NDArray[np.generic]:
    """An array of an archive; ValueError where its head tells of more than the archive holds.

    NumPy makes room for what the head tells before it reads.
    """
    assert archive.zip is not None
    name = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
    with archive.zip.open(name) as file:
        version = format.read_magic(file)
        read = format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0
        shape, _, dtype = read(file)
    if math.prod(shape) * dtype.itemsize > archive.zip.getinfo(name).file_size:
        raise ValueError("the head of an array lies")
    array: NDArray[np.generic] = archive[key]
    return array


def _encode_labels(
    labels: NDArray[np.generic], rows: int, target: Categorical, where: str
) -> NDArray[np.int64]:
    if labels.shape not in ((rows,), (rows, 1)):
        raise DataError(
            f"{where} has shape {list(labels.shape)}; expected one label for {rows} images"
        )
    cells = read_cells(pd.Series(labels.ravel()), target, ())
    if (cells.values < 0).any():
        raise DataError(f"{where} has labels that the schema's target does not list")
    return cells.values.astype(np.int64)
