"""Cuts: each row once, the promised distributions, seeds, and clear refusals.

Each of the 25 statistical checks (both tails counted) fails a correct cut with probability 3e-8
(5.55 standard errors), so all of them raise a false alarm with probability below 1e-6.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedsynth.data.tables import Images
from fedsynth.errors import ConfigError, DataError
from fedsynth.federation.simulation.partitions import SCHEMES, partition
from fedsynth.federation.simulation.schemes import Geometric
from fedsynth.schema import Categorical, Continuous, Identifier, ImageSchema, Integer, Schema

FALSE_ALARM = 3e-8
ERRORS = 5.55
NUMBERED = [name for name in SCHEMES if name != "column"]


def table(rows: int, labels: int = 3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(rows),
            "x": rng.normal(size=rows),
            "kind": rng.choice(["a", "b", "c"], rows),
            "label": rng.integers(labels, size=rows),
        }
    )


def images(rows: int, labels: int = 4, seed: int = 0) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (rows, 6, 6)).astype(np.uint8)
    return Images(pixels, rng.integers(labels, size=rows))


def sizes(parts: dict[str, pd.DataFrame], clients: int) -> np.ndarray:
    return np.array([len(parts.get(f"client-{k:02d}", ())) for k in range(clients)])


@settings(max_examples=30, deadline=None)
@given(
    scheme=st.sampled_from(NUMBERED),
    clients=st.integers(1, 9),
    extra=st.integers(0, 60),
    labels=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_every_row_goes_to_exactly_one_client(scheme, clients, extra, labels, seed):
    whole = table(clients + extra, labels, seed)
    options = {"per_client": whole["label"].nunique()} if scheme == "labels" else {}
    parts = partition(whole, clients, scheme, target="label", seed=seed, **options)
    held = pd.concat(parts.values()).sort_index()
    kept = ["kind", "label"] if scheme == "noise" else list(whole.columns)
    pd.testing.assert_frame_equal(held[kept], whole[kept])
    assert list(parts) == [f"client-{k:02d}" for k in range(clients)]


WITH_PERSONS = Schema(
    columns=[
        Identifier(name="who"),
        Integer(name="row", lower=0, upper=999),
        Continuous(name="x", lower=-9, upper=9, decimals=6),
        Categorical(name="kind", values=["a", "b", "c"]),
        Categorical(name="label", values=[0, 1, 2]),
    ],
    target="label",
    person="who",
)


@pytest.mark.parametrize("scheme", NUMBERED)
def test_a_persons_rows_go_to_one_client(scheme):
    whole = table(300).assign(who=np.random.default_rng(1).integers(0, 60, 300))
    parts = partition(whole, 4, scheme, schema=WITH_PERSONS, seed=3)
    assert sum(map(len, parts.values())) == 300
    owners = pd.concat([part[["who"]].assign(owner=name) for name, part in parts.items()])
    assert (owners.groupby("who")["owner"].nunique() == 1).all()
    # Persons of one row each are cut as rows are.
    single = whole.assign(who=np.arange(300))
    bare = Schema(columns=WITH_PERSONS.columns, target="label")
    told, untold = (partition(single, 4, scheme, schema=s, seed=3) for s in (WITH_PERSONS, bare))
    assert all(told[name].equals(untold[name]) for name in told)


def test_a_column_that_says_who_owns_a_row_is_followed_and_too_few_persons_are_refused():
    whole = table(30).assign(who=np.arange(30) // 10)
    parts = partition(whole, None, "column", schema=WITH_PERSONS, column="kind")
    assert sum(len(set(part["who"])) for part in parts.values()) > 3
    with pytest.raises(DataError, match="3 persons cannot be cut among 4 clients"):
        partition(whole, 4, "uniform", schema=WITH_PERSONS)
    with pytest.raises(DataError, match="rows without a person"):
        partition(whole.assign(who=None), 4, "uniform", schema=WITH_PERSONS)


@pytest.mark.parametrize("scheme", NUMBERED)
def test_every_image_goes_to_exactly_one_client_with_its_label(scheme):
    whole = images(90)
    whole.pixels[:, 0, 0] = np.arange(90)
    options = {"sigma": 0.0} if scheme == "noise" else {}
    parts = partition(whole, 5, scheme, **options)
    held = np.concatenate([part.pixels for part in parts.values()])
    labels = np.concatenate([part.labels for part in parts.values()])
    order = np.argsort(held[:, 0, 0])
    np.testing.assert_array_equal(held[order], whole.pixels)
    np.testing.assert_array_equal(labels[order], whole.labels)


@pytest.mark.parametrize("scheme", NUMBERED)
def test_a_seed_gives_one_cut_and_leaves_the_global_generator_alone(scheme):
    whole = table(200)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (
        partition(whole, 4, scheme, target="label", seed=seed) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert list(first) == list(again)
    for name in first:
        pd.testing.assert_frame_equal(first[name], again[name])
    if scheme != "kmeans":
        assert any(not first[name].equals(other.get(name)) for name in first)


def test_uniform_sizes_differ_by_one_and_ignore_the_labels():
    whole = table(10_007)
    parts = partition(whole, 10, "uniform", seed=1)
    assert sorted({len(part) for part in parts.values()}) == [1000, 1001]
    counts = [part["label"].value_counts().sort_index() for part in parts.values()]
    assert stats.chi2_contingency(np.array(counts)).pvalue > FALSE_ALARM


def test_uniform_gives_a_row_to_every_client_equally_often():
    first = [
        next(k for k, part in partition(table(3), 2, "uniform", seed=s).items() if 0 in part.index)
        for s in range(400)
    ]
    share = first.count("client-00")
    assert stats.binomtest(share, 400, 0.5).pvalue > FALSE_ALARM


def test_geometric_p_is_the_papers():
    assert Geometric(a=0.99).success(30) == pytest.approx(1 - 0.01 ** (1 / 30), rel=1e-12)
    assert round(Geometric(a=0.99).success(30), 2) == 0.14
    assert 1 - (1 - Geometric(a=0.9).success(12)) ** 12 == pytest.approx(0.9)


@pytest.mark.parametrize("a", [0.5, 0.99, 0.999999])
def test_geometric_sizes_follow_the_truncated_law(a):
    clients, rows = 8, 40_000
    parts = partition(table(rows), clients, "geometric", a=a, seed=3)
    p = 1 - (1 - a) ** (1 / clients)
    law = p * (1 - p) ** np.arange(clients) / a
    assert law.sum() == pytest.approx(1)
    assert stats.chisquare(sizes(parts, clients), rows * law).pvalue > FALSE_ALARM


def test_dirichlet_shares_of_a_label_have_the_dirichlet_mean_and_variance():
    clients, beta, draws = 4, 0.5, 400
    whole = pd.DataFrame({"label": np.repeat([0, 1], 400)})
    shares = []
    for seed in range(draws):
        parts = partition(whole, clients, "dirichlet", target="label", beta=beta, seed=seed)
        held = parts.get("client-01", whole.iloc[:0])["label"]
        shares.append(
            [(held == label).mean() * len(held) / 400 if len(held) else 0 for label in (0, 1)]
        )
    marginal = stats.beta(beta, beta * (clients - 1))
    values = np.array(shares)
    # Dvoretzky-Kiefer-Wolfowitz, plus the mass that rounding a share to 1/400 can move: the law is
    # steepest at 0.
    allowed = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * draws)) + marginal.cdf(1 / 800)
    for column in values.T:
        assert stats.kstest(column, marginal.cdf).statistic < allowed
        assert abs(column.mean() - 1 / clients) < ERRORS * marginal.std() / np.sqrt(draws)
    # Each label has a draw of its own.
    assert abs(np.corrcoef(values.T)[0, 1]) < ERRORS / np.sqrt(draws)


def test_a_large_beta_makes_dirichlet_and_quantity_even():
    whole = table(6000)
    for scheme in ("dirichlet", "quantity"):
        parts = partition(whole, 6, scheme, target="label", beta=1e9, seed=0)
        assert np.ptp(sizes(parts, 6)) <= 6


def test_quantity_changes_sizes_but_not_the_label_mix():
    whole = table(20_000)
    parts = partition(whole, 5, "quantity", beta=0.5, seed=2)
    held = sizes(parts, 5)
    assert held.max() > 3 * max(1, held.min())
    counts = [
        part["label"].value_counts().reindex(range(3), fill_value=0) for part in parts.values()
    ]
    assert stats.chi2_contingency(np.array(counts)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scheme", ["dirichlet", "quantity", "labels"])
def test_a_labels_rows_are_shuffled_before_they_are_cut(scheme):
    whole = table(5000, labels=1)
    options = {"per_client": 1} if scheme == "labels" else {}
    parts = partition(whole, 4, scheme, target="label", seed=1, **options)
    assert stats.kruskal(*(part["row"] for part in parts.values())).pvalue > FALSE_ALARM


def test_minimum_is_kept_or_refused():
    whole = table(300)
    for scheme in ("dirichlet", "quantity"):
        parts = partition(whole, 5, scheme, target="label", beta=0.3, minimum=20, seed=1)
        assert sizes(parts, 5).min() >= 20
        with pytest.raises(ConfigError, match="lower minimum"):
            partition(whole, 5, scheme, target="label", beta=0.001, minimum=60)


def test_tiny_beta_gives_each_label_to_about_one_client():
    parts = partition(table(300), 5, "dirichlet", target="label", beta=1e-6, seed=1)
    assert sum(part["label"].nunique() for part in parts.values()) == 3


@pytest.mark.parametrize(("clients", "k"), [(5, 2), (7, 3), (20, 1), (10, 10)])
def test_labels_gives_each_client_so_many_labels_spread_evenly(clients, k):
    whole = pd.DataFrame({"label": np.repeat(np.arange(10), 60)})
    parts = partition(whole, clients, "labels", target="label", per_client=k, seed=4)
    assert [part["label"].nunique() for part in parts.values()] == [k] * clients
    owners = pd.concat(part["label"].drop_duplicates() for part in parts.values()).value_counts()
    assert owners.max() - owners.min() <= 1
    for part in parts.values():
        for label, count in part["label"].value_counts().items():
            assert count in (60 // owners[label], -(-60 // owners[label]))


def test_labels_by_client_reproduces_disjoint_sets():
    whole = pd.DataFrame({"label": np.repeat(np.arange(10), 5)})
    parts = partition(whole, 3, "labels", target="label", per_client=(2, 3, 5))
    assert [len(part) for part in parts.values()] == [10, 15, 25]


def test_kmeans_finds_separated_clusters_whatever_the_scale_and_the_labels():
    rng = np.random.default_rng(0)
    centre = np.repeat(np.arange(3), 50)
    whole = pd.DataFrame(
        {
            "large": 1e6 * centre + rng.normal(size=150),
            "kind": np.array(["a", "b", "c"])[centre],
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(centre, unit="D"),
            "gap": np.nan,
            "label": rng.integers(2, size=150),
        }
    )
    parts = partition(whole, 3, "kmeans", target="label")
    held = [set(part.index // 50) for part in parts.values()]
    assert sorted(held, key=min) == [{0}, {1}, {2}]
    assert {len(part) for part in parts.values()} == {50}


def test_kmeans_of_fewer_distinct_rows_than_clients_leaves_some_without_rows_silently():
    whole = pd.DataFrame({"x": [1.0] * 10 + [2.0] * 10})
    parts = partition(whole, 5, "kmeans").values()
    assert sorted(len(part) for part in parts) == [0, 0, 0, 10, 10]


def test_kmeans_needs_a_feature():
    whole = pd.DataFrame({"text": [f"t{i}" for i in range(80)], "label": [0, 1] * 40})
    with pytest.raises(DataError, match="cluster"):
        partition(whole, 2, "kmeans", target="label")


def test_kmeans_ignores_identifiers():
    schema = Schema(
        columns=(Identifier(name="id"), Continuous(name="x", lower=0, upper=9, decimals=1))
    )
    whole = pd.DataFrame({"id": np.arange(40), "x": [0.0, 9.0] * 20})
    parts = partition(whole, 2, "kmeans", schema=schema)
    assert all(part["x"].nunique() == 1 for part in parts.values())


def test_noise_grows_with_the_client_in_units_of_the_columns_deviation():
    rows, clients, sigma = 40_000, 4, 0.8
    rng = np.random.default_rng(0)
    whole = pd.DataFrame({"x": rng.normal(5, 3, rows), "label": rng.integers(2, size=rows)})
    parts = partition(whole, clients, "noise", target="label", sigma=sigma, seed=1)
    for i, part in enumerate(parts.values(), start=1):
        noise = (part["x"] - whole.loc[part.index, "x"]) / whole["x"].std(ddof=0)
        statistic = (noise**2).sum() / (sigma * i / clients) ** 2
        tail = stats.chi2(len(part)).cdf(statistic)
        assert FALSE_ALARM < tail < 1 - FALSE_ALARM
        assert (part["label"] == whole.loc[part.index, "label"]).all()


def test_noise_keeps_types_gaps_bounds_and_decimals():
    rng = np.random.default_rng(0)
    whole = pd.DataFrame(
        {
            "small": rng.integers(0, 256, 200).astype(np.uint8),
            "count": pd.array([None, 3, 9, 0] * 50, dtype="Int64"),
            "single": rng.random(200).astype(np.float32),
            "gap": [np.nan, 1.25] * 100,
            "kind": ["a", "b"] * 100,
            "flag": [True, False] * 100,
            "y": rng.integers(2, size=200),
        }
    )
    schema = Schema(
        columns=(
            Integer(name="small", lower=0, upper=255),
            Integer(name="count", lower=0, upper=9, missing=True),
            Continuous(name="single", lower=0, upper=1, decimals=3),
            Continuous(name="gap", lower=1, upper=1.25, decimals=2, missing=True),
            Categorical(name="kind", values=("a", "b")),
            Categorical(name="flag", values=(False, True)),
            Categorical(name="y", values=(0, 1)),
        ),
        target="y",
    )
    for known in (None, schema):
        parts = partition(whole, 2, "noise", schema=known, target="y", sigma=3.0)
        noisy = pd.concat(parts.values()).sort_index()
        assert (noisy.dtypes == whole.dtypes).all()
        assert (noisy.isna() == whole.isna()).all().all()
        pd.testing.assert_frame_equal(noisy[["kind", "flag", "y"]], whole[["kind", "flag", "y"]])
        assert (noisy["small"] != whole["small"]).mean() > 0.8
    assert noisy["count"].dropna().between(0, 9).all()
    assert noisy["single"].between(0, 1).all()
    np.testing.assert_allclose(noisy["single"], noisy["single"].round(3), atol=1e-7)


def test_noise_on_images_has_the_stated_deviation_and_keeps_labels():
    rng = np.random.default_rng(0)
    pixels = rng.integers(100, 156, (3000, 6, 6)).astype(np.uint8)
    whole = Images(pixels, np.arange(3000))
    parts = partition(whole, 3, "noise", sigma=1.0, seed=5)
    for i, part in enumerate(parts.values(), start=1):
        noise = part.pixels.astype(float) - pixels[part.labels]
        expected = np.sqrt((pixels.std() * i / 3) ** 2 + 1 / 12)  # rounding adds 1/12
        assert abs(noise.std() / expected - 1) < ERRORS / np.sqrt(2 * noise.size)
        assert part.pixels.dtype == np.uint8


def test_noise_on_images_stays_within_white():
    whole = Images((images(60).pixels // 16).astype(np.uint8), None)
    parts = partition(whole, 3, "noise", sigma=9.0, schema=ImageSchema(shape=(6, 6), maximum=16))
    assert max(part.pixels.max() for part in parts.values()) == 16


def test_column_names_clients_by_its_values_in_order():
    whole = table(60)
    whole["hospital"] = [10.0, 2.0, 33.0] * 20
    parts = partition(whole, None, "column", column="hospital")
    assert list(parts) == ["2", "10", "33"]
    assert (parts["33"].index % 3 == 2).all()
    named = partition(whole, 3, "column", column="kind")
    assert list(named) == ["a", "b", "c"]
    assert all((part["kind"] == name).all() for name, part in named.items())
    pooled = partition(whole.astype({"kind": "category"}), 3, "column", column="kind")
    assert list(pooled) == ["a", "b", "c"]


@given(
    names=st.lists(st.sampled_from(["n", "s", 7, 8.0, "x y"]), min_size=1, unique=True),
    data=st.data(),
)
def test_declared_names_are_the_clients_whatever_the_rows(names, data):
    rows = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=9))
    parts = partition(pd.DataFrame({"s": rows}), None, "column", column="s", names=names)
    texts = {"n": "n", "s": "s", 7: "7", 8.0: "8", "x y": "x y"}
    assert list(parts) == [texts[name] for name in names]
    for name in names:
        held = [k for k, row in enumerate(rows) if row == name]
        assert list(parts[texts[name]].index) == held


def test_a_row_of_an_undeclared_client_is_refused_by_its_place_alone():
    whole = pd.DataFrame({"s": ["n", "n", "secret", "n"]})
    with pytest.raises(DataError, match="column 's': row 3 names a client that is not") as error:
        partition(whole, None, "column", column="s", names=["n", "e"])
    assert "secret" not in str(error.value)


def test_column_unknown_to_the_schema_is_dropped_after_the_cut():
    schema = Schema(columns=(Continuous(name="x", lower=-9, upper=9, decimals=2),))
    whole = pd.DataFrame({"site": ["n", "s"], "x": [1.0, 2.0]})
    parts = partition(whole, None, "column", column="site", schema=schema)
    assert [list(part.columns) for part in parts.values()] == [["x"], ["x"]]
    assert list(partition(whole, None, "column", column="site")["n"].columns) == ["site", "x"]


def test_column_takes_an_array_for_images():
    whole = images(6)
    parts = partition(whole, None, "column", column=np.array(["w2", "w1"] * 3))
    np.testing.assert_array_equal(parts["w1"].pixels, whole.pixels[1::2])


def test_a_thousand_clients_have_names_of_equal_width_and_the_papers_empties():
    parts = partition(table(1500), 1001, "uniform")
    assert {len(name) for name in parts} == {len("client-0000")}
    skewed = partition(table(1500), 1001, "geometric")
    assert len(skewed) == 1001
    assert sum(len(part) == 0 for part in skewed.values()) > 100


@pytest.mark.parametrize(
    ("scheme", "options", "words"),
    [
        ("unifrom", {}, "did you mean 'uniform'"),
        ("dirichlet", {"betta": 1}, "did you mean 'beta'"),
        ("uniform", {"beta": 1}, "it takes none"),
        ("dirichlet", {"beta": 0}, "beta must be above 0"),
        ("dirichlet", {"beta": float("nan")}, "finite"),
        ("quantity", {"beta": "0.5"}, "finite number"),
        ("quantity", {"minimum": -1}, "minimum"),
        ("geometric", {"a": 1.0}, "between 0 and 1"),
        ("noise", {"sigma": -0.1}, "negative"),
        ("labels", {"per_client": 0}, "per_client"),
        ("labels", {"per_client": 9}, "3 labels there are"),
        ("labels", {"per_client": (1, 2)}, "2 numbers for 4 clients"),
        ("column", {}, "column=..."),
        ("column", {"names": ["a"]}, "column=..."),
        ("column", {"column": "kind"}, "names 3 clients, not 4"),
        ("column", {"column": "kind", "names": ["a", "b", "b"]}, "each once"),
        ("column", {"column": "kind", "names": []}, "one client or more"),
    ],
)
def test_a_wrong_scheme_or_option_is_named(scheme, options, words):
    with pytest.raises(ConfigError, match=words):
        partition(table(50), 4, scheme, target="label", **options)


@pytest.mark.parametrize("clients", [0, -1, 2.5, True, None])
def test_a_wrong_number_of_clients_is_refused(clients):
    with pytest.raises(ConfigError, match="clients"):
        partition(table(50), clients, "uniform")


def test_labels_without_an_owner_are_refused():
    with pytest.raises(ConfigError, match="without an owner"):
        partition(table(50), 2, "labels", target="label", per_client=1)


def test_tables_that_cannot_be_cut_are_refused():
    with pytest.raises(DataError, match="no rows"):
        partition(table(5).iloc[:0], 1, "uniform")
    with pytest.raises(DataError, match="ask for 2 at most"):
        partition(table(2), 3, "geometric")
    with pytest.raises(DataError, match="did you mean 'label'"):
        partition(table(9), 2, "dirichlet", target="labl")
    with pytest.raises(ConfigError, match="target"):
        partition(table(9), 2, "dirichlet")
    with pytest.raises(ConfigError, match="fractions"):
        partition(table(9), 2, "dirichlet", target="x")
    with pytest.raises(DataError, match="missing in 1 rows"):
        partition(pd.DataFrame({"s": ["a", None]}), None, "column", column="s")
    with pytest.raises(DataError, match="3 values for 9 rows"):
        partition(table(9), None, "column", column=[1, 2, 3])
    with pytest.raises(DataError, match="no labels"):
        partition(Images(images(9).pixels, None), 2, "dirichlet")
    with pytest.raises(DataError, match="are called 'x'"):
        partition(pd.DataFrame([[1, 2]], columns=["x", "x"]), 1, "uniform")


def test_missing_labels_are_a_label_of_their_own():
    whole = pd.DataFrame({"label": ["a", None, "a", None] * 10})
    parts = partition(whole, 2, "labels", target="label", per_client=1)
    assert sorted(part["label"].isna().mean() for part in parts.values()) == [0, 1]
