"""Histograms asked through the door: bin edges, label frequencies, tables of columns by label.

At the record level a record adds ones at a fixed number of positions, so the L2 sensitivity is the
square root of that number, whatever the record. At the client level a client sends its counts
divided by its own number of records: no client weighs more than another, and the same bound holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.clipping import DenseRows, Rows
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.queries.owners import codes_of
from fedsynth.schema import ImageSchema, Schema

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class CountTask:
    """Count the positions that a site's records touch.

    Attributes:
        name: of the task.
        positions: of a site's records, int64 [records, ones], distinct within a record.
    """

    name: str
    positions: Callable[[Site], Positions]

    def contribute(
        self, sites: Sequence[Site], samples: Sequence[Positions], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (site, sample) in enumerate(zip(sites, samples, strict=True)):
            touched = self.positions(site)[sample]
            if request.terms.protects.per_record:
                yield index, IndicatorRows(touched, request.dim)
            else:
                counts = np.bincount(touched.ravel(), minlength=request.dim)
                yield index, DenseRows(counts[None] / max(1, len(touched)))

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        raise AssertionError("counts are sent, nothing of them is kept")


def _schema_positions(site: Site) -> Positions:
    return site.board.read("schema", _layout_of).positions(site.data)


def _layout_of(schema: dict[str, object]) -> HistogramLayout:
    return HistogramLayout.of(Schema.from_dict(schema))


def _label_positions(site: Site) -> Positions:
    labels = site.data.labels
    return np.zeros((site.records, 1), np.int64) if labels is None else labels[:, None]


def _pair_positions(site: Site) -> Positions:
    encoding = site.board.read("encoding", TableEncoding.from_dict)
    codes = codes_of(site).astype(np.int64)
    target = target_index(encoding.schema)
    starts, _ = pair_starts(encoding.sizes, target)
    others = [j for j in range(codes.shape[1]) if j != target]
    sizes = np.array([encoding.sizes[j] for j in others], np.int64)
    return starts[None, :] + codes[:, [target]] * sizes + codes[:, others]


HISTOGRAM = register(CountTask("histogram", _schema_positions))
LABELS = register(CountTask("labels", _label_positions))
LABEL_TABLES = register(CountTask("label-tables", _pair_positions))


def target_index(schema: Schema) -> int:
    """Position of the target among the modelled columns."""
    return [column.name for column in schema.modelled].index(str(schema.target))


def conditions(schema: Schema | ImageSchema) -> int:
    """Classes of the target that a model can be conditioned on; 0 where there is nothing beside."""
    if isinstance(schema, Schema) and len(schema.modelled) == 1:
        return 0
    return schema.classes


def pair_starts(sizes: Sequence[int], target: int) -> tuple[Positions, int]:
    """Where the table [labels, size_j] of every other column starts, and the length of them all."""
    cells = [size * sizes[target] for j, size in enumerate(sizes) if j != target]
    stops = np.cumsum([0, *cells])
    return stops[:-1].astype(np.int64), int(stops[-1])


def counting_terms(ones: int, noise_multiplier: float, budget: Budget, survivors: int) -> Terms:
    """Terms of a histogram to which every record adds ``ones`` ones, asked of everybody."""
    return Terms(
        unit=budget.unit,
        trust=budget.trust,
        # A hair above the norm, so that clipping leaves honest counts as they are.
        clip=float(np.sqrt(ones)) * (1 + 1e-5),
        noise_multiplier=noise_multiplier,
        sampling=Everyone(),
        survivors=survivors,
    )


def released_scale(terms: Terms, answered: int) -> float:
    """Standard deviation of the noise in a released sum of ``answered`` answers.

    For Laplace and stable noise its scale: that of a sum of stable shares grows with the number of
    answers to the power 1/alpha, and it has no standard deviation.
    """
    return terms.summed_scale(answered)


@dataclass(frozen=True)
class Counts:
    """A released histogram: ``values`` and the standard deviation of the noise in each of them."""

    values: NDArray[np.float64]
    sigma: float


def ask_counts(channel: Channel, task: CountTask, terms: Terms, dim: int) -> Counts:
    """Release one histogram."""
    released = channel.sum(task.name, terms, dim)
    return Counts(released.value, released_scale(terms, released.answered))


def question(schema: Schema | ImageSchema) -> tuple[CountTask, int, int]:
    """The first question of every job: its task, its length, and the ones a record adds."""
    if isinstance(schema, ImageSchema):
        return LABELS, max(1, schema.classes), 1
    layout = HistogramLayout.of(schema)
    return HISTOGRAM, layout.dim, layout.per_record
