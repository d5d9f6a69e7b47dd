"""The one message of Private Fusion: histograms and second moments of every class, in one sum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.request import Plain
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.copula.question import Statistics
from fedsynth.methods.copula.tasks import STATISTICS, read_question
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.session import Session
from fedsynth.queries.terms import terms_for_everyone
from fedsynth.schema import Schema

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def statistics_terms(
    budget: Budget,
    noise_multiplier: float,
    survivors: int,
    mechanism: str = "gaussian",
    alpha: float | None = None,
) -> Terms:
    """Terms of the one message, asked of everybody. ``alpha`` is for stable noise."""
    return terms_for_everyone(budget, 1.0, noise_multiplier, survivors, mechanism, alpha)


def ask_statistics(
    channel: Channel, terms: Terms, schema: Schema, settings: Mapping[str, Plain]
) -> Statistics:
    """Release the statistics of all clients in one noisy sum.

    Args:
        settings: ``share`` and ``apart`` (see :class:`Question`, :meth:`TableCells.of`), and
            perhaps ``groups``: of every client's name, from 0.
    """
    question = read_question(schema, settings, terms.norm)
    released = channel.sum(STATISTICS.name, terms, question.dim, settings=settings)
    scale = terms.summed_scale(released.answered)
    return question.answer(released.value, terms.noise.deviation(scale))


def restore_statistics(
    session: Session, schema: Schema, settings: Mapping[str, Plain]
) -> Statistics:
    """:func:`ask_statistics`, unless an interrupted run has the answer: it is saved before all
    else."""
    terms = session.plan.terms(STATISTICS.name)
    session.progress("message", 0, 1)
    if session.restored is not None:
        arrays, meta = session.restored
        question = read_question(schema, settings, terms.norm)
        return question.answer(np.asarray(arrays["values"]), float(meta["sigma"]))
    statistics = ask_statistics(session.channel, terms, schema, settings)
    values, sigma = statistics.released
    session.checkpoint({"values": values}, {"sigma": sigma})
    return statistics
