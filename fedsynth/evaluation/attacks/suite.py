"""What synthetic rows give away of those they were learned from, by attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.data.images import Images
from fedsynth.errors import DataError
from fedsynth.evaluation.attacks.anonymity import Anonymity
from fedsynth.evaluation.attacks.images import image_membership, image_neighbours
from fedsynth.evaluation.attacks.inference import Attribute, inference
from fedsynth.evaluation.attacks.linkability import linkability
from fedsynth.evaluation.attacks.membership import MembershipAttack, membership
from fedsynth.evaluation.attacks.neighbours import Neighbours, neighbours
from fedsynth.evaluation.attacks.risks import Risk
from fedsynth.evaluation.attacks.singling_out import singling_out
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.evaluation.reading.steps import Steps
from fedsynth.schema import ImageSchema

UNKNOWN = (
    "Membership, singling out, linkability, inference and nearest neighbours: need the rows that "
    "the generator learned from, which were not given."
)


@dataclass(frozen=True)
class Privacy:
    """Attacks on the released rows; each says in its own words what it found.

    skipped: attacks that were not run, and why, as sentences.
    """

    membership: tuple[MembershipAttack, ...] = ()
    risks: tuple[Risk, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    neighbours: Neighbours | None = None
    anonymity: Anonymity | None = None
    skipped: tuple[str, ...] = ()


def attacked(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    secrets: Sequence[str] | None = None,
    seed: int = 0,
    progress: Steps,
) -> Privacy:
    """Every attack on a table's released rows: `train` are members, `real` are not."""
    skipped: list[str] = []
    found: list[tuple[MembershipAttack, ...]] = []
    try:
        found.append(membership(synthetic, train, real, seed=seed))
    except DataError as error:
        skipped.append(f"Membership: {error}")
    progress(1, 5)
    closest = neighbours(synthetic, train, real, seed=seed)
    progress(2, 5)
    risks: list[Risk] = []
    try:
        risks += singling_out(synthetic, train, real, seed=seed)
    except DataError as error:
        skipped.append(f"Singling out: {error}")
    progress(3, 5)
    try:
        risks.append(linkability(synthetic, train, real, seed=seed))
    except DataError as error:
        skipped.append(f"Linkability: {error}")
    progress(4, 5)
    attributes: tuple[Attribute, ...] = ()
    try:
        named = None if secrets is None else tuple(secrets)
        guessed = inference(synthetic, train, real, secrets=named, seed=seed)
        risks += guessed.risks
        attributes = guessed.attributes
    except DataError as error:
        skipped.append(f"Inference: {error}")
    progress(5, 5)
    return Privacy(
        membership=found[0] if found else (),
        risks=tuple(risks),
        attributes=attributes,
        neighbours=closest,
        skipped=(*skipped, SHADOWS),
    )


SHADOWS = (
    "Shadow models: train the method many times over, so they are run on their own "
    "(fedsynth.evaluation.attacks.shadow)."
)


def attacked_images(
    synthetic: Images,
    train: Images,
    real: Images,
    schema: ImageSchema,
    *,
    seed: int = 0,
    progress: Steps,
) -> Privacy:
    """The attacks on images: membership, and nearest neighbours as a diagnostic."""
    found = image_membership(synthetic, train, real, schema, seed)
    progress(1, 2)
    closest = image_neighbours(synthetic, train, real, schema, seed)
    progress(2, 2)
    skipped = ["Singling out, linkability, inference and anonymity: are attacks on tables."]
    if not found:
        skipped.append("Membership: needs two real images that were not trained on.")
    return Privacy(membership=found, neighbours=closest, skipped=(*skipped, SHADOWS))
