"""The k-anonymity family: the thesis' table, formulas by loop, pyCANON, and where that errs."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.anonymity import anonymity
from fedsynth.evaluation.attacks.classes import diversity
from fedsynth.schema import Categorical, Integer, Schema
from tests.evaluation.attacked_people import SCHEMA, people

try:
    library = importlib.import_module("pycanon.anonymity")
except ImportError:
    library = None
needs_pycanon = pytest.mark.skipif(
    library is None, reason="pyCANON is not installed: pip install fedsynth[anonymity]"
)

PATIENTS = pd.DataFrame(
    {
        "age": ["[20, 25]"] * 2 + ["[25, 30]"] * 3,
        "sex": list("FFMMM"),
        "city": ["Madrid"] * 2 + ["Barcelona"] * 3,
        "disease": ["pneumonia"] * 2 + ["appendicitis", "coronary", "pneumonia"],
    }
)
PATIENT_SCHEMA = Schema(
    columns=[Categorical(name=name, values=sorted(set(PATIENTS[name]))) for name in PATIENTS]
)
KNOWN, SECRET = ("age", "sex", "city"), ("disease",)


@needs_pycanon
def test_the_thesis_table_2_7():
    found = anonymity({"t": PATIENTS}, PATIENT_SCHEMA, KNOWN, SECRET).tables["t"]
    assert (found.rows, found.classes, found.k, found.identified) == (5, 2, 2, 0.5)
    told = found.diversity
    assert (told.alpha, told.l, told.entropy_l) == (1, 1, 1)
    assert math.isnan(told.c)
    assert told.t == pytest.approx(0.4)
    assert told.beta == pytest.approx(2 / 3)
    # All of the first class have pneumonia, and nobody there anything else.
    assert told.enhanced_beta == math.inf
    assert told.delta == math.inf
    golden = {"k": 2, "alpha": 1, "l": 1, "entropy_l": 1, "t": 0.4, "beta": 0.6667, "delta": 0.5878}
    assert found.library == pytest.approx(golden | {"c": None, "enhanced_beta": 0.6667}, abs=1e-4)


def test_the_thesis_figure_2_3_of_adult_to_every_digit():
    document = json.loads((Path(__file__).parent / "adult_classes.json").read_text())
    counts = np.array([pair for *pair, times in document["counts"] for _ in range(times)])
    classes = np.repeat(np.arange(len(counts)), counts.sum(1))
    salaries = np.repeat(np.tile([0, 1], len(counts)), counts.ravel())
    assert (len(classes), len(counts), counts.sum(1).min()) == (7303, 462, 10)
    found = diversity(classes, salaries, ordered=False)
    assert (found.alpha, found.l, found.entropy_l) == (1, 1, 1)
    assert math.isnan(found.c)
    assert found.beta == pytest.approx(1.739309827456864, rel=1e-14)
    assert found.t == pytest.approx(0.634944543338354, rel=1e-14)
    # Some classes have one salary alone: where the thesis prints 1.0077 and 2.8039, none holds.
    assert found.enhanced_beta == found.delta == math.inf


@needs_pycanon
def test_the_thesis_second_class_alone():
    found = anonymity({"t": PATIENTS[2:]}, PATIENT_SCHEMA, KNOWN, SECRET).tables["t"]
    told = found.diversity
    assert (found.k, told.l) == (3, 3)
    assert told.alpha == pytest.approx(1 / 3)
    assert told.entropy_l == pytest.approx(3)
    assert (told.c, told.t, told.beta, told.enhanced_beta, told.delta) == (1, 0, 0, 0, 0)
    assert told.information == pytest.approx(0, abs=1e-12)


def codes(*texts: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes and values: a text a class, a digit a row."""
    classes = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return classes, np.array([int(digit) for text in texts for digit in text])


def test_recursive_diversity_takes_the_commonest_value_first():
    # Counts 3, 2, 1 and 2, 2, 2 with l = 3: 3 / 1 and 2 / 2.
    assert diversity(*codes("000112", "001122"), ordered=False).c == 3
    # l = 2: 3 / (2 + 1) and 4 / 1.
    assert diversity(*codes("000112", "00001"), ordered=False).c == 4


