"""A classifier trained on owners' rows, which never leave them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from fedsynth.agreed import demand_whole
from fedsynth.data.conforming import Conformed, conform_all
from fedsynth.data.images import Images, check_images
from fedsynth.demands import demand_number, demand_path
from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.methods.classifier.features import Cuts, cuts_by_bounds, cuts_by_rows
from fedsynth.methods.classifier.learned import Learned
from fedsynth.methods.classifier.personal import PersonalClassifier, Tuning, fine_tune
from fedsynth.methods.classifier.server import first_question, model_of, train, training_task
from fedsynth.methods.classifier.settings import (
    BY_HISTOGRAM,
    BY_SCHEMA,
    FederatedClassifierSettings,
)
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.training.aggregation.choosing import aggregation_of
from fedsynth.methods.training.rounds import InRounds
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import LEDGER, Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.counting import CountQuestion
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.release import read_release, write_model_release
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema


class FederatedClassifier(InRounds[Learned]):
    """Logistic regression or a multilayer perceptron, trained within a budget of its own.

    At the record level one clipped noisy step a round along the gradients of drawn records (DP-SGD,
    Abadi et al. 2016), at the client level DP-FedAvg (McMahan et al. 2018). What it costs is beside
    what a release of synthetic rows did: of the same rows, both add up.

    Example:
        >>> model = fs.FederatedClassifier(schema, hidden=[32])             # doctest: +SKIP
        >>> model.fit({"north": north, "west": west}, epsilon=1.0)         # doctest: +SKIP
        >>> model.predict(rows), model.release("runs/classifier").sentence  # doctest: +SKIP

    Args:
        schema: with a target of categories and something to predict it by.
        settings, overrides: see :class:`FederatedClassifierSettings`.

    Raises:
        ConfigError: another schema, or settings that are none.
        ReleaseError: ``scaled_by`` names a folder that holds no release.
        PrivacyError: it names one whose rows are not protected.
    """

    name: ClassVar[str] = "federated-classifier"
    noun: ClassVar[str] = "classifier"
    use: ClassVar[str] = "predict with"
    free: ClassVar[str] = "What was fitted predicts at no further cost"
    settings_type = FederatedClassifierSettings
    no_persons = ""
    learned_type = Learned
    settings: FederatedClassifierSettings

    def __init__(
        self,
        schema: Schema | ImageSchema | None = None,
        settings: BaseModel | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__(schema, settings, **overrides)
        _demand_classes(self.schema)
        scaled_by = self.settings.scaled_by
        if isinstance(scaled_by, str) and scaled_by not in (BY_HISTOGRAM, BY_SCHEMA):
            scaled_by = dict(_cuts_by_release(scaled_by, self.schema))
            self.settings = self.settings.model_copy(update={"scaled_by": scaled_by})
        try:
            known = cuts_by_bounds(self.schema) if isinstance(scaled_by, str) else scaled_by
            model_of(self.settings, self.schema, known)
        except ValueError as error:
            raise ConfigError(f"{self.name}: {error}") from None

    def task(self, budget: Budget) -> str:
        return training_task(budget).name

    def first_question(self, settings: FederatedClassifierSettings) -> CountQuestion:
        return first_question(settings, self.schema)

    def expect(
        self, settings: FederatedClassifierSettings, plan: Plan, records: int | None = None
    ) -> Expected:
        task, _, dim = self.first_question(settings)
        network = model_of(settings, self.schema, cuts_by_bounds(self.schema)).network
        answer = aggregation_of(settings).answers * network.dim
        return Expected({task.name: float(dim), plan.labels[-1]: float(answer)})

    def train(self, session: Session) -> Learned:
        return train(session, self.schema)

    @property
    def classes_(self) -> NDArray[Any]:
        """The target's values, in the order of :meth:`predict_proba`'s columns."""
        target = (
            self.schema.target_column if isinstance(self.schema, Schema) else self.schema.target
        )
        assert isinstance(target, Categorical | Boolean)
        values = list(target.categories)
        alike = len({type(value) for value in values}) == 1
        return np.array(values, None if alike else object)

    def predict_proba(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Of every class, float64 [n, classes], for rows or images with or without labels.

        Raises:
            ConfigError: nothing was fitted.
            DataError: data that the schema does not fit.
        """
        learned = self.learned
        return learned.probabilities(conform_unlabelled(data, self.schema))

    probabilities = predict_proba

    def predict(self, data: pd.DataFrame | Images) -> NDArray[Any]:
        """The likeliest of the target's values for every row, [n]; see :meth:`predict_proba`."""
        return np.asarray(self.classes_[self.predict_proba(data).argmax(axis=1)])

    def score(self, data: pd.DataFrame | Images) -> float:
        """The share of labelled rows that :meth:`predict` names right: of private rows, private.

        Raises:
            ConfigError: nothing was fitted.
            DataError: data without labels, or that the schema does not fit.
        """
        learned = self.learned
        known = self._labelled(data, "rows to score on")
        answers = learned.probabilities(known).argmax(axis=1)
        return float((answers == learned.model.features.labels(known)).mean())

    def personalise(
        self,
        data: pd.DataFrame | Images,
        *,
        epochs: int = 10,
        learning_rate: float = 0.1,
        batch_size: int = 32,
        proximal: float = 0.0,
        seed: int = 0,
    ) -> PersonalClassifier:
        """Go on with it at one owner, on that owner's rows; nothing is asked, sent or charged.

        Args:
            data: labelled rows, or images.
            epochs: passes over them. batch_size: rows of a step of SGD.
            proximal: pull towards the released weights, at least 0: of rows that are few.
            seed: of the rows' order.

        Returns:
            What predicts at that owner, and cannot be released: it is as private as the rows.

        Raises:
            ConfigError: nothing was fitted, or settings that are none.
            DataError: data without labels, or that the schema does not fit.
        """
        learned = self.learned
        how = Tuning(
            demand_whole("epochs", epochs, 1),
            demand_whole("batch_size", batch_size, 1),
            demand_number("learning_rate", learning_rate, "a positive number", _positive),
            demand_number("proximal", proximal, "a number of at least 0", _not_negative),
        )
        seed, own = demand_whole("seed", seed, 0), self._labelled(data, "rows to go on with")
        model = type(self)(self.schema, self.settings)
        weights = fine_tune(learned, own, how, seed)
        model._learned = replace(learned, weights=weights)  # noqa: SLF001
        return PersonalClassifier(model, own.rows if isinstance(own, Conformed) else len(own))

    def _labelled(self, data: pd.DataFrame | Images, what: str) -> Conformed | Images:
        # It says what is wrong with rows that are none.
        conform_unlabelled(data, self.schema)
        if isinstance(data, Images):
            return check_images(data, self.schema, what.replace("rows", "images"))
        return conform_all(data, self.schema, what)

    def release(self, folder: str | Path) -> Certificate:
        """Write the model, its account and their certificate.

        Args:
            folder: new, empty, or the one that was fitted in.

        Raises:
            ConfigError: nothing was fitted here.
            ReleaseError: the folder holds a release, or something else that this would overwrite.
        """
        _ = self.learned, self.ledger
        return write_model_release(demand_path("folder", folder), self)


