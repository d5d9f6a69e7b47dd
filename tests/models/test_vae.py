from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.models import vae
from fedsynth.models.vae import VAESpec
from tests.models.vae_reference import SPECS, ReferenceVAE

ONE_BIT = VAESpec("mlp", 1, sizes=(2,))


def models(spec, seed=0):
    return vae.initial(spec, torch.Generator().manual_seed(seed))


def dense_rows(factors):
    return torch.cat([(left[:, :, None] * right[:, None]).flatten(1) for left, right in factors], 1)


def test_the_loss_of_a_one_bit_record_is_the_one_worked_by_hand():
    # Encoder [mean; log variance] x [cell 0, cell 1, one]; decoder [logit 0; logit 1] x [u, one].
    phi = torch.tensor([0.5, -1.0, 0.0, 0.0, 0.0, math.log(4.0)])
    theta = torch.tensor([1.0, 0.0, 0.0, 0.25])
    x, noise = torch.tensor([[0], [1]]), torch.tensor([[0.0], [1.0]])
    # Code 0: u = .5, logits (.5, .25).  Code 1: u = -1 + 2 * 1 = 1, logits (1, .25).
    reconstruction = [math.log(1 + math.exp(-0.25)), math.log(1 + math.exp(0.75))]
    kl = [0.5 * (0.25 + 4 - 1 - math.log(4)), 0.5 * (1 + 4 - 1 - math.log(4))]
    expected = torch.tensor([r + k for r, k in zip(reconstruction, kl, strict=True)])
    torch.testing.assert_close(vae.loss(ONE_BIT, phi, theta, x, None, noise), expected)


def test_the_loss_is_that_of_the_same_model_from_torch_s_own_layers(spec, draw):
    phi, theta = models(spec)
    x, y, noise = draw(spec, 6)
    expected = ReferenceVAE(spec, phi, theta).loss(x, y, noise)
    torch.testing.assert_close(vae.loss(spec, phi, theta, x, y, noise), expected)


def test_the_encoder_never_sees_the_label(draw):
    spec = SPECS["labelled table"]
    phi, theta = models(spec)
    x, y, noise = draw(spec, 8)
    plain = VAESpec("mlp", 2, sizes=(3, 3, 4), hidden=(8,))
    assert spec.encoder_dim == plain.encoder_dim
    theta = torch.zeros_like(theta)
    other = (y + 1) % spec.classes
    losses = [vae.loss(spec, phi, theta, x, labels, noise) for labels in (y, other)]
    assert torch.equal(*losses)


def test_record_gradients_are_autograd_s_row_by_row(spec, draw):
    phi, theta = models(spec)
    x, y, noise = draw(spec, 5)

    both, expected = (phi.clone().requires_grad_(), theta.clone().requires_grad_()), []
    for k in range(len(x)):
        row = [None if part is None else part[k : k + 1] for part in (x, y, noise)]
        expected.append(torch.cat(torch.autograd.grad(vae.loss(spec, *both, *row)[0], both)))
    gradients = vae.record_gradients(spec, phi, theta, x, y, noise)
    assert len(gradients) == len(spec.encoder_layers) + len(spec.decoder_layers)
    torch.testing.assert_close(dense_rows(gradients), torch.stack(expected), rtol=1e-4, atol=1e-5)


def test_the_mean_record_gradient_is_autograd_s_through_torch_s_own_layers(spec, draw):
    phi, theta = models(spec)
    x, y, noise = draw(spec, 5)
    model = ReferenceVAE(spec, phi, theta)
    model.loss(x, y, noise).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.grad)
    expected = torch.cat(model.flat())
    gradients = dense_rows(vae.record_gradients(spec, phi, theta, x, y, noise)).mean(0)
    torch.testing.assert_close(gradients, expected, rtol=1e-4, atol=1e-5)


def test_norms_from_factors_are_those_of_the_dense_rows(draw):
    spec = SPECS["labelled table"]
    factors = vae.record_gradients(spec, *models(spec), *draw(spec, 7))
    squares = sum(left.square().sum(1) * right.square().sum(1) for left, right in factors)
    torch.testing.assert_close(squares, dense_rows(factors).square().sum(1))


def test_a_label_bias_s_factors_are_the_output_error_and_the_one_hot_label(draw):
    spec = SPECS["labelled table"]
    x, y, noise = draw(spec, 7)
    *_, output, label = vae.record_gradients(spec, *models(spec), x, y, noise)
    assert torch.equal(label[0], output[0])
    assert torch.equal(label[1], torch.nn.functional.one_hot(y, spec.classes).float())


def test_record_gradients_work_where_gradients_are_switched_off(draw):
    spec = SPECS["table"]
    with torch.no_grad():
        factors = vae.record_gradients(spec, *models(spec), *draw(spec, 2))
    assert all(not part.requires_grad for pair in factors for part in pair)


