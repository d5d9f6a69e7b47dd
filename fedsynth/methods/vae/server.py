"""The server half of a FedVAE fit: ask, step, average. It sees released values alone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.tasks import Task
from fedsynth.federation.request import Released
from fedsynth.marginals import Clique, Domain, Measurement
from fedsynth.methods.training.aggregation.choosing import aggregation_of
from fedsynth.methods.training.descent import Descent, Pace, Rounds
from fedsynth.methods.vae.coupling import Potential, learn_potentials
from fedsynth.methods.vae.learned import Learned
from fedsynth.methods.vae.numbers import Numbers
from fedsynth.methods.vae.records import Model
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.methods.vae.tasks.gradient import GRADIENT
from fedsynth.methods.vae.tasks.local_training import TRAINING
from fedsynth.models import vae
from fedsynth.models.matching import match_profiles
from fedsynth.models.spec import VAESpec
from fedsynth.privacy.budget import Budget
from fedsynth.queries.estimates import naive_bayes
from fedsynth.queries.preliminaries import ask_preliminaries
from fedsynth.queries.rounds import expected_units
from fedsynth.queries.session import Session
from fedsynth.queries.tables import PAIRS, ask_marginals
from fedsynth.queries.tasks.counting import LABEL_TABLES
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions, target_index

Floats = NDArray[np.float32]

_STEADY, _FASTEST = 0.65, 2.0

# Numbers that tables of pairs may have together: 16 MB. The largest tables are left out.
_MOST_COUNTS = 2**21
# Of pairs that are left out, those that are named.
_NAMED = 5


def training_task(budget: Budget) -> Task:
    """What clients are asked in the training's rounds."""
    return GRADIENT if budget.protects.per_record else TRAINING


@dataclass
class State:
    """A training under way: what checkpoints hold."""

    encoding: TableEncoding | None
    frequencies: NDArray[np.float64]
    profiles: NDArray[np.float64] | None
    phi: Floats
    descent: Descent
    pairs: tuple[Measurement, ...] = ()


def decoded_pairs(schema: Schema, domain: Domain) -> tuple[list[Clique], list[Clique]]:
    """Pairs of columns that tables are asked of, the smallest first; and those left out, whose
    tables are the largest of all that a decoder has."""
    target = target_index(schema) if conditions(schema) else None
    every = itertools.combinations(range(len(domain)), 2)
    pairs: list[Clique] = [pair for pair in every if target not in pair]
    pairs.sort(key=lambda pair: (domain.cells(pair), pair))
    held = int((np.cumsum([domain.cells(pair) for pair in pairs]) <= _MOST_COUNTS).sum())
    return pairs[:held], pairs[held:]


def tell_left_out(schema: Schema, domain: Domain) -> tuple[str, ...]:
    """That tables of some pairs are not asked, in a sentence; else nothing."""
    asked, left = decoded_pairs(schema, domain)
    if not left:
        return ()
    names = [column.name for column in schema.modelled]
    told = [f"{names[a]} with {names[b]}" for a, b in left]
    more = f", and {len(told) - _NAMED:,} more" if len(told) > _NAMED else ""
    return (
        f"of {len(asked) + len(left):,} pairs of columns the largest tables are not asked, since "
        f"all have more than {_MOST_COUNTS:,} counts together, so that rows keep less of how these "
        f"go together: {', '.join(told[:_NAMED])}{more}. Fewer values or bins leave room for them",
    )


def model_of(
    schema: Schema | ImageSchema,
    settings: FedVAESettings,
    encoding: TableEncoding | None,
    *,
    label_bias: bool,
) -> Model:
    """The networks that are trained.

    Args:
        settings: resolved.
        encoding: of a table; None for images.
        label_bias: whether label tables are asked, which every class's logits start from.
    """
    classes = conditions(schema)
    # A single class tells nothing apart: one VAE a class is one conditional VAE.
    together = settings.scheme == "uni" or classes == 1
    shape: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    count = 0
    if isinstance(schema, ImageSchema):
        shape = schema.shape
    elif encoding is not None:
        sizes, numbers = encoding.sizes, Numbers(encoding)
        if settings.likelihood == "gaussian":
            sizes, count = numbers.sizes, len(numbers.numeric)
        if classes:
            target = numbers.target if count else target_index(schema)
            sizes = sizes[:target] + sizes[target + 1 :]
    spec = VAESpec(
        kind=settings.architecture or "mlp",
        latent=settings.latent or 1,
        sizes=sizes,
        shape=shape,
        hidden=settings.hidden or (),
        classes=classes if together else 0,
        activation=settings.activation or "relu",
        label_bias=label_bias,
        classifier_weight=settings.classifier_weight or 0.0,
        kl_weight=settings.kl_weight,
        numbers=count,
        sigma=settings.sigma if count else None,
    )
    return Model(spec, 1 if together else classes)