def _positive(given: float) -> bool:
    return 0 < given < math.inf


def _not_negative(given: float) -> bool:
    return 0 <= given < math.inf


def _demand_classes(schema: Schema | ImageSchema) -> None:
    """Raises ConfigError for a schema without classes to tell apart."""
    if isinstance(schema, Schema) and schema.target is not None and not schema.classes:
        raise ConfigError(
            f"the target {schema.target!r} is a number or a date, and a classifier needs one of "
            "categories: name another target, cut this one into categories, or fit "
            "fs.FedInfer(schema), whose regression predicts numbers"
        )
    if schema.classes < 2:
        raise ConfigError(
            "the schema's target has one category, so there is nothing to predict"
            if schema.classes
            else "the schema names no target, so there is nothing to predict: set `target`"
        )
    if isinstance(schema, Schema) and len(schema.modelled) == 1:
        raise ConfigError("the schema has no column besides the target to predict it by")


def _cuts_by_release(folder: str, schema: Schema | ImageSchema) -> Cuts:
    """Cut points by the rows of a release: free, since they were released before."""
    rows, theirs, certificate = read_release(folder)
    if theirs.digest != schema.digest:
        raise ConfigError(f"scaled_by: {folder} is a release of another schema")
    if certificate.void is not None:
        raise PrivacyError(
            f"scaled_by: the rows of {folder} are not protected ({certificate.void}), so cut "
            "points by them would not be: give another release, or say histogram or schema"
        )
    closing = Ledger.read(Path(folder) / LEDGER).closing
    if closing is not None and closing.edited:
        raise PrivacyError(
            f"scaled_by: the rows of {folder} were edited by hand, and nothing checks what is in "
            "them: give another release, or say histogram or schema"
        )
    if isinstance(schema, ImageSchema):
        return {}
    assert isinstance(rows, pd.DataFrame)
    return cuts_by_rows(rows, schema)
