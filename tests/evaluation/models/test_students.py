"""Student networks: the paper's sizes, seeds without the global generator, odd training sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits

from fedsynth.data.tables import Images
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.utility import compare
from fedsynth.evaluation.models.students import (
    ImageStudent,
    TableStudent,
    Training,
    table_classifier,
    table_probabilities,
    train_on_synthetic,
)
from fedsynth.evaluation.reading.labelled import label_features
from fedsynth.schema import Categorical, Continuous, ImageSchema, Schema

DIGITS = ImageSchema(
    shape=(8, 8), maximum=16, target=Categorical(name="digit", values=tuple(range(10)))
)
QUICK = Training(epochs=2)


def digits() -> tuple[Images, Images]:
    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels.reshape(-1, 8, 8).astype(np.uint8), labels.astype(np.int64)
    return Images(pixels[:1200], labels[:1200]), Images(pixels[1200:], labels[1200:])


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).clip(-4, 4).round(3)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    gap = np.where(rng.random(n) < 0.2, np.nan, x[:, 1])
    return pd.DataFrame({"a": x[:, 0], "b": gap, "c": rng.choice(["u", "v"], n), "y": y})


TABLE = Schema(
    columns=(
        Continuous(name="a", lower=-4, upper=4, decimals=3),
        Continuous(name="b", lower=-4, upper=4, decimals=3, missing=True),
        Categorical(name="c", values=("u", "v")),
        Categorical(name="y", values=(0, 1)),
    ),
    target="y",
)


def parameters(net: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def test_the_networks_have_the_papers_sizes():
    generator = torch.Generator().manual_seed(0)
    image = ImageStudent((1, 28, 28), 10, generator)
    # Convolution 3x3 to 32 maps, 13x13 after pooling, 100, 10.
    assert parameters(image) == (9 + 1) * 32 + (13 * 13 * 32 + 1) * 100 + 101 * 10
    table = TableStudent(178, 2, generator)
    assert parameters(table) == 179 * 1024 + 1025 * 1024 + 1025 * 2


@pytest.mark.parametrize("layers", [1, 2])
def test_the_image_network_is_convolution_relu_pooling_dense(layers):
    net = ImageStudent((3, 11, 12), 4, torch.Generator().manual_seed(0), layers=layers)
    assert len(net.convolutions) == layers
    x = torch.rand(5, 3, 11, 12, generator=torch.Generator().manual_seed(1))
    maps = x
    for layer in net.convolutions:
        maps = torch.relu(torch.nn.functional.conv2d(maps, layer.weight, layer.bias))
        maps = torch.nn.functional.max_pool2d(maps, 2)
    flat = maps.reshape(5, -1)
    logits = net.output(torch.relu(flat @ net.hidden.weight.T + net.hidden.bias))
    torch.testing.assert_close(net(x, None), logits)


def test_dropout_has_the_papers_rates_keeps_the_mean_and_needs_a_generator():
    net = TableStudent(3, 2, torch.Generator().manual_seed(0))
    seen: list[torch.Tensor] = []
    for layer in (net.second, net.output):
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    x = torch.ones(200, 3)
    net(x, None)
    net(x, torch.Generator().manual_seed(1))
    whole_first, whole_second, first, second = seen
    assert (whole_second > 0).all()
    alive = whole_first > 0
    answers = torch.sigmoid(net.second(first))
    for kept, undropped, rate in ((first[alive], whole_first[alive], 0.25), (second, answers, 0.4)):
        # Fails a correct layer with probability 1e-7.
        dropped = int((kept == 0).sum())
        assert stats.binomtest(dropped, kept.numel(), rate).pvalue > 1e-7
        torch.testing.assert_close(kept[kept > 0], undropped[kept > 0] / (1 - rate))


def test_real_digits_teach_the_student_and_shuffled_labels_do_not():
    train, test = digits()
    found = train_on_synthetic(train, test, DIGITS, training=Training(epochs=8))
    assert found.accuracy > 0.88
    assert found.f1 > 0.88
    assert found.rows == len(test)
    shuffled = Images(train.pixels, np.random.default_rng(0).permutation(train.labels))
    assert train_on_synthetic(shuffled, test, DIGITS, training=QUICK).accuracy < 0.3


def test_rows_teach_the_table_student_what_no_linear_model_learns():
    found = train_on_synthetic(rows(700), rows(500, 1), TABLE, training=Training(epochs=8))
    # A fifth of the rows hide b, where the answer is a coin: .9 is the ceiling.
    assert 0.8 < found.accuracy < 0.96
    assert found.f1_positive > 0.75


@pytest.mark.parametrize("kind", ["images", "table"])
def test_a_seed_gives_one_student_and_the_global_generator_stays(kind):
    if kind == "images":
        train, test, schema = *digits(), DIGITS
    else:
        train, test, schema = rows(200), rows(100, 1), TABLE
    before = torch.get_rng_state()
    first, again, other = (
        train_on_synthetic(train, test, schema, seed, Training(epochs=1)) for seed in (4, 4, 5)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert first == again != other


def test_a_student_of_a_table_trained_once_answers_for_any_rows():
    train, test = (label_features(rows(n, seed), TABLE) for n, seed in ((200, 0), (100, 1)))
    answer = table_classifier(train, TABLE, 3, QUICK)
    expected = table_probabilities(train, test.x, TABLE, 3, QUICK)
    np.testing.assert_array_equal(answer(test.x), expected)
    np.testing.assert_allclose(answer(test.x[:7]), expected[:7], atol=1e-6)


def test_a_gap_that_was_not_declared_is_told_from_the_mean():
    # Only whether the cell is there says the answer.
    schema = Schema(
        columns=(Continuous(name="a", lower=0, upper=1, decimals=2), TABLE.column("y")), target="y"
    )
    a = np.where(np.arange(100) % 2, np.nan, 0.5)
    table = pd.DataFrame({"a": a, "y": np.arange(100) % 2})
    found = train_on_synthetic(table, table, schema, training=Training(epochs=15))
    assert found.accuracy == 1


def test_comparison_of_images_uses_the_student():
    train, test = digits()
    few = train.take(np.arange(100))
    found = compare(few, test, few, DIGITS, seed=2)
    assert found.synthetic == found.real == train_on_synthetic(few, test, DIGITS, seed=2)
    commonest = np.bincount(few.labels).argmax()
    assert found.majority.accuracy == (test.labels == commonest).mean()


def test_images_of_one_class_score_like_that_answer():
    train, test = digits()
    threes = train.take(train.labels == 3)
    found = train_on_synthetic(threes, test, DIGITS, training=QUICK)
    assert found.auroc == 0.5
    assert found.accuracy == (test.labels == 3).mean()


def test_classes_no_synthetic_image_has_are_scored():
    train, test = digits()
    found = train_on_synthetic(train.take(train.labels < 5), test, DIGITS, training=QUICK)
    assert 0.3 < found.accuracy < 0.6


def test_gaps_constants_and_single_rows_train_without_nan():
    odd = rows(30).assign(b=np.nan, a=1.0, c="u")
    found = train_on_synthetic(odd, rows(30, 1), TABLE, training=QUICK)
    assert 0 <= found.auroc <= 1
    lone = pd.concat([odd.head(1).assign(y=0), odd.head(1).assign(y=1)])
    assert 0 <= train_on_synthetic(lone, rows(30, 1), TABLE, training=QUICK).auroc <= 1


def test_what_cannot_be_taught_is_refused():
    train, test = digits()
    with pytest.raises(DataError, match="synthetic: the images carry no labels"):
        train_on_synthetic(Images(train.pixels), test, DIGITS)
    with pytest.raises(DataError, match="table"):
        train_on_synthetic(rows(5), test, DIGITS)
    with pytest.raises(DataError, match="images"):
        train_on_synthetic(train, rows(5), TABLE)
    with pytest.raises(DataError, match="shape"):
        train_on_synthetic(Images(train.pixels[:, :4], train.labels), test, DIGITS)
    with pytest.raises(DataError, match="0 to 9"):
        train_on_synthetic(Images(train.pixels, train.labels + 1), test, DIGITS)
    with pytest.raises(DataError, match="no images"):
        train_on_synthetic(train.take(np.arange(0)), test, DIGITS)
    with pytest.raises(ConfigError, match="target"):
        train_on_synthetic(train, test, ImageSchema(shape=(8, 8)))
    tiny = ImageSchema(shape=(3, 9), target=DIGITS.target)
    small = Images(np.zeros((2, 3, 9), dtype=np.uint8), np.array([0, 1]))
    with pytest.raises(ConfigError, match="4x4"):
        train_on_synthetic(small, small, tiny)
    for settings in ({"epochs": 0}, {"batch": 0}, {"learning_rate": 0.0}):
        with pytest.raises(ConfigError, match="above 0"):
            Training(**settings)