def test_no_records_have_no_gradients(spec, draw):
    factors = vae.record_gradients(spec, *models(spec), *draw(spec, 0))
    assert dense_rows(factors).shape == (0, spec.encoder_dim + spec.decoder_dim)


def test_a_record_beyond_the_loss_bound_teaches_nothing(draw):
    spec = VAESpec("mlp", 2, sizes=(3, 4), hidden=(6,), loss_bound=5.0)
    phi, theta = models(spec)
    phi[-1] = 30.0  # a log variance far above the prior's
    x, y, noise = draw(spec, 4)
    assert vae.loss(spec, phi, theta, x, y, noise).tolist() == [5.0] * 4
    assert not dense_rows(vae.record_gradients(spec, phi, theta, x, y, noise)).any()


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(list(SPECS)),
    scales=st.tuples(*[st.sampled_from([0.0, 1.0, 1e4, 1e19, 1e30, 3e38])] * 2),
    seed=st.integers(0, 1000),
)
def test_any_finite_parameters_give_finite_losses_and_gradients(name, scales, seed):
    spec = SPECS[name]
    generator = torch.Generator().manual_seed(seed)
    phi, theta = (
        (2 * torch.rand(size, generator=generator) - 1) * scale
        for size, scale in zip((spec.encoder_dim, spec.decoder_dim), scales, strict=True)
    )
    rows = 3
    x = torch.zeros(rows, spec.columns)
    x[0, : spec.numbers] = torch.nan
    y = torch.arange(rows) % spec.classes if spec.classes else None
    noise = torch.randn(rows, spec.latent, generator=generator)
    x = x.long() if spec.sizes and not spec.numbers else x
    losses = vae.loss(spec, phi, theta, x, y, noise)
    assert losses.isfinite().all()
    assert (losses <= spec.bound).all()
    factors = vae.record_gradients(spec, phi, theta, x, y, noise)
    norms = sum(left.square().sum(1) * right.square().sum(1) for left, right in factors)
    assert norms.isfinite().all()
    drawn = vae.sample(spec, theta, y, generator, rows)
    assert drawn.float().isfinite().all()


def test_a_number_costs_its_gaussian_s_negative_log_density_and_a_gap_nothing():
    spec = VAESpec("mlp", 1, numbers=2, sigma=0.5)
    phi = torch.zeros(spec.encoder_dim)
    theta = torch.tensor([0.0, 0.25, 0.0, -1.0])  # means of .25 and -1, whatever the latent
    x = torch.tensor([[1.25, -1.0], [torch.nan, 0.0]])
    # (1 / .5)^2 / 2 + log .5 and log .5; then (1 / .5)^2 / 2 + log .5 alone.
    expected = torch.tensor([2 + 2 * math.log(0.5), 2 + math.log(0.5)])
    noise = torch.zeros(2, 1)
    torch.testing.assert_close(vae.loss(spec, phi, theta, x, None, noise), expected)
    (output,) = vae.record_gradients(spec, phi, theta, x, None, noise)[-1:]
    torch.testing.assert_close(output[0], torch.tensor([[-4.0, 0.0], [0.0, -4.0]]))


def test_drawn_numbers_have_the_decoder_s_means_and_the_deviations_learned_or_given():
    # Zero weights leave the biases alone; false alarm below 1e-8 (six standard errors).
    rows = 20_000
    for sigma, tail in ((0.3, []), (None, [math.log(0.3), math.log(2.0)])):
        spec = VAESpec("mlp", 1, numbers=2, sizes=(3,), sigma=sigma)
        theta = torch.zeros(spec.decoder_dim)
        theta[1], theta[3], theta[9] = 1.5, -2.0, 30.0  # biases of the numbers and of the last code
        theta[10:] = torch.tensor(tail)
        drawn = vae.sample(spec, theta, None, torch.Generator().manual_seed(3), rows).double()
        deviations = torch.tensor([0.3, 2.0 if tail else 0.3]).double()
        errors = (drawn[:, :2].mean(0) - torch.tensor([1.5, -2.0])) / deviations * rows**0.5
        assert errors.abs().max() < 6
        assert ((drawn[:, :2].std(0) / deviations - 1) * (2 * rows) ** 0.5).abs().max() < 6
        assert (drawn[:, 2] == 2).all()


def test_drawn_numbers_have_the_deviations_of_their_class():
    # False alarm below 1e-8 (six standard errors).
    rows, spec = 20_000, VAESpec("mlp", 1, numbers=1, classes=2)
    theta = torch.zeros(spec.decoder_dim)
    theta[-2:] = torch.tensor([0.4, 6.0]).log()
    generator = torch.Generator().manual_seed(4)
    for label, deviation in ((0, 0.4), (1, 6.0)):
        drawn = vae.sample(spec, theta, torch.full((rows,), label), generator)
        assert abs(float(drawn.std()) / deviation - 1) < 6 / (2 * rows) ** 0.5


