from __future__ import annotations

import pytest
import torch

from fedsynth.models import stacked, vae
from fedsynth.models.stacked import train_stacked
from tests.models.vae_reference import SPECS, ReferenceVAE

LENGTHS = torch.tensor([5, 0, 1, 12, 4, 13])
OPTIONS = {"batch_size": 4, "learning_rate": 0.05}


def clients(spec, count=6):
    generator = torch.Generator().manual_seed(3)
    pairs = [vae.initial(spec, generator) for _ in range(count)]
    phis, thetas = (torch.stack(part) for part in zip(*pairs, strict=True))
    return phis, thetas


def looped(spec, phis, thetas, x, y, noise, lengths=LENGTHS):
    """Torch modules, one client after another, each down its own gradients."""
    results, start = [], 0
    for phi, theta, length in zip(phis, thetas, lengths.tolist(), strict=True):
        model = ReferenceVAE(spec, phi, theta)
        weights = list(model.parameters())
        rows = torch.arange(start, start + length)
        for batch in rows.split(OPTIONS["batch_size"]) if length else ():
            labels = None if y is None else y[batch]
            loss = model.loss(x[batch], labels, noise[batch]).mean()
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.data -= OPTIONS["learning_rate"] * slope
        results.append(model.flat())
        start += length
    return [torch.stack(part) for part in zip(*results, strict=True)]


def test_stacked_training_equals_a_loop_over_torch_modules(spec, draw):
    phis, thetas = clients(spec)
    x, y, noise = draw(spec, int(LENGTHS.sum()))
    weights = train_stacked(spec, phis, thetas, x, y, LENGTHS, noise, **OPTIONS)
    expected = looped(spec, phis, thetas, x, y, noise)
    for ours, theirs, before in zip(weights, expected, (phis, thetas), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-6)
        assert torch.equal(ours[1], before[1])  # the client without rows
        assert (ours[2] != before[2]).any()  # the client with one


@pytest.mark.parametrize("name", ["labelled table", "image"])
def test_weights_are_held_near_where_they_began_by_the_squared_distance(name, draw):
    """A second batch leads on from where the first led: with a weight it is back by rate times
    weight of how far that was. The first batch is as without, and so are encoders unless shared."""
    spec = SPECS[name]
    phis, thetas = clients(spec, 1)
    x, y, noise = draw(spec, 8)

    def moved(rows, proximal, shared=False):
        given = (x[:rows], y[:rows], torch.tensor([rows]), noise[:rows])
        options = {**OPTIONS, "proximal": proximal, "shared": shared}
        phi, theta = train_stacked(spec, phis, thetas, *given, **options)
        return phi - phis, theta - thetas

    near, far, first = moved(8, 4.0), moved(8, 0.0), moved(4, 4.0)
    both = moved(8, 4.0, shared=True)
    # The second step goes back by this share of the first; an encoder's only where it is shared.
    held = [far[i] - OPTIONS["learning_rate"] * 4.0 * first[i] for i in (0, 1)]
    torch.testing.assert_close(near[1], held[1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(both[0], held[0], rtol=1e-4, atol=1e-6)
    assert torch.equal(near[0], far[0]) and torch.equal(near[1], both[1])
    assert all((a - b).abs().max() > 1e-4 for a, b in zip(both, far, strict=True))


def test_one_decoder_for_all_is_the_same_as_a_copy_for_each(spec, draw):
    phis, thetas = clients(spec)
    x, y, noise = draw(spec, int(LENGTHS.sum()))
    shared = train_stacked(spec, phis, thetas[0], x, y, LENGTHS, noise, **OPTIONS)
    copies = thetas[:1].repeat(len(phis), 1)
    copied = train_stacked(spec, phis, copies, x, y, LENGTHS, noise, **OPTIONS)
    assert all(torch.equal(a, b) for a, b in zip(shared, copied, strict=True))


def test_the_given_weights_stay_as_they_were(spec, draw):
    phis, thetas = clients(spec, 1)
    before = phis.clone(), thetas.clone()
    x, y, noise = draw(spec, 6)
    train_stacked(spec, phis, thetas, x, y, torch.tensor([6]), noise, **OPTIONS)
    assert torch.equal(phis, before[0])
    assert torch.equal(thetas, before[1])


@pytest.mark.parametrize("stack", [1, 2, 100])
def test_the_result_does_not_depend_on_how_many_are_stacked(stack, draw, monkeypatch):
    spec = SPECS["labelled table"]
    phis, thetas = clients(spec)
    x, y, noise = draw(spec, int(LENGTHS.sum()))
    weights = spec.encoder_dim + spec.decoder_dim
    monkeypatch.setattr(stacked, "STACK_FLOATS", stack * weights)
    result = train_stacked(spec, phis, thetas, x, y, LENGTHS, noise, **OPTIONS)
    expected = looped(spec, phis, thetas, x, y, noise)
    for ours, theirs in zip(result, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("lengths", [[0, 0], []])
def test_clients_without_any_rows_keep_their_weights(lengths, draw):
    spec = SPECS["table"]
    phis, thetas = clients(spec, 2)
    phis, thetas = phis[: len(lengths)], thetas[: len(lengths)]
    x, y, noise = draw(spec, 0)
    sizes = torch.tensor(lengths, dtype=torch.long)
    weights = train_stacked(spec, phis, thetas, x, y, sizes, noise, **OPTIONS)
    assert torch.equal(weights[0], phis)
    assert torch.equal(weights[1], thetas)


def test_training_learns(draw):
    spec = SPECS["labelled table"]
    phis, thetas = clients(spec, 2)
    x, y, noise = draw(spec, 80)
    x[:] = x[0]
    lengths = torch.tensor([40, 40])
    trained = phis, thetas
    for _ in range(8):
        trained = train_stacked(spec, *trained, x, y, lengths, noise, **OPTIONS)
    for before, after in zip(
        zip(phis, thetas, strict=True), zip(*trained, strict=True), strict=True
    ):
        losses = [vae.loss(spec, *weights, x, y, noise).mean() for weights in (before, after)]
        assert losses[1] < 0.5 * losses[0]


@pytest.mark.parametrize("name", ["labelled table", "image"])
@pytest.mark.parametrize("scale", [1e5, 1e20, 3e38])
def test_training_from_huge_weights_stays_finite(name, scale, draw):
    spec = SPECS[name]
    phis, thetas = (scale * (2 * part - 1) for part in map(torch.rand_like, clients(spec, 2)))
    x, y, noise = draw(spec, 10)
    options = {"batch_size": 4, "learning_rate": 10.0}
    weights = train_stacked(spec, phis, thetas, x, y, torch.tensor([3, 7]), noise, **options)
    assert all(part.isfinite().all() for part in weights)


def test_torch_s_threads_and_gradient_mode_are_left_alone(draw):
    spec = SPECS["table"]
    threads = torch.get_num_threads()
    with torch.no_grad():
        x, y, noise = draw(spec, int(LENGTHS.sum()))
        weights = train_stacked(spec, *clients(spec), x, y, LENGTHS, noise, **OPTIONS)
        assert not torch.is_grad_enabled()
    assert torch.get_num_threads() == threads
    assert not any(part.requires_grad for part in weights)


def test_lengths_that_do_not_sum_to_the_rows_are_refused(draw):
    spec = SPECS["table"]
    x, y, noise = draw(spec, 7)
    lengths = torch.tensor([3, 3])
    with pytest.raises(ValueError, match="lengths sum to 6, and there are 7 rows"):
        train_stacked(spec, *clients(spec, 2), x, y, lengths, noise, **OPTIONS)
