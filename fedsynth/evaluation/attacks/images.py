"""Attacks on images, on their pixels: membership, and nearest neighbours as a diagnostic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.evaluation.attacks.membership import (
    MembershipAttack,
    describe_search,
    equal_rows,
    judge_scores,
)
from fedsynth.evaluation.attacks.neighbours import Neighbours, diagnose
from fedsynth.evaluation.attacks.scoring import mean_log
from fedsynth.evaluation.reading.features import nearest
from fedsynth.schema import ImageSchema

_SEARCHED, _SCORED = 20_000, 2_000


def image_membership(
    synthetic: Images, train: Images, real: Images, schema: ImageSchema, seed: int = 0
) -> tuple[MembershipAttack, ...]:
    """ "Density ratio", "nearest row" and "equal rows" of `attacks.membership`, on pixels.

    The attacker holds the synthetic images and half of the `real` ones; none with fewer than two.
    Of many synthetic images a part is searched, and one equal to each scored image.
    """
    if len(real) < 2:
        return ()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(real))
    half = len(real) // 2
    others, own = real.take(order[half:][:_SCORED]), real.take(order[:half][:_SEARCHED])
    members = train.take(rng.permutation(len(train))[:_SCORED])
    scored = np.concatenate([_vectors(part, schema) for part in (members, others)])
    theirs, _ = nearest(scored, _vectors(own, schema), 8)
    searched = _choose_searched(
        synthetic, np.concatenate([image_keys(members), image_keys(others)]), rng
    )
    distances, _ = nearest(scored, _vectors(searched, schema), 9)
    around = distances[:, 1:] if distances.shape[1] > 1 else distances
    density = mean_log(theirs) + mean_log(around) - 2 * mean_log(distances[:, :1])
    count, part = len(members), describe_search(len(searched), len(synthetic))
    attacks = [
        judge_scores(name, scores[:count], scores[count:], seed)
        for name, scores in (("density ratio", density), ("nearest row", -distances[:, 0]))
    ]
    return (
        *(replace(attack, sentence=attack.sentence + part) for attack in attacks),
        equal_rows(image_keys(synthetic), image_keys(train), image_keys(real)),
    )


def _choose_searched(images: Images, scored: NDArray[np.void], rng: np.random.Generator) -> Images:
    """`_SEARCHED` of the images, and one equal to each scored one."""
    if len(images) <= _SEARCHED:
        return images
    values, first = np.unique(image_keys(images), return_index=True)
    few = rng.permutation(len(images))[:_SEARCHED]
    return images.take(np.union1d(few, first[np.isin(values, scored)]))


def image_neighbours(
    synthetic: Images, train: Images, real: Images, schema: ImageSchema, seed: int = 0
) -> Neighbours:
    """Copies and distances to the nearest training image: a diagnostic, no evidence of privacy."""
    rng = np.random.default_rng(seed)
    vectors = [_vectors(_sample(part, _SCORED, rng), schema) for part in (synthetic, real)]
    among = _vectors(_sample(train, _SEARCHED, rng), schema)
    distances = [nearest(part, among, 2)[0] for part in vectors]
    made, known, held = (image_keys(part) for part in (synthetic, train, real))
    return diagnose(made, known, held, {"synthetic": distances[0], "real": distances[1]})


def _sample(images: Images, most: int, rng: np.random.Generator) -> Images:
    return images if len(images) <= most else images.take(rng.permutation(len(images))[:most])


def _vectors(images: Images, schema: ImageSchema) -> NDArray[np.float32]:
    flat = images.pixels.reshape(len(images), -1)
    return np.divide(flat, schema.maximum, dtype=np.float32)


def image_keys(images: Images) -> NDArray[np.void]:
    """Each image's bytes as one value [n]."""
    flat = np.ascontiguousarray(images.pixels.reshape(len(images), -1))
    keys: NDArray[np.void] = flat.view(np.dtype((np.void, flat.shape[1]))).ravel()
    return keys