def test_samples_follow_the_decoder_s_probabilities():
    # Zero weights leave the label bias alone; false alarm below 1e-9 (six standard deviations).
    spec = VAESpec("mlp", 2, sizes=(3, 2), hidden=(4,), classes=2, label_bias=True)
    wanted = torch.tensor([[0.5, 0.3, 0.2, 0.9, 0.1], [0.1, 0.1, 0.8, 0.25, 0.75]])
    generator = torch.Generator().manual_seed(5)
    _, theta = vae.initial(spec, generator, wanted.log())
    theta[: -spec.width * spec.classes] = 0
    logits = vae.decode(spec, theta, torch.randn(2, 2, generator=generator), torch.arange(2))
    torch.testing.assert_close(vae.probabilities(spec, logits), wanted)
    rows = 20_000
    for label in (0, 1):
        codes = vae.sample(spec, theta, torch.full((rows,), label), generator)
        first = torch.bincount(codes[:, 0], minlength=3) / rows
        second = torch.bincount(codes[:, 1], minlength=2) / rows
        result = torch.cat([first, second])
        assert ((result - wanted[label]).abs() < 6 * (wanted[label] / rows).sqrt()).all()


def test_output_logits_without_a_label_bias_become_the_output_layer_s_bias():
    spec = VAESpec("mlp", 2, sizes=(2, 3), hidden=(4,))
    wanted = torch.arange(5.0)
    _, theta = vae.initial(spec, torch.Generator().manual_seed(0), wanted)
    layer = spec.decoder_layers[-1]
    theta.view(-1)[-layer.size :].view(5, -1)[:, :-1] = 0
    assert torch.equal(vae.decode(spec, theta, torch.randn(1, 2), None)[0], wanted)


def test_initial_weights_lie_within_one_over_the_root_of_the_fan_in(spec):
    phi, theta = models(spec)
    assert (phi.shape, theta.shape) == ((spec.encoder_dim,), (spec.decoder_dim,))
    weights = vae.unflatten(phi, spec.encoder_layers)
    for layer, weight in zip(spec.encoder_layers, weights[::2], strict=True):
        assert weight.abs().max() <= layer.inputs**-0.5
        assert weight.abs().max() > 0.5 * layer.inputs**-0.5


def test_the_same_generator_gives_the_same_models_and_samples_and_another_does_not(spec):
    y = torch.zeros(9, dtype=torch.long) if spec.classes else None

    def run(seed):
        generator = torch.Generator().manual_seed(seed)
        phi, theta = vae.initial(spec, generator)
        drawn = vae.sample(spec, 5 * theta, y, generator, 9)
        return torch.cat([phi, theta, drawn.float().flatten()])

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


@pytest.mark.parametrize("rows", [0, 1, 7, 8])
@pytest.mark.parametrize("cells", [1, 75, 2**23])
def test_samples_are_whole_however_many_are_decoded_at_once(rows, cells, monkeypatch):
    spec = SPECS["labelled table"]
    monkeypatch.setattr(vae, "_SAMPLE_CELLS", cells)
    _, theta = models(spec)
    y = torch.zeros(rows, dtype=torch.long)
    codes = vae.sample(spec, theta, y, torch.Generator().manual_seed(0))
    assert (codes.shape, codes.dtype) == ((rows, 3), torch.int32)
    assert ((codes >= 0) & (codes < torch.tensor(spec.sizes))).all()


def test_sampled_images_are_pixel_means():
    spec = SPECS["image"]
    _, theta = models(spec)
    pixels = vae.sample(spec, theta, torch.tensor([0, 1, 1]), torch.Generator().manual_seed(0))
    assert (pixels.shape, pixels.dtype) == ((3, 96), torch.float32)
    assert ((pixels >= 0) & (pixels <= 1)).all()


def test_without_classes_the_number_of_rows_is_asked_for():
    spec = SPECS["table"]
    _, theta = models(spec)
    generator = torch.Generator().manual_seed(0)
    assert vae.sample(spec, theta, None, generator, rows=4).shape == (4, 5)
    with pytest.raises(ValueError, match="number of rows"):
        vae.sample(spec, theta, None, generator)


def test_a_conditional_model_asks_for_labels(draw):
    spec = SPECS["labelled table"]
    x, _, noise = draw(spec, 2)
    with pytest.raises(ValueError, match="labels are needed"):
        vae.loss(spec, *models(spec), x, None, noise)


@pytest.mark.parametrize("code", [-1, 4])
def test_a_code_outside_its_column_is_refused_and_the_column_named(code, draw):
    spec = SPECS["table"]
    x, y, noise = draw(spec, 3)
    x[1, 0] = code
    with pytest.raises(ValueError, match="column 0 has codes outside 0 to 3"):
        vae.record_gradients(spec, *models(spec), x, y, noise)


def test_records_of_the_wrong_width_are_refused(draw):
    spec = SPECS["table"]
    x, y, noise = draw(spec, 3)
    with pytest.raises(ValueError, match=r"\(3, 4\); it must be \(rows, 5\)"):
        vae.record_gradients(spec, *models(spec), x[:, :4], y, noise)
