"""The server half of a fit: count, ask, step. It sees released values alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.federation.client.tasks import Task
from fedsynth.federation.request import Plain, Released
from fedsynth.methods.classifier.features import Cuts, Features, cuts_by_bounds, cuts_by_encoding
from fedsynth.methods.classifier.learned import Learned
from fedsynth.methods.classifier.records import Model
from fedsynth.methods.classifier.settings import (
    BY_HISTOGRAM,
    BY_SCHEMA,
    FederatedClassifierSettings,
)
from fedsynth.methods.classifier.tasks.gradient import GRADIENT
from fedsynth.methods.classifier.tasks.local_training import TRAINING
from fedsynth.methods.training.aggregation.choosing import LOCAL, aggregation_of
from fedsynth.methods.training.descent import Descent, Pace, Rounds
from fedsynth.models.classifier import Network
from fedsynth.models.layers import Stack
from fedsynth.privacy.budget import Budget
from fedsynth.queries.counting import CountQuestion, ask_counts, label_question, question
from fedsynth.queries.estimates import label_frequencies
from fedsynth.queries.preliminaries import ask_preliminaries
from fedsynth.queries.rounds import expected_units
from fedsynth.queries.session import Session
from fedsynth.schema import ImageSchema, Schema

# Wanted for a column that is scaled by its histogram.
_BINS = 64
# Chosen on bank_marketing: with a hidden layer and little epsilon larger steps lose much.
_STEADY, _FASTEST = 0.14, 4.0
# No class is so rare that it starts as impossible.
_RAREST = 1e-3


@dataclass
class State:
    """A training under way: what checkpoints hold."""

    model: Model
    frequencies: NDArray[np.float64]
    records: float | None
    descent: Descent


def training_task(budget: Budget) -> Task:
    """What clients are asked in the training's rounds."""
    return GRADIENT if budget.protects.per_record else TRAINING


def first_question(
    settings: FederatedClassifierSettings, schema: Schema | ImageSchema
) -> CountQuestion:
    """What is counted before the training: every column where that scales numbers, or classes."""
    return question(schema) if settings.scaled_by == BY_HISTOGRAM else label_question(schema)


def model_of(
    settings: FederatedClassifierSettings, schema: Schema | ImageSchema, cuts: Cuts
) -> Model:
    """The network for rows that are scaled by these cut points.

    Raises:
        ValueError: layers that do not go together, or not with the schema.
    """
    features = Features(schema, cuts)
    network: Network | Stack
    if settings.layers is None:
        network = Network(features.width, settings.hidden, schema.classes, settings.activation)
    else:
        network = Stack(_shape(schema, features), schema.classes, settings.layers)
    return Model(features, network)


def _shape(schema: Schema | ImageSchema, features: Features) -> tuple[int, ...]:
    """Of a record, as layers take it."""
    if isinstance(schema, Schema):
        return (features.width,)
    height, width, *channels = schema.shape
    return (channels[0] if channels else 1, height, width)


def train(session: Session, schema: Schema | ImageSchema) -> Learned:
    """The whole training, or the rest of an interrupted one."""
    settings: FederatedClassifierSettings = session.settings
    state = session.restore(State) or _begin(session, schema)
    session.channel.announce("classifier", state.model.to_dict())
    decayed = np.float32(settings.weight_decay) * state.model.network.decayed.numpy()
    aggregation = aggregation_of(settings, settings.rate or 1.0)
    pace = Pace(settings.learning_rate, settings.average, _STEADY, _FASTEST, decayed, aggregation)
    rounds = Rounds(session, pace)

    def ask(rate: float) -> Released:
        weights = state.descent.optimiser.weights
        local: dict[str, Plain] = {
            "learning_rate": rate,
            "weight_decay": settings.weight_decay,
            "batch_size": settings.batch_size,
            "local_epochs": settings.local_epochs,
            "proximal": settings.proximal,
            "momentum": settings.server_momentum or 0.0,
            "rule": aggregation.name if aggregation.name in LOCAL else "plain",
        }
        told = {"weights": weights}
        if aggregation.answers > 1:
            told["memory"] = state.descent.memory[0]
        return session.channel.sum(
            rounds.training.label,
            rounds.terms,
            dim=aggregation.answers * len(weights),
            arrays=told,
            settings={} if rounds.record else local,
        )

    weights = rounds.run(state.descent, state, ask)
    return Learned(state.model, weights, state.frequencies, state.records)


def _begin(session: Session, schema: Schema | ImageSchema) -> State:
    """Ask the first question, and draw the first weights."""
    settings, training = session.settings, session.plan.releases[-1]
    cuts, frequencies, records = _count(session, schema)
    model = model_of(settings, schema, cuts)
    record = training.terms.protects.per_record
    expected = expected_units(
        training.terms.sampling, records if record else session.channel.clients
    )
    shares = torch.from_numpy(np.maximum(frequencies, _RAREST))
    source = torch.Generator().manual_seed(session.options.seed)
    weights = model.network.initial(shares / shares.sum(), source).numpy()
    descent = Descent.start(weights, expected, aggregation_of(settings))
    state = State(model, frequencies, records if record else None, descent)
    session.save(state)
    return state


def _count(
    session: Session, schema: Schema | ImageSchema
) -> tuple[Cuts, NDArray[np.float64], float]:
    """Cut points, the classes' shares, and the number of records: public, or released."""
    scaled_by = session.settings.scaled_by
    if scaled_by == BY_HISTOGRAM and isinstance(schema, Schema):
        known = ask_preliminaries(session, schema, _BINS)
        assert known.encoding is not None
        return cuts_by_encoding(known.encoding), known.frequencies, known.records
    task, starts, dim = label_question(schema)
    session.progress(task.name, 0, 1)
    counts = ask_counts(session.channel, task, session.plan.terms(task.name), starts, dim)
    session.progress(task.name, 1, 1)
    cuts = cuts_by_bounds(schema) if scaled_by in (BY_SCHEMA, BY_HISTOGRAM) else scaled_by
    return cuts, *label_frequencies(counts)
