from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedsynth
from fedsynth.data.conforming import conform, restore
from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.errors import DataError
from fedsynth.schema import Continuous, Schema
from fedsynth.schema.checking import check
from fedsynth.yaml_files import read_yaml


def _persons():
    """The table `health`, from the experiment's own file, which statsmodels brings along."""
    home = Path(pytest.importorskip("statsmodels.datasets.randhie").__file__).parent
    raw = pd.read_csv(home / "src" / "randhie.csv").sort_values(["zper", "year"], kind="stable")
    first = raw.groupby("zper", as_index=False).head(1).reset_index(drop=True)
    rated = [first["hlthg"] == 1, first["hlthf"] == 1, first["hlthp"] == 1]
    return pd.DataFrame(
        {
            "site": "site " + first["site"].astype(int).astype(str),
            "age": np.floor(first["xage"]).astype(int),
            "sex": np.where(first["female"] == 1, "female", "male"),
            "schooling": np.floor(first["educdec"]),
            "family_size": first["num"].astype(int),
            "coinsurance": first["coins"].astype(int),
            "chronic_diseases": first["disea"].round().astype(int),
            "health": np.select(rated, ["good", "fair", "poor"], "excellent").astype(object),
            "hospital_stays": first["totadm"].astype(int),
            "prescriptions": first["drugdol"].round().astype(int),
            "saw_doctor": np.where(first["mdvis"] > 0, "yes", "no"),
        }
    )


def test_health_is_a_row_of_every_person_of_the_experiment_under_its_schema():
    table, schema = load_builtin("health"), builtin_schema("health")
    pd.testing.assert_frame_equal(table, _persons())
    assert table.shape == (5_912, 11)
    assert check(table.drop(columns="site"), schema) == []
    job = read_yaml(Path(fedsynth.__file__).parent / "configs" / "demo.yaml", DataError)
    assert set(job["sites"]["names"]) == set(table[job["sites"]["column"]])


def test_randhie_is_the_published_table_under_its_schema():
    module = pytest.importorskip("statsmodels.datasets.randhie")
    raw = module.load_pandas().data
    table, schema = load_builtin("randhie"), builtin_schema("randhie")
    assert isinstance(schema, Schema)
    assert table.shape == (20_190, 9)
    # The file that has the persons has the same rows, in the same order.
    source = pd.read_csv(Path(module.__file__).parent / "src" / "randhie.csv")
    shared = ["mdvis", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]
    pd.testing.assert_frame_equal(source[shared], raw[shared], check_dtype=False, rtol=1e-4)
    assert schema.person == "person" and table["person"].nunique() == 5_912
    assert table["person"].value_counts().agg(["min", "max"]).tolist() == [1, 5]
    # The codebook's means (Cameron and Trivedi 2005) of the three dummies, and none of the four.
    shares = table["health"].value_counts(normalize=True)
    assert shares[["good", "fair", "poor"]].to_numpy() == pytest.approx(
        raw[["hlthg", "hlthf", "hlthp"]].mean().to_numpy()
    )
    assert (table["individual_deductible"] == "yes").mean() == pytest.approx(raw["idp"].mean())
    assert check(table, schema) == []
    assert schema.target == "health"
    assert schema.provenance == "declared"


def test_randhie_comes_back_through_its_arrays_at_its_declared_decimals():
    pytest.importorskip("statsmodels")
    table, schema = load_builtin("randhie"), builtin_schema("randhie")
    copy = restore(conform(table, schema).columns, schema, np.random.default_rng(0))
    places = {c.name: c.decimals for c in schema.columns if isinstance(c, Continuous)}
    kept = [column.name for column in schema.observed]
    pd.testing.assert_frame_equal(copy[kept], table[kept].round(places))


def test_randhie_without_statsmodels_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(DataError, match=r"pip install 'fedsynth\[randhie\]'"):
        load_builtin("randhie")


def test_digits_are_uint8_images_within_their_schema():
    images, schema = load_builtin("digits"), builtin_schema("digits")
    assert images.pixels.shape == (1797, *schema.shape)
    assert images.pixels.dtype == np.uint8
    assert images.pixels.max() == schema.maximum == 16
    assert schema.classes == len(np.unique(images.labels)) == 10


@pytest.mark.parametrize("load", [load_builtin, builtin_schema])
def test_an_unknown_name_is_refused_with_the_known_ones(load):
    with pytest.raises(DataError, match="did you mean 'digits'"):
        load("digit")
    with pytest.raises(DataError, match="digits, health, randhie"):
        load("../adult")
