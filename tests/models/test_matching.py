"""The auxiliary classifier, the tanh layers, and matching a decoder to class profiles."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fedsynth.models import vae
from fedsynth.models.matching import match_profiles
from fedsynth.models.spec import VAESpec

SIZES = (3, 2, 4)
SPEC = VAESpec(
    kind="mlp",
    latent=2,
    sizes=SIZES,
    hidden=(5,),
    classes=3,
    activation="tanh",
    label_bias=True,
    classifier_weight=2.0,
)
PLAIN = VAESpec(
    kind="mlp", latent=2, sizes=SIZES, hidden=(5,), classes=3, activation="tanh", label_bias=True
)


def records(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.stack([torch.randint(0, s, (count,), generator=generator) for s in SIZES], dim=1)
    y = torch.randint(0, 3, (count,), generator=generator)
    return x, y, torch.randn(count, 2, generator=generator)


def weights(spec=SPEC, seed=0):
    generator = torch.Generator().manual_seed(seed)
    phi, theta = vae.initial(spec, generator)
    return phi, theta + 0.3 * torch.randn(len(theta), generator=generator)


def test_the_loss_is_that_of_the_vae_plus_the_weighted_cross_entropy():
    x, y, noise = records(7)
    phi, theta = weights()
    without = torch.cat([theta[: SPEC.label_bias_at.stop]])
    alone = vae.loss(PLAIN, phi, without, x, y, noise)
    logs = vae.classify(SPEC, theta, x).log()
    wanted = alone - 2.0 * logs[torch.arange(7), y]
    torch.testing.assert_close(vae.loss(SPEC, phi, theta, x, y, noise), wanted)


def test_the_classifier_is_an_affine_map_of_the_one_hot_record():
    x, _, _ = records(5)
    _, theta = weights()
    matrix = theta[SPEC.classifier_at].view(3, 10)
    cells = torch.cat([torch.nn.functional.one_hot(x[:, j], s) for j, s in enumerate(SIZES)], 1)
    wanted = (cells.float() @ matrix[:, :-1].T + matrix[:, -1]).softmax(-1)
    torch.testing.assert_close(vae.classify(SPEC, theta, x), wanted)


def test_record_gradients_cover_classifier_and_tanh():
    x, y, noise = records(6)
    phi, theta = weights()
    factors = vae.record_gradients(SPEC, phi, theta, x, y, noise)
    gradients = torch.cat([torch.einsum("bi,bj->bij", a, b).flatten(1) for a, b in factors], dim=1)

    both = phi.requires_grad_(), theta.requires_grad_()
    losses = vae.loss(SPEC, *both, x, y, noise)
    wanted = [torch.cat(torch.autograd.grad(one, both, retain_graph=True)) for one in losses]
    wanted = torch.stack(wanted)
    torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-6)


def test_the_parts_of_the_decoders_vector_are_disjoint_and_complete():
    for spec in (SPEC, PLAIN):
        layers = sum(layer.size for layer in spec.decoder_layers)
        assert spec.label_bias_at.stop - spec.label_bias_at.start == 9 * 3
        assert spec.label_bias_at.stop == spec.classifier_at.start
        assert spec.classifier_at.stop == spec.decoder_dim == layers


def test_initial_weights_put_both_parts_where_they_are_read():
    bias, classifier = torch.randn(3, 9), torch.randn(3, 10)
    _, theta = vae.initial(SPEC, torch.Generator().manual_seed(0), bias, classifier)
    torch.testing.assert_close(theta[SPEC.label_bias_at].view(9, 3), bias.T)
    torch.testing.assert_close(theta[SPEC.classifier_at].view(3, 10), classifier)
    _, theta = vae.initial(SPEC, torch.Generator().manual_seed(0))
    assert (vae.classify(SPEC, theta, records(2)[0]) == 1 / 3).all()


def test_descent_finds_the_classifier_that_logistic_regression_finds():
    # Labels that depend on the first column alone; the VAE's other parts do not touch them.
    x, _, noise = records(600)
    y = torch.where(torch.rand(600, generator=torch.Generator().manual_seed(1)) < 0.8, x[:, 0], 2)
    phi, theta = vae.initial(SPEC, torch.Generator().manual_seed(0))
    for _ in range(120):
        loss = vae.loss(SPEC, phi, theta.requires_grad_(), x, y, noise).mean()
        (gradient,) = torch.autograd.grad(loss, theta)
        theta = theta.detach()
        theta[SPEC.classifier_at] -= gradient[SPEC.classifier_at]
    cells = torch.cat([torch.nn.functional.one_hot(x[:, j], s) for j, s in enumerate(SIZES)], 1)
    other = LogisticRegression(C=1e4, max_iter=2000).fit(cells.numpy(), y.numpy())
    probabilities = vae.classify(SPEC, theta, x).numpy()
    np.testing.assert_allclose(probabilities, other.predict_proba(cells.numpy()), atol=0.03)


def test_a_matched_decoder_has_the_wanted_columns_in_every_class_and_nothing_else_changed():
    rng = np.random.default_rng(0)
    profiles = torch.from_numpy(
        np.concatenate([rng.dirichlet(np.ones(s), size=3) for s in SIZES], axis=1)
    )
    _, theta = weights()
    matched = match_profiles(SPEC, theta, profiles, torch.Generator().manual_seed(0))
    moved = torch.nonzero(matched != theta)[:, 0]
    assert moved.min() >= SPEC.label_bias_at.start
    assert moved.max() < SPEC.label_bias_at.stop
    for label in range(3):
        y = torch.full((200_000,), label)
        drawn = vae.sample(SPEC, matched, y, torch.Generator().manual_seed(1))
        start = 0
        for j, size in enumerate(SIZES):
            frequencies = np.bincount(drawn[:, j].numpy(), minlength=size) / len(drawn)
            np.testing.assert_allclose(
                frequencies, profiles[label, start : start + size], atol=0.02
            )
            start += size


@pytest.mark.parametrize(
    "wrong",
    [{"classifier_weight": -1}, {"classifier_weight": 1e9}, {"classifier_weight": 1, "classes": 0}],
)
def test_a_classifier_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="classifier"):
        VAESpec(**{"kind": "mlp", "latent": 2, "sizes": SIZES, "classes": 3, **wrong})


def test_models_without_the_parts_say_so():
    _, theta = weights(PLAIN)
    with pytest.raises(ValueError, match="no auxiliary classifier"):
        vae.classify(PLAIN, theta, records(1)[0])
    bare = VAESpec(kind="mlp", latent=2, sizes=SIZES, classes=3)
    _, theta = vae.initial(bare, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="label bias"):
        match_profiles(bare, theta, torch.ones(3, 9) / 3, torch.Generator())