def test_the_earth_mover_s_distance_of_li_et_al():
    # Li, Li and Venkatasubramanian 2007, section 4: of salaries 3k .. 11k, {3k, 4k, 5k} is at .375
    # from the whole, {6k, 8k, 11k} at .167.
    classes = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    values = np.array([0, 1, 2, 3, 5, 8, 4, 6, 7])
    assert diversity(classes, values, ordered=True).t == pytest.approx(0.375)
    first = np.where(classes == 1, 0, 1)
    # What is left of the nine lies as far on the other side, half as far off.
    assert diversity(first, values, ordered=True).t == pytest.approx(1 / 6, abs=1e-12)


def test_enhanced_beta_is_beta_until_a_share_is_too_large():
    # p = 1/2 each: shares of 3/4 exceed it by .5 < ln 2; of 7/8 by .75 > ln 2.
    assert diversity(*codes("0001", "0111"), ordered=False).enhanced_beta == pytest.approx(0.5)
    far = diversity(*codes("00000001", "01111111"), ordered=False)
    assert far.beta == pytest.approx(0.75)
    assert far.enhanced_beta == math.inf
    assert far.delta == pytest.approx(math.log(4))


def plainly(classes: np.ndarray, values: np.ndarray, ordered: bool) -> dict[str, float]:
    """Every figure from its definition, class by class."""
    everything = np.unique(values)
    p = np.array([(values == s).mean() for s in everything])
    out: dict[str, list[float]] = {name: [] for name in ("alpha", "l", "e", "t", "b", "d", "h")}
    bad = False
    for _, members in groupby(sorted(zip(classes, values, strict=True)), key=lambda pair: pair[0]):
        own = np.array([value for _, value in members])
        q = np.array([(own == s).mean() for s in everything])
        seen = q[q > 0]
        out["alpha"].append(q.max())
        out["l"].append(len(seen))
        out["e"].append(-(seen * np.log(seen)).sum())
        out["h"].append(out["e"][-1] * len(own) / len(values))
        ladder = np.abs(np.cumsum(q - p)).sum() / max(len(p) - 1, 1)
        out["t"].append(ladder if ordered else np.abs(q - p).sum() / 2)
        out["b"].append(max(0, ((q - p) / p).max()))
        bad |= bool((((q - p) / p)[q > p] > -np.log(p[q > p]) + 1e-12).any())
        with np.errstate(divide="ignore"):
            out["d"].append(np.abs(np.log(q / p)).max())
    return {
        "alpha": max(out["alpha"]),
        "l": min(out["l"]),
        "entropy_l": math.exp(min(out["e"])),
        "t": max(out["t"]),
        "beta": max(out["b"]),
        "enhanced_beta": math.inf if bad else max(out["b"]),
        "delta": max(out["d"]),
        "information": -(p * np.log(p)).sum() - sum(out["h"]),
    }


def dense(numbers: list[int]) -> np.ndarray:
    return np.unique(numbers, return_inverse=True)[1]


rows_of_pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30)


@given(rows_of_pairs, st.booleans())
def test_every_figure_is_its_definition_s(pairs, ordered):
    classes, values = (dense([pair[i] for pair in pairs]) for i in (0, 1))
    told = diversity(classes, values, ordered=ordered)
    for name, wanted in plainly(classes, values, ordered).items():
        assert getattr(told, name) == pytest.approx(wanted, abs=1e-9), name


@needs_pycanon
@settings(max_examples=15, deadline=None)
@given(rows_of_pairs)
def test_pycanon_agrees_where_its_definitions_do(pairs):
    frame = pd.DataFrame({"known": [str(a) for a, _ in pairs], "kept": [str(b) for _, b in pairs]})
    schema = Schema(
        columns=[
            Categorical(name="known", values=tuple("0123")),
            Categorical(name="kept", values=tuple("01234")),
        ]
    )
    found = anonymity({"t": frame}, schema, ("known",), ("kept",)).tables["t"]
    told, asked = found.diversity, found.library
    assert asked["k"] == found.k
    for name in ("alpha", "l", "t", "beta"):
        assert asked[name] == pytest.approx(getattr(told, name)), name
    # Rounded down, where 2.9999 may stand for 3.
    assert asked["entropy_l"] in {math.floor(told.entropy_l + d) for d in (-1e-9, 1e-9)}
    if math.isfinite(told.delta):
        assert asked["delta"] == pytest.approx(told.delta)
    # Its own arguments, from the frame as it is.
    assert library.k_anonymity(frame, ["known"]) == found.k
    assert library.t_closeness(frame, ["known"], ["kept"]) == pytest.approx(told.t)