class Training:
    """The server half of one fit."""

    def __init__(self, schema: Schema | ImageSchema, session: Session) -> None:
        self.schema, self.session, self.channel = schema, session, session.channel
        self.settings: FedVAESettings = session.settings
        self.aggregation = aggregation_of(self.settings)
        pace = Pace(
            self.settings.learning_rate,
            self.settings.average,
            _STEADY,
            _FASTEST,
            aggregation=self.aggregation,
        )
        self.rounds = Rounds(session, pace)

    def run(self) -> Learned:
        state = self.session.restore(State) or self._begin()
        if state.encoding is not None:
            self.channel.announce("encoding", state.encoding.to_dict())
        self.channel.announce("model", self._model(state.encoding).to_dict())
        ask, kept = partial(self._ask, state), self._keeps_encoder()
        trained = self.rounds.run(state.descent, state, ask, kept=kept)
        theta = self._theta(state, trained)
        model = self._model(state.encoding)
        if state.profiles is not None:
            theta = self._match(model.spec, theta, state.profiles)
        potentials = self._couple(state, model.spec, theta)
        known = state.frequencies, state.encoding, self.schema
        return Learned(model, theta, *known, potentials, self._left_out(state.encoding))

    def _couple(self, state: State, spec: VAESpec, theta: Floats) -> tuple[Potential, ...]:
        """What leads rows to go together as the tables of pairs have it."""
        if not state.pairs or state.encoding is None:
            return ()
        known = [one * state.encoding.records for one in state.encoding.frequencies]
        tables = list(state.pairs)
        if spec.classes:
            target = target_index(state.encoding.schema)
            del known[target]
            tables = [replace(one, clique=_without(one.clique, target)) for one in tables]
        seed = self.session.options.seed
        return learn_potentials(spec, theta, state.frequencies, known, tables, seed)

    def _match(self, spec: VAESpec, theta: Floats, profiles: NDArray[np.float64]) -> Floats:
        """The decoder with each class's one-way distributions as the label tables have them."""
        generator = torch.Generator().manual_seed(self.session.options.seed)
        matched: Floats = match_profiles(
            spec, torch.from_numpy(theta.copy()), torch.from_numpy(profiles), generator
        ).numpy()
        return matched

    def _begin(self) -> State:
        """Ask the histogram and the label tables, and draw the first weights."""
        scaled = self.settings.likelihood == "gaussian"
        known = ask_preliminaries(self.session, self.schema, self.settings.bins, scaled=scaled)
        encoding, frequencies, profiles = known.encoding, known.frequencies, known.profiles
        pairs = self._ask_pairs(encoding)
        phi, theta = self._initial(encoding, profiles, frequencies)
        units = known.records if self.rounds.record else self.channel.clients
        expected = expected_units(self.rounds.terms.sampling, units)
        weights = theta if self.settings.encoder != "shared" else np.concatenate([phi, theta])
        descent = Descent.start(weights, expected, self.aggregation)
        state = State(encoding, frequencies, profiles, phi, descent, pairs)
        self.session.save(state)
        return state

    def _left_out(self, encoding: TableEncoding | None) -> tuple[str, ...]:
        if PAIRS not in self.session.plan.labels or encoding is None:
            return ()
        return tell_left_out(encoding.schema, Domain(encoding.sizes))

    def _ask_pairs(self, encoding: TableEncoding | None) -> tuple[Measurement, ...]:
        if PAIRS not in self.session.plan.labels or encoding is None:
            return ()
        for sentence in self._left_out(encoding):
            # Before the training is paid for, which is most of the budget.
            self.session.options.caution(sentence)
        domain = Domain(encoding.sizes)
        pairs, _ = decoded_pairs(encoding.schema, domain)
        if not pairs:
            return ()
        self.session.progress(PAIRS, 0, 1)
        terms, alike = self.session.plan.terms(PAIRS), [1.0] * len(pairs)
        asked = ask_marginals(self.channel, terms, domain, pairs, alike)
        self.session.progress(PAIRS, 1, 1)
        return tuple(asked)

    def _model(self, encoding: TableEncoding | None) -> Model:
        tables = LABEL_TABLES.name in self.session.plan.labels
        return model_of(self.schema, self.settings, encoding, label_bias=tables)

    def _initial(
        self,
        encoding: TableEncoding | None,
        profiles: NDArray[np.float64] | None,
        frequencies: NDArray[np.float64],
    ) -> tuple[Floats, Floats]:
        """First weights of all parts, the same for each: [parts * E], [parts * D]."""
        model = self._model(encoding)
        generator = torch.Generator().manual_seed(self.session.options.seed)
        start = None if profiles is None else torch.from_numpy(np.log(profiles)).float()
        guess = None
        if profiles is not None and model.spec.classifier_weight:
            guess = torch.from_numpy(naive_bayes(profiles, frequencies))
        phi, theta = vae.initial(model.spec, generator, start, guess)
        return np.tile(phi.numpy(), model.parts), np.tile(theta.numpy(), model.parts)

    def _ask(self, state: State, rate: float) -> Released:
        model, settings, rounds = self._model(state.encoding), self.settings, self.rounds
        weights = state.descent.optimiser.weights
        return self.channel.sum(
            rounds.training.label,
            rounds.terms,
            dim=len(weights),
            kept=model.parts * model.spec.encoder_dim if self._keeps_encoder() else 0,
            arrays={"theta": self._theta(state, weights), "phi": self._phi(state)},
            settings={
                "encoder": settings.encoder or "private",
                "learning_rate": rate,
                "batch_size": settings.batch_size,
                "proximal": settings.proximal,
                "expected": rounds.unit(state.descent) / self.channel.clients,
            },
        )

    def _keeps_encoder(self) -> bool:
        return self.rounds.record and self.settings.encoder == "private"

    def _phi(self, state: State) -> Floats:
        if self.settings.encoder == "shared":
            return state.descent.optimiser.weights[: len(state.phi)]
        return state.phi

    def _theta(self, state: State, weights: Floats) -> Floats:
        return weights[len(state.phi) :] if self.settings.encoder == "shared" else weights


def _without(clique: Clique, target: int) -> Clique:
    """Columns of a table as the decoder has them, which has no target."""
    return tuple(column - (column > target) for column in clique)
