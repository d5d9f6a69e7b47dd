"""The attacks of an evaluation: each is run, or says why it was not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

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
from fedsynth.evaluation.reading.notes import Note, Part
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.evaluation.reading.steps import Steps
from fedsynth.schema import ImageSchema

UNKNOWN = Note(
    "privacy",
    "Membership, singling out, linkability, inference and nearest neighbours",
    "need the rows that the generator learned from, which were not given.",
)
SHADOWS = Note(
    "privacy",
    "Shadow models",
    "train the method many times over, so they are run on their own "
    "(fedsynth.evaluation.attacks.shadow).",
)
_OF_TABLES = Note(
    "privacy",
    "Singling out, linkability, inference and anonymity",
    "are attacks on tables.",
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Privacy:
    """Attacks on the released rows; each says in its own words what it found.

    skipped: attacks that were not run, and why.
    """

    membership: tuple[MembershipAttack, ...] = ()
    risks: tuple[Risk, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    neighbours: Neighbours | None = None
    anonymity: Anonymity | None = None
    skipped: tuple[Note, ...] = ()


def attack_table(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    secrets: Sequence[str] | None = None,
    seed: int = 0,
    progress: Steps,
) -> Privacy:
    """Every attack on a table's released rows: `train` are members, `real` are not."""
    skipped: list[Note] = []

    def run(attack: Callable[[], Result], part: Part, topic: str) -> Result | None:
        try:
            return attack()
        except DataError as error:
            skipped.append(_skip(part, topic, error))
            return None

    tables, named = (synthetic, train, real), None if secrets is None else tuple(secrets)
    progress(0, 5)
    members = run(lambda: membership(*tables, seed=seed), "membership", "Membership")
    progress(1, 5)
    closest = neighbours(*tables, seed=seed)
    progress(2, 5)
    singled = run(lambda: singling_out(*tables, seed=seed), "risks", "Singling out")
    progress(3, 5)
    linked = run(lambda: linkability(*tables, seed=seed), "risks", "Linkability")
    progress(4, 5)
    inferred = run(lambda: inference(*tables, secrets=named, seed=seed), "attributes", "Inference")
    progress(5, 5)
    return Privacy(
        membership=members or (),
        risks=(
            *(singled or ()),
            *([linked] if linked else []),
            *(inferred.risks if inferred else ()),
        ),
        attributes=inferred.attributes if inferred else (),
        neighbours=closest,
        skipped=(*skipped, SHADOWS),
    )


def _skip(part: Part, topic: str, error: DataError) -> Note:
    """A part that several attacks share tells which of them was not run."""
    return Note(part, "", f"{topic}: {error}") if part == "risks" else Note(part, topic, str(error))


def attack_images(
    synthetic: Images,
    train: Images,
    real: Images,
    schema: ImageSchema,
    *,
    seed: int = 0,
    progress: Steps,
) -> Privacy:
    """The attacks on images: membership, and nearest neighbours as a diagnostic."""
    progress(0, 2)
    attacks = image_membership(synthetic, train, real, schema, seed)
    progress(1, 2)
    closest = image_neighbours(synthetic, train, real, schema, seed)
    progress(2, 2)
    skipped = [_OF_TABLES]
    if not attacks:
        text = "needs two real images that were not trained on."
        skipped.append(Note("membership", "Membership", text))
    return Privacy(membership=attacks, neighbours=closest, skipped=(*skipped, SHADOWS))
