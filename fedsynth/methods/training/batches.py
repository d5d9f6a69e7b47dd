"""A client's records as networks see them, and numbers and weights as requests carry them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.view import View
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.queries.tasks.records import codes_of, pixels_of
from fedsynth.schema.target import target_index


@dataclass(frozen=True)
class Batch:
    """Records of one client: ``x`` [b, ...], ``y`` [b] or None."""

    x: torch.Tensor
    y: torch.Tensor | None


def batch_of(client: View, rows: NDArray[np.int64], labelled: bool) -> Batch:
    """Images as pixels in [0, 1] [b, width]; a table's rows as codes [b, columns].

    Args:
        labelled: whether a table's target is the label and so has no place among the codes.
    """
    if isinstance(client.data, Images):
        labels = client.data.labels
        y = None if labels is None else torch.from_numpy(labels[rows])
        return Batch(torch.from_numpy(pixels_of(client, rows)), y)
    codes = codes_of(client)[rows]
    if not labelled:
        return Batch(torch.from_numpy(codes), None)
    target = _target_of(client)
    y = torch.from_numpy(codes[:, target].astype(np.int64))
    return Batch(torch.from_numpy(np.delete(codes, target, axis=1)), y)


def classes_of(client: View, labelled: bool) -> NDArray[np.int64] | None:
    """The class of every row of a client [records]; None without classes."""
    if isinstance(client.data, Images):
        return client.data.labels
    if not labelled:
        return None
    return codes_of(client)[:, _target_of(client)].astype(np.int64)


def _target_of(client: View) -> int:
    return target_index(client.board.read("encoding", TableEncoding.from_dict).schema)


def cut_by_owner(
    rows: FactoredRows, owners: NDArray[np.int64]
) -> Iterator[tuple[int, FactoredRows]]:
    """Rows of several clients' records, cut up again by client.

    Args:
        owners: the client's position of each row [n], never falling.
    """
    for index in np.unique(owners).tolist():
        first, last = np.searchsorted(owners, [index, index + 1])
        block = [(left[first:last], right[first:last]) for left, right in rows.layers]
        yield index, FactoredRows(block, width=rows.dim)


def tensor(array: NDArray[np.generic]) -> torch.Tensor:
    """An array that a request carries, in float32."""
    return torch.from_numpy(np.asarray(array, np.float32))
