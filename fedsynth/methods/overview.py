"""A method as a person sees it: what it is for, what it cost, what it can do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedsynth.errors import FedsynthError
from fedsynth.schema import Schema
from fedsynth.views import Grid, Said, View

if TYPE_CHECKING:
    from fedsynth.methods.fitted import FittedModel
    from fedsynth.privacy.trail.certificate import Certificate

_ABLE = {
    "sample": "rows",
    "sample_weighted": "rows with weights",
    "marginal": "counts, with intervals",
    "impute": "fills gaps",
    "probabilities": "of every class, for rows",
    "predict": "the class of rows",
    "answer": "answers, with intervals",
}
"""What a fitted one may be asked, where it has the method, at no further cost."""


def overview(
    synth: FittedModel[Any], *, fitted: bool, paid: bool, certificate: Certificate | None
) -> View:
    """A view of a method for a schema, fitted or not.

    Args:
        fitted: something was learned.
        paid: it has a ledger, since it was fitted here.
        certificate: of the release that it was loaded from.
    """
    schema = synth.schema
    name = f" {schema.name!r}" if schema.name else ""
    size = (
        f"{len(schema.columns):,} columns"
        if isinstance(schema, Schema)
        else f"images of {' x '.join(map(str, schema.shape))}"
    )
    target = schema.target if isinstance(schema, Schema) else getattr(schema.target, "name", None)
    settings = ", ".join(f"{key}={value!r}" for key, value in synth.settings.changed())
    facts = [
        ("method", synth.name),
        ("schema", f"{size}, {'no target' if target is None else f'target {target}'}"),
        ("settings", settings or "all at their defaults"),
    ]
    parts: list[Said | Grid] = [Grid((), facts + (_cost(synth) if paid else []))]
    if paid:
        parts += [Said(remark, "caution") for remark in synth.remarks]
    elif certificate is not None:
        void = certificate.void is not None
        parts.append(Said(certificate.sentence, "void" if void else "strong"))
    if fitted:
        able = [f"{name} ({words})" for name, words in _ABLE.items() if hasattr(synth, name)]
        released = "rows, model and certificate" if "sample" in dir(synth) else "with a certificate"
        able += [f"release ({released})"] if paid else []
        parts.append(Said(f"Next, at no further cost: {', '.join([*able, 'save'])}."))
    elif paid:
        parts.append(Said(f"The last fit failed, so there is nothing to {synth.use}.", "caution"))
    else:
        parts.append(Said("Not fitted. Next: plan (what a fit asks and costs), fit."))
    kind = type(synth).__name__
    state = "fitted" if fitted and paid else "loaded" if fitted else "not fitted"
    return View(f"{kind} for the schema{name}, {state}", parts)


def _cost(synth: FittedModel[Any]) -> list[tuple[str, str]]:
    """What the last fit cost."""
    try:
        ledger = synth.ledger
    except FedsynthError as error:
        return [("spent", str(error))]
    job, budget, spent = ledger.job, ledger.job.budget, ledger.spent().epsilon
    clients = "one client" if job.clients == 1 else f"{job.clients:,} clients"
    insecure = ", void: a known seed, or nothing encrypted" if job.insecure else ""
    return [
        (
            "spent",
            f"epsilon {spent:.4g} of {budget.epsilon:g}, delta {budget.resolved_delta:.3g}, "
            f"for one {budget.protects.words}, {budget.trust} trust{insecure}",
        ),
        ("asked", f"{len(ledger.events):,} questions, of {clients}"),
        ("messages", synth.traffic.words),
    ]
