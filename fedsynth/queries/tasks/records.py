"""A client's records as its tasks read them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding import image
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.view import View
from fedsynth.schema import ImageSchema


def codes_of(client: View) -> NDArray[np.int32]:
    """A table's rows under the announced encoding, [n, d]; encoded once, and anew after the next
    announcement."""
    return client.derive("encoding", _encode)


def finer_codes_of(client: View) -> NDArray[np.int32]:
    """The same under the finer encoding that was announced beside it."""
    return client.derive("finer", _encode_finer)


def _encode(client: View) -> NDArray[np.int32]:
    encoding = client.board.read("encoding", TableEncoding.from_dict)
    codes: NDArray[np.int32] = encoding.encode(client.data)
    return codes


def _encode_finer(client: View) -> NDArray[np.int32]:
    encoding = client.board.read("finer", TableEncoding.from_dict)
    codes: NDArray[np.int32] = encoding.encode(client.data)
    return codes


def pixels_of(client: View, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Images as rows of pixels in [0, 1], [len(rows), pixels]."""
    schema = client.board.read("schema", ImageSchema.from_dict)
    return image.encode(client.data.take(rows), schema)
