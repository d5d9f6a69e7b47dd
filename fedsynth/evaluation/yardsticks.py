"""Yardsticks: rows of synthesizers without privacy, which learned from the same rows.

SDV's Gaussian copula, CTGAN and TVAE (an extra; its licence: BUSL) see every real row and answer to
nobody: what they reach says what part of a release's distance is the price of privacy. Their rows
are scored and thrown away.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.agreed import shown, suggestion
from fedsynth.errors import ConfigError, DataError, MachineError
from fedsynth.evaluation.measures.fidelity import Fidelity, fidelity
from fedsynth.evaluation.measures.utility import Utility, utility
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.evaluation.reading.steps import Steps, silent
from fedsynth.schema.columns import Boolean, Categorical
from fedsynth.schema.rounding import round_to_grid

YARDSTICKS = {
    "copula": "GaussianCopulaSynthesizer",
    "ctgan": "CTGANSynthesizer",
    "tvae": "TVAESynthesizer",
}
"""What `against` may name, and SDV's classes."""

_TABLE = "table"


@dataclass(frozen=True)
class Yardstick:
    """Rows of one synthesizer, scored like the release's.

    Attributes:
        name: as in `against`; of the release itself "these rows".
        columns: mean total variation of columns; pairs: of pairs of columns, None of a single one.
        told: AUROC by which a classifier tells them from real rows; None of too few.
        score: of the first model trained on them, by the evaluation's metric; None without target.
        incoherent: share of rows with two values that hardly go together; None of a single column.
        seconds: of processors, to learn and draw; None of the release, which was learned elsewhere.
    """

    name: str
    columns: float
    pairs: float | None
    told: float | None
    score: float | None
    incoherent: float | None
    seconds: float | None = None


def demand_yardsticks(against: Sequence[str] | str) -> tuple[str, ...]:
    """Their names, each once.

    Raises:
        ConfigError: one that is not known.
        MachineError: SDV is not installed.
    """
    names = (against,) if isinstance(against, str) else against
    if not isinstance(names, list | tuple):
        raise ConfigError(f"against must be a name or a list of them, not {shown(against)}")
    for place, name in enumerate(names):
        if not isinstance(name, str) or name not in YARDSTICKS:
            known = ", ".join(YARDSTICKS)
            hint = suggestion(str(name), list(YARDSTICKS))
            raise ConfigError(f"against may name {known}, not {shown(name)}{hint}")
        if name in names[:place]:
            raise ConfigError(f"against: {name!r} is named twice; name each once")
    if names:
        _import_sdv()
    return tuple(names)


def measure_yardsticks(
    names: Sequence[str],
    train: Rows,
    real: Rows,
    rows: int,
    model: str | None,
    seed: int,
    progress: Steps = silent,
) -> Iterator[Yardstick]:
    """Fit each to `train`, draw so many rows, score them against `real`.

    Args:
        model: the kind of model whose score is told; None where there is nothing to predict.
        seed: of their fits, as far as they let it be set, of samples and models.

    Raises:
        DataError: one that cannot be fitted to these rows.
    """
    for done, name in enumerate(names):
        progress(done, len(names))
        began = time.process_time()
        drawn = _draw(name, train, rows, seed)
        spent = time.process_time() - began
        useful = None if model is None else utility(drawn, train, real, models=[model], seed=seed)
        found = fidelity(drawn, train, real, seed=seed)
        yield describe(name, found, useful, spent)
    progress(len(names), len(names))


def describe(
    name: str, found: Fidelity, useful: Utility | None, seconds: float | None = None
) -> Yardstick:
    """The few figures that are told side by side."""
    told = found.detection[-1].auroc if found.detection else None
    score = None if useful is None else useful.models[0].synthetic[useful.primary]
    sense = None if found.coherence is None else found.coherence.synthetic
    pairs = found.marginals[1].mean if len(found.marginals) > 1 else None
    return Yardstick(name, found.marginals[0].mean, pairs, told, score, sense, seconds)


def _import_sdv() -> Any:
    try:
        import sdv.metadata
        import sdv.single_table
    except ImportError:
        raise MachineError(
            "yardsticks are SDV's synthesizers, which are not installed: pip install fedsynth[sdv]"
        ) from None
    return sdv


def _draw(name: str, train: Rows, rows: int, seed: int) -> Rows:
    """Rows of a synthesizer fitted to `train`, on the schema's grids and within its bounds."""
    sdv = _import_sdv()
    content, second = _metadata(train), sdv.metadata.Metadata.METADATA_SPEC_VERSION != "V1"
    content["METADATA_SPEC_VERSION"] = "V2" if second else "V1"
    frame = _frame(train)
    with _seeded(seed):
        try:
            metadata = sdv.metadata.Metadata.load_from_dict(content)
            synthesizer = getattr(sdv.single_table, YARDSTICKS[name])(metadata)
            # From its second version on SDV takes and gives tables by their names.
            synthesizer.fit({_TABLE: frame} if second else frame)
            drawn = synthesizer.sample(rows)
        except Exception as error:
            # Its words may quote cells.
            raise DataError(
                f"{name} could not be fitted to the rows that were learned from "
                f"({type(error).__name__} in SDV): leave it out of `against`"
            ) from None
    return _read(drawn[_TABLE] if isinstance(drawn, Mapping) else drawn, train)


def _metadata(train: Rows) -> dict[str, Any]:
    kinds = {
        name: {"sdtype": "categorical" if size else "numerical"}
        for name, size in zip(train.names, train.sizes, strict=True)
    }
    return {"tables": {_TABLE: {"columns": kinds}}, "relationships": []}


def _frame(train: Rows) -> pd.DataFrame:
    """Numbers as they are, codes of categories as texts, gaps as gaps."""
    columns = {}
    for j, (name, size) in enumerate(zip(train.names, train.sizes, strict=True)):
        values = pd.Series(train.values[:, j])
        columns[name] = values.map(str, na_action="ignore").astype(object) if size else values
    return pd.DataFrame(columns)


def _read(frame: pd.DataFrame, train: Rows) -> Rows:
    """The inverse of `_frame`. What has no grid of its own is put on the schema's."""
    values = np.column_stack([frame[name].to_numpy(np.float64) for name in train.names])
    for j, column in enumerate(train.schema.observed):
        if not isinstance(column, Categorical | Boolean):
            values[:, j] = round_to_grid(values[:, j], column)
    return Rows(train.schema, values, np.zeros(values.shape, dtype=bool))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The generators of whole processes, which SDV draws from, set and put back."""
    import torch

    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        torch.set_rng_state(kept[2])