@needs_pycanon
def test_several_sensitive_columns_give_the_worst_of_each():
    frame = people(40, 1)
    known = ("colour",)
    one, two = (
        anonymity({"t": frame}, SCHEMA, known, (name,)).tables["t"].diversity
        for name in ("flag", "count")
    )
    both = anonymity({"t": frame}, SCHEMA, known, ("flag", "count")).tables["t"]
    assert both.diversity.l == min(one.l, two.l)
    assert both.diversity.t == max(one.t, two.t)
    assert both.diversity.beta == max(one.beta, two.beta)
    asked = library.t_closeness(
        frame.assign(colour=frame["colour"].fillna("?"), flag=frame["flag"].astype(str)),
        ["colour"],
        ["flag", "count"],
    )
    assert both.diversity.t == pytest.approx(asked)
    assert both.library["t"] == pytest.approx(asked)


@needs_pycanon
def test_k_and_l_by_a_group_by_with_gaps_as_a_value():
    frame = people(60, 2)
    found = anonymity({"t": frame}, SCHEMA, ("colour", "flag"), ("day",)).tables["t"]
    groups = frame.groupby(["colour", "flag"], dropna=False)
    assert frame["colour"].isna().any()
    assert found.k == groups.size().min()
    assert found.classes == groups.ngroups
    assert found.diversity.l == groups["day"].nunique(dropna=False).min()


@needs_pycanon
def test_numbers_are_cut_as_asked():
    schema = Schema(
        columns=[Integer(name="n", lower=0, upper=100), Categorical(name="c", values=("a", "b"))]
    )
    frame = pd.DataFrame({"n": [0, 49, 50, 100, 120], "c": list("ababa")})

    def sizes(bins):
        found = anonymity({"t": frame}, schema, ("n",), ("c",), bins=bins).tables["t"]
        return found.classes, found.k

    # [0, 50) and [50, 100], which takes what lies above.
    assert [sizes(bins) for bins in (None, 1, 2)] == [(5, 1), (1, 5), (2, 2)]
    with pytest.raises(ConfigError, match="bins must be 1 or more"):
        sizes(0)


@needs_pycanon
def test_neither_row_order_nor_names_matter():
    frame = people(120, 3)
    found = anonymity({"t": frame}, SCHEMA, ("colour", "flag"), ("count",)).tables["t"]
    mixed = frame.sample(frac=1, random_state=1)
    assert anonymity({"t": mixed}, SCHEMA, ("colour", "flag"), ("count",)).tables["t"] == found
    other = people(120, 3).replace({"colour": {"red": "green", "green": "red"}})
    again = anonymity({"t": other}, SCHEMA, ("flag", "colour"), ("count",)).tables["t"]
    assert (again.k, again.classes) == (found.k, found.classes)
    assert asdict(again.diversity) == pytest.approx(asdict(found.diversity))


@needs_pycanon
def test_many_classes_leave_pycanon_out_and_say_so():
    frame = people(3000, 4)
    found = anonymity({"real": frame}, SCHEMA, ("x", "y"), ("flag",))
    assert found.tables["real"].library == {}
    assert found.tables["real"].k == 1
    assert "pyCANON was not asked about real" in found.notes[-1]
    assert "prove nothing" in found.notes[0]


@needs_pycanon
def test_ten_rows_gaps_and_unseen_categories():
    frame = people(10, 1)
    frame["day"] = pd.NaT
    frame.loc[0, "colour"] = "mauve"
    found = anonymity({"t": frame}, SCHEMA, ("colour",), ("day",)).tables["t"]
    assert found.diversity.l == 1
    assert (found.diversity.t, found.diversity.information) == (0, 0)
    assert found.library["t"] is None
    with pytest.raises(DataError, match="t: has no rows"):
        anonymity({"t": frame[:0]}, SCHEMA, ("colour",), ("day",))


@pytest.mark.parametrize(
    ("known", "kept", "message"),
    [
        ((), ("flag",), "quasi-identifiers: name one"),
        (("colour",), (), "sensitive columns: name one"),
        (("colur",), ("flag",), "did you mean 'colour'"),
        (("id",), ("flag",), "no column 'id'"),
        (("colour", "flag"), ("flag",), "name a column once"),
    ],
)
def test_wrong_columns_are_refused(known, kept, message):
    with pytest.raises(ConfigError, match=message):
        anonymity({"t": people(5, 1)}, SCHEMA, known, kept)


def test_without_pycanon_the_way_to_get_it_is_told(monkeypatch):
    def refuse(name, *_):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ConfigError, match=r"pip install fedsynth\[anonymity\]"):
        anonymity({"t": people(5, 1)}, SCHEMA, ("colour",), ("flag",))
