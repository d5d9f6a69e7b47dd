"""What a release is worth on the real rows that its job held out: private, and never in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedsynth.data.conforming import Conformed, conform
from fedsynth.data.images import Images, check_images
from fedsynth.errors import FedsynthError
from fedsynth.evaluation.measures.marginals import MarginalError, marginal_error
from fedsynth.evaluation.measures.utility import Comparison, compare, train_on_real
from fedsynth.evaluation.reading.scores import Scores as Figures
from fedsynth.evaluation.reading.scores import score
from fedsynth.jobs.data import JobData, Rows
from fedsynth.schema import Schema

if TYPE_CHECKING:
    from fedsynth.methods.classifier.federated import FederatedClassifier


@dataclass(frozen=True)
class Scores:
    """Scores on real rows held out. They are not covered by epsilon.

    Attributes:
        comparison: None where the schema has no target of categories. Of a classifier its
            `synthetic` are the classifier's own.
        marginals: of the holdout against the synthetic rows, for 1 and 2 columns; () for images,
            and without rows.
        why: why the rows held out give no scores; None where they do.
    """

    comparison: Comparison | None = None
    marginals: tuple[MarginalError, ...] = ()
    why: str | None = None


def score_rows(data: JobData, test: Rows, rows: Rows, seed: int) -> Scores:
    """Scores on real rows, or why they give none: the release is finished, whatever they are."""
    try:
        return _score_rows(data, test, rows, seed)
    except FedsynthError as error:
        return Scores(why=str(error))


def score_classifier(data: JobData, test: Rows, model: FederatedClassifier, seed: int) -> Scores:
    """The same of a classifier, beside gradient boosting on the real rows in one place."""
    try:
        own = answer_held_out(model, test)
        return Scores(Comparison(own, *train_on_real(data.train, test, data.schema, seed)))
    except FedsynthError as error:
        return Scores(why=str(error))


def answer_held_out(model: FederatedClassifier, test: Rows) -> Figures:
    """A classifier's figures on real rows; those without a label are left out.

    Raises:
        DataError: rows that the schema does not fit.
    """
    schema, learned = model.schema, model.learned
    known: Conformed | Images
    if isinstance(schema, Schema):
        assert not isinstance(test, Images)
        known = conform(test, schema, "rows held out")
    else:
        assert isinstance(test, Images)
        known = check_images(test, schema, "images held out")
    truth = learned.model.features.labels(known)
    return score(learned.probabilities(known)[truth >= 0], truth[truth >= 0])


def _score_rows(data: JobData, test: Rows, rows: Rows, seed: int) -> Scores:
    schema = data.schema
    comparison = None
    if schema.classes:
        comparison = compare(data.train, test, rows, schema, seed)
    if not isinstance(schema, Schema):
        return Scores(comparison)
    assert not isinstance(test, Images) and not isinstance(rows, Images)
    orders = range(1, min(2, len(schema.observed)) + 1)
    errors = tuple(marginal_error(test, rows, schema, order) for order in orders)
    return Scores(comparison, errors)
