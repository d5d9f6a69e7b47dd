"""How terms are written in ledgers and certificates."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.sampling import SAMPLINGS
from fedsynth.privacy.selecting import Selecting
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trials import Trials


def spell(terms: Terms) -> dict[str, Any]:
    """JSON-able; :func:`read_terms` gives back an equal."""
    plain = asdict(terms)
    # As terms were written before there were these: the same line, the same hash.
    for later in ("alpha", "weigh"):
        if plain[later] is None:
            del plain[later]
    if not terms.curious:
        del plain["curious"]
    plain["sampling"] = {"kind": terms.sampling.kind, **plain["sampling"]}
    if isinstance(terms, Selecting):
        plain["parts"] = [
            [{"terms": spell(own), "count": count} for own, count in part] for part in terms.parts
        ]
    return plain


def read_terms(plain: dict[str, Any]) -> Terms:
    """Raises PrivacyError where ``plain`` is not exactly what :func:`spell` gives."""
    try:
        fields = dict(plain)
        sampling = dict(fields.pop("sampling"))
        fields["sampling"] = SAMPLINGS[sampling.pop("kind")](**sampling)
        terms = Terms(**fields) if "parts" not in fields else _read_selection(fields)
        if spell(terms) != plain:
            raise PrivacyError("unreadable privacy terms: a field is missing")
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError):
        raise PrivacyError("unreadable privacy terms: not what fedsynth writes") from None
    return terms


def _read_selection(fields: dict[str, Any]) -> Selecting:
    parts = tuple(
        tuple((read_terms(own["terms"]), own["count"]) for own in part)
        for part in fields.pop("parts")
    )
    return Selecting(parts=parts, trials=Trials(**fields.pop("trials")), **fields)
