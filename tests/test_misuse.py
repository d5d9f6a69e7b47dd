"""Wrong uses, as people try them: each gets an error of ours: what is wrong, and what to do.

First what people coming from other libraries write, each with the words that help. Then every
public function with objects that are none of its arguments: whatever it makes of them, no error of
Python's or of a library's comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import (
    ConfigError,
    DataError,
    FedsynthError,
    PrivacyError,
    ReleaseError,
    SchemaError,
)
from fedsynth.registry import ENTRIES

SCHEMA = fs.Schema(
    columns=[
        fs.Categorical(name="sex", values=["f", "m"]),
        fs.Integer(name="age", lower=0, upper=9, missing=True),
        fs.Integer(name="visits", lower=0, upper=9),
    ],
    target="sex",
)
IMAGES = fs.ImageSchema(shape=[2, 2], target=fs.Categorical(name="digit", values=[0, 1]))
OF_PERSONS = fs.Schema(columns=[fs.Boolean(name="b"), fs.Identifier(name="who")], person="who")
BUDGET = fs.Budget(1.0, delta=1e-5)


def people(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {name: rng.integers(0, 10, rows) for name in ("age", "visits")}
    return pd.DataFrame({"sex": rng.choice(["f", "m"], rows), **numbers})


@dataclass
class World:
    """What a user has who gets it wrong."""

    folder: Path
    table: pd.DataFrame
    images: fs.Images
    synth: Any
    infer: Any
    other: Any
    classifier: Any
    release: Path

    @property
    def csv(self) -> Path:
        return self.folder / "table.csv"

    @property
    def yaml(self) -> Path:
        return self.folder / "schema.yaml"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder, table = tmp_path_factory.mktemp("misuse"), people()
    sites = [table, people(30, 1), people(20, 2)]
    synth = fs.MST(SCHEMA, bins=3, iterations=5).fit(sites, BUDGET)
    first, second = (
        fs.FedInfer(SCHEMA).fit({name + str(k): site for k, site in enumerate(sites)}, BUDGET)
        for name in ("north", "south")
    )
    classifier = fs.FederatedClassifier(SCHEMA, rounds=1, rate=1.0).fit(sites, BUDGET)
    classifier.release(folder / "classifier")
    synth.release(folder / "release", 20)
    synth.save(folder / "model")
    table.to_csv(folder / "table.csv", index=False)
    SCHEMA.save(folder / "schema.yaml")
    begun = fs.MST(SCHEMA, bins=3, iterations=5)
    begun.fit(sites, BUDGET, folder=folder / "begun", insecure_noise_seed=0)
    pixels = np.zeros((4, 2, 2), np.uint8)
    images = fs.Images(pixels, np.array([0, 1, 0, 1]))
    fs.write_images(images, folder / "images.npz", IMAGES)
    return World(folder, table, images, synth, first, second, classifier, folder / "release")


Use = Callable[[World], object]
NEW: Callable[[], Any] = lambda: fs.FedInfer(SCHEMA)  # noqa: E731

# What is written, the error, and words that it must have: what is wrong, and what to write.
MISUSES: dict[str, tuple[Use, type[Exception], tuple[str, ...]]] = {
    # The schema.
    "AIM()": (lambda w: fs.AIM(), ConfigError, ("needs a schema", "fs.draft(table).schema")),
    "AIM(df)": (lambda w: fs.AIM(w.table), ConfigError, ("a DataFrame", "fs.draft")),
    "AIM(path)": (lambda w: fs.AIM("s.yaml"), ConfigError, ("fs.load_schema('s.yaml')",)),
    "AIM(draft)": (lambda w: fs.AIM(fs.draft(w.table)), ConfigError, ("a Draft", ".schema")),
    "AIM(image schema)": (lambda w: fs.AIM(IMAGES), ConfigError, ("for tables", "fedvae")),
    "AIM(bin=3)": (lambda w: fs.AIM(SCHEMA, bin=3), ConfigError, ("'bin'", "'bins'")),
    "AIM(settings=3)": (lambda w: fs.AIM(SCHEMA, 3), ConfigError, ("AIMSettings", "mapping")),
    "Schema(df)": (lambda w: fs.Schema(w.table), SchemaError, ("by name", "fs.draft")),
    "Schema(path)": (lambda w: fs.Schema("s.yaml"), SchemaError, ("by name", "Schema.load")),
    "Schema.load(nowhere)": (lambda w: fs.Schema.load("nowhere"), SchemaError, ("nowhere",)),
    "Schema.load(folder)": (lambda w: fs.Schema.load(w.folder), SchemaError, ("a folder",)),
    "Schema.load(csv)": (lambda w: fs.Schema.load(w.csv), SchemaError, ("table.csv", "keys")),
    "schema.column(typo)": (lambda w: SCHEMA.column("agee"), SchemaError, ("'agee'", "'age'")),
    "draft(path)": (lambda w: fs.draft("t.csv"), DataError, ("path", "fs.read_table")),
    "draft(list)": (lambda w: fs.draft([[1]]), DataError, ("a list", "pd.DataFrame(..)")),
    "choose(swapped)": (lambda w: fs.choose(BUDGET, SCHEMA), ConfigError, ("schema", "a Budget")),
    "synthesizer(typo)": (
        lambda w: fs.synthesizer("aimm", SCHEMA), ConfigError, ("'aimm'", "'aim'"),
    ),
    # The budget.
    "Budget(-1)": (lambda w: fs.Budget(epsilon=-1), ConfigError, ("positive", "-1")),
    "Budget(nan)": (lambda w: fs.Budget(epsilon=math.nan), ConfigError, ("positive", "nan")),
    "Budget(True)": (lambda w: fs.Budget(epsilon=True), ConfigError, ("epsilon", "True")),
    "Budget('1')": (lambda w: fs.Budget("1"), ConfigError, ("epsilon", "a number", "'1'")),
    "Budget(delta=2)": (lambda w: fs.Budget(1, delta=2), ConfigError, ("delta", "0 and 1")),
    "Budget(unit)": (lambda w: fs.Budget(1, unit="row"), ConfigError, ("record", "'row'")),
    "fit(df)": (lambda w: NEW().fit(w.table), ConfigError, ("epsilon=1.0", "no default")),
    "fit(df, delta)": (
        lambda w: NEW().fit(w.table, delta=1e-5), ConfigError, ("epsilon=1.0", "no default"),
    ),
    "fit(df, '1')": (lambda w: NEW().fit(w.table, "1"), ConfigError, ("Budget(epsilon", "'1'")),
    "fit(epsilon='1')": (
        lambda w: NEW().fit(w.table, epsilon="1"), ConfigError, ("epsilon", "a number", "'1'"),
    ),
    "fit(budget, epsilon)": (
        lambda w: NEW().fit(w.table, BUDGET, epsilon=1, trust="local"),
        ConfigError,
        ("epsilon, trust beside it", "one place"),
    ),
    "fit(eps=1)": (lambda w: NEW().fit(w.table, eps=1), ConfigError, ("'eps'", "'epsilon'")),
    "fit(budget={'eps': 1})": (
        lambda w: NEW().fit(w.table, {"eps": 1}), ConfigError, ("'eps'", "'epsilon'"),
    ),
    "plan(budget)": (lambda w: NEW().plan(BUDGET), ConfigError, ("clients=5",)),
    "plan(client=3)": (
        lambda w: NEW().plan(BUDGET, client=3), ConfigError, ("'client'", "'clients'"),
    ),
    "plan()": (lambda w: NEW().plan(clients=3), ConfigError, ("epsilon=1.0",)),
    # Owners.
    "fit(path)": (lambda w: NEW().fit("t.csv", 1), DataError, ("path", "fs.read_table")),
    "fit([path])": (lambda w: NEW().fit(["t.csv"], 1), DataError, ("client-0", "fs.read_table")),
    "fit(array)": (lambda w: NEW().fit(np.zeros((3, 2)), 1), DataError, ("DataFrame", "ndarray")),
    "fit([array])": (lambda w: NEW().fit([np.zeros((3, 2))], 1), DataError, ("DataFrame(array",)),
    "fit(lists)": (lambda w: NEW().fit([[1, 2]], 1), DataError, ("a list", "DataFrame(..)")),
    "fit(columns)": (lambda w: NEW().fit({"age": [1]}, 1), DataError, ("age: is a list", "dicts")),
    "fit({})": (lambda w: NEW().fit({}, 1), DataError, ("no owner", "at least one table")),
    "fit(Series)": (lambda w: NEW().fit(w.table["age"], 1), DataError, ("a Series",)),
    "fit({None: df})": (lambda w: NEW().fit({None: w.table}, 1), ConfigError, ("name", "None")),
    "fit({1: df, '1': df})": (
        lambda w: NEW().fit({1: w.table, "1": w.table}, 1), ConfigError, ("same", "rename"),
    ),
    "fit(columns that differ)": (
        lambda w: NEW().fit(w.table.drop(columns="age"), 1), DataError, ("age",),
    ),
    "fit(progress='bar')": (
        lambda w: NEW().fit(w.table, 1, progress="bar"), ConfigError, ("progress is True, False",),
    ),
    "fit twice": (
        lambda w: w.synth.fit(w.table, epsilon=1), PrivacyError, ("fitted already", "again=True"),
    ),
    "set_params after fit": (lambda w: w.synth.set_params(bins=3), ConfigError, ("another",)),
    # Rows.
    "sample before fit": (lambda w: NEW().sample(3), ConfigError, ("call fit first",)),
    "release before fit": (lambda w: NEW().release("r"), ConfigError, ("call fit first",)),
    "sample()": (lambda w: w.synth.sample(), ConfigError, ("how many rows", "sample(1_000)")),
    "sample('10')": (lambda w: w.synth.sample("10"), ConfigError, ("rows", "whole", "'10'")),
    "sample(-1)": (lambda w: w.synth.sample(-1), ConfigError, ("rows", "at least 1", "-1")),
    "sample(0.5)": (lambda w: w.synth.sample(0.5), ConfigError, ("rows", "whole", "0.5")),
    "sample(5, num_rows=5)": (
        lambda w: w.synth.sample(5, num_rows=5), ConfigError, ("num_rows is rows", "already"),
    ),
    "sample(size=5)": (lambda w: w.synth.sample(size=5), ConfigError, ("'size'", "rows")),
    "where text": (lambda w: w.synth.sample(3, "age > 3"), ConfigError, ("where", "mapping")),
    "where list": (lambda w: w.synth.sample(3, ["age"]), ConfigError, ("{'column': value}",)),
    "where range as text": (
        lambda w: w.synth.sample(3, {"age": "3-4"}), ConfigError, ("'3-4'", "(a, b)"),
    ),
    "where typo": (lambda w: w.synth.sample(3, {"agee": 3}), ConfigError, ("'agee'", "'age'")),
    "proportions": (
        lambda w: w.synth.sample(3, proportions={"f": "half"}), ConfigError, ("'f'", "'half'"),
    ),
    "release(edited='no')": (
        lambda w: w.synth.release("r", w.table, edited="no"), ConfigError, ("True or False",),
    ),
    "release(other rows)": (
        lambda w: w.synth.release("r", w.table), PrivacyError, ("its last fit", "edited"),
    ),
    "impute(Series)": (lambda w: w.synth.impute(w.table["age"]), DataError, ("to_frame()",)),
    "impute(path)": (lambda w: w.synth.impute("t.csv"), DataError, ("fs.read_table",)),
    "marginal(typo)": (lambda w: w.synth.marginal(["agee"]), ConfigError, ("'agee'", "'age'")),
    "marginal([])": (lambda w: w.synth.marginal([]), ConfigError, ("at least one",)),
    "marginal twice": (lambda w: w.synth.marginal(["age"] * 2), ConfigError, ("twice",)),
    "regression(typo)": (lambda w: w.infer.regression("visit"), ConfigError, ("'visits'",)),
    "synth.fit_transform": (lambda w: w.synth.fit_transform, AttributeError, ("fit, plan",)),
    "fs.aim": (lambda w: fs.aim, AttributeError, ("did you mean 'AIM'",)),
    "fs.choos": (lambda w: fs.choos, AttributeError, ("did you mean 'choose'",)),
    "synth.sampel": (lambda w: w.synth.sampel, AttributeError, ("did you mean 'sample'",)),
    # A classifier.
    "FederatedClassifier()": (lambda w: fs.FederatedClassifier(), ConfigError, ("needs a schema",)),
    "FederatedClassifier(a number)": (
        lambda w: fs.FederatedClassifier(SCHEMA.model_copy(update={"target": "age"})),
        ConfigError,
        ("'age' is a number", "fs.FedInfer"),
    ),
    "FederatedClassifier(layers=3)": (
        lambda w: fs.FederatedClassifier(SCHEMA, hiden=[3]), ConfigError, ("'hiden'", "'hidden'"),
    ),
    "FederatedClassifier(scaled_by rows)": (
        lambda w: fs.FederatedClassifier(SCHEMA, scaled_by=w.table),
        ConfigError,
        ("scaled_by", "folder of a release", "a DataFrame"),
    ),
    "predict before fit": (
        lambda w: fs.FederatedClassifier(SCHEMA).predict(w.table),
        ConfigError,
        ("nothing to predict with yet", "call fit first"),
    ),
    "predict(path)": (lambda w: w.classifier.predict("t.csv"), DataError, ("fs.read_table",)),
    "fit a classifier twice": (
        lambda w: w.classifier.fit(w.table, epsilon=1), PrivacyError, ("fitted already", "again"),
    ),
    "load(classifier)": (
        lambda w: fs.load(w.folder / "classifier"),
        ReleaseError,
        ("makes no rows", "fs.FederatedClassifier.load"),
    ),
    "tune(classifier)": (
        lambda w: fs.tune(w.folder / "classifier"), ReleaseError, ("a release without rows",),
    ),
    # Files.
    "load(csv)": (lambda w: fs.load(w.csv), ReleaseError, ("is a file", "folder of a release")),
    "load(nowhere)": (lambda w: fs.load("nowhere"), ReleaseError, ("nowhere", "no such folder")),
    "load(running)": (lambda w: fs.load(w.folder / "begun"), ReleaseError, ("begun", "resume")),
    "load(model)": (lambda w: fs.load(w.folder / "model"), ReleaseError, ("a model alone",)),
    "load(folder)": (lambda w: fs.load(w.folder), ReleaseError, ("no complete release",)),
    "MST.load(nowhere)": (lambda w: fs.MST.load("nowhere"), ReleaseError, ("nowhere",)),
    "verify(synth)": (lambda w: fs.verify(w.synth), ConfigError, ("folder", "a path", "MST")),
    "read_table(df)": (lambda w: fs.read_table(w.table), ConfigError, ("path", "a DataFrame")),
    "read_table(nowhere)": (lambda w: fs.read_table("t.csv"), DataError, ("t.csv", "no such")),
    # The rest.
    "partition(df, 0)": (
        lambda w: fs.partition(w.table, 0, "uniform"), ConfigError, ("clients", "at least 1"),
    ),
    "partition(df, 3, typo)": (
        lambda w: fs.partition(w.table, 3, "unifrom"), ConfigError, ("'unifrom'", "'uniform'"),
    ),
    "partition(path)": (
        lambda w: fs.partition("t.csv", 3, "uniform"), DataError, ("path", "fs.read_table"),
    ),
    "drift(swapped)": (
        lambda w: fs.drift(w.table, w.release), ConfigError, ("release must be a path",),
    ),
    "drift(classifier)": (
        lambda w: fs.drift(w.folder / "classifier", w.table), ReleaseError, ("without rows",),
    ),
    "evaluate()": (lambda w: fs.evaluate(), DataError, ("real", "evaluate(release, real=..)")),
    "evaluate(release)": (
        lambda w: fs.evaluate(w.release), ConfigError, ("evaluate(release, real=held_out)",),
    ),
    "evaluate(real)": (lambda w: fs.evaluate(w.table), DataError, ("synthetic", "synthetic=..")),
    "evaluate(3)": (lambda w: fs.evaluate(3, w.table), DataError, ("real: is a int", "a table")),
    "evaluate(real twice)": (
        lambda w: fs.evaluate(w.table, w.table, real=w.table), ConfigError, ("given twice",),
    ),
    "evaluate(release, schema)": (
        lambda w: fs.evaluate(w.release, real=w.table, schema=SCHEMA), ConfigError, ("its schema",),
    ),
    "evaluate(unfitted)": (
        lambda w: fs.evaluate(NEW(), real=w.table), ConfigError, ("call fit first",),
    ),
    "evaluate(secret typo)": (
        lambda w: fs.evaluate(w.table, w.table, SCHEMA, secrets="agee"), ConfigError, ("'age'",),
    ),
    "federated_scores(list)": (
        lambda w: fs.federated_scores([w.table], w.table, SCHEMA, 1), ConfigError, ("by name",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_wrong_use_gets_an_error_that_helps(misuse: str, world: World) -> None:
    use, error, words = MISUSES[misuse]
    with pytest.raises(error) as caught:
        use(world)
    assert [word for word in words if word not in str(caught.value)] == [], caught.value
    assert not (Path.cwd() / "r").exists()


CELL = "a private cell"
WRONG: tuple[Callable[[World], object], ...] = (
    lambda w: None,
    lambda w: "x",
    lambda w: 3.5,
    lambda w: -1,
    lambda w: [],
    lambda w: ["x", 1],
    lambda w: {1: 2},
    lambda w: w.table,
    lambda w: pd.DataFrame({"x": [CELL]}),
    lambda w: w.table["age"],
    lambda w: np.zeros((3, 2)),
    lambda w: object(),
    lambda w: SCHEMA,
    lambda w: fs.AIM,
    lambda w: w.images,
    lambda w: w.synth,
)


def calls(w: World) -> dict[str, tuple[Callable[..., object], dict[str, object]]]:
    """Every public function and method that takes arguments, with right ones for each of them."""
    table, schema, path = w.table, SCHEMA, w.folder / "written"
    sites = {"a": table, "b": table, "c": table}

    def fit(one: object = table, folder: object = None, **options: Any) -> object:
        owners = {"owners": {**sites, "a": one}, "budget": BUDGET}
        return NEW().fit(**{**owners, "folder": folder, **options})

    def cut(**options: Any) -> object:
        given = {"data": table, "clients": 2, "target": "sex", "seed": 0}
        return fs.partition(**{**given, **options})

    keys: dict[str, object] = {"keys": ("x", "y"), "schema": IMAGES}
    limits: dict[str, object] = {"lower": 0, "upper": 3, "missing": True, "name": "a"}
    scores: dict[str, object] = {"owners": sites, "synthetic": table, "schema": schema}
    drawn: dict[str, object] = {"rows": 3, "where": {"age": 3}, "seed": 1}
    return {
        "load_builtin": (fs.load_builtin, {"name": "x"}),
        "builtin_schema": (fs.builtin_schema, {"name": "digits"}),
        "Images": (
            fs.Images,
            {"pixels": w.images.pixels, "labels": w.images.labels, "persons": w.images.labels},
        ),
        "Images.take": (w.images.take, {"rows": np.array([0])}),
        "read_images": (fs.read_images, {"path": w.folder / "images.npz", "empty": False, **keys}),
        "write_images": (fs.write_images, {"images": w.images, "path": path, **keys}),
        "read_table: options": (
            fs.read_table,
            {"path": w.csv, "separator": ",", "decimal": ".", "encoding": "utf-8", "caution": str},
        ),
        "read_table: sheet": (fs.read_table, {"path": "x.xlsx", "sheet": "x"}),
        "read_sql": (fs.read_sql, {"url": "sqlite://", "query": "x", "schema": schema}),
        "read_table": (fs.read_table, {"path": w.csv, "schema": schema, "empty": False}),
        "write_table": (fs.write_table, {"frame": table, "path": path, "schema": schema}),
        "partition": (cut, {"data": table, "scheme": "uniform", "schema": schema, "clients": 2}),
        "partition: seed": (cut, {"scheme": "uniform", "target": "sex", "seed": 1}),
        "partition: dirichlet": (cut, {"scheme": "dirichlet", "beta": 1.0, "minimum": 1}),
        "partition: labels": (cut, {"scheme": "labels", "per_client": 1}),
        "partition: geometric": (cut, {"scheme": "geometric", "a": 0.5}),
        "partition: noise": (cut, {"scheme": "noise", "sigma": 0.5}),
        "partition: column": (cut, {"scheme": "column", "column": "sex", "names": ["f", "m"]}),
        "Budget": (
            fs.Budget,
            {
                "epsilon": 1, "delta": 0.1, "unit": "record", "trust": "local", "units": 9,
                "curious": 1,
            },
        ),
        "Budget: persons": (
            lambda **given: fs.Budget(epsilon=1, unit="person", **given),
            {"weigh": "row", "person_clip": 2.0, "person_share": 0.1},
        ),
        "Budget.for_clients": (BUDGET.for_clients, {"clients": 3}),
        "choose": (fs.choose, {"schema": schema, "budget": BUDGET}),
        "synthesizer": (fs.synthesizer, {"method": "mst", "schema": schema, "settings": {}}),
        "load": (fs.load, {"folder": w.release}),
        "personalise": (
            w.classifier.personalise,
            {
                "data": table, "epochs": 1, "learning_rate": 0.1, "batch_size": 9, "proximal": 0.0,
                "seed": 0,
            },
        ),
        "drift": (
            fs.drift,
            {"release": w.release, "rows": table, "least": 0.1, "alpha": 0.1, "seed": 0},
        ),
        "verify": (fs.verify, {"folder": w.release, "head": "x"}),
        "verify: trust": (fs.verify, {"folder": w.csv, "trust": w.csv}),
        "load_schema": (fs.load_schema, {"path": w.yaml}),
        "draft": (fs.draft, {"tables": table, "target": "sex"}),
        "Schema": (
            fs.Schema,
            {
                "columns": SCHEMA.columns, "target": "sex", "missing_values": ["NA"],
                "constraints": [], "name": "a", "description": "b", "provenance": "declared",
                "person": None,
            },
        ),
        "Schema.load": (fs.Schema.load, {"path": w.yaml}),
        "Schema.from_dict": (fs.Schema.from_dict, {"content": schema.to_dict()}),
        "Schema.draft": (fs.Schema.draft, {"tables": table, "target": "sex"}),
        "Schema.from_sdv": (
            fs.Schema.from_sdv,
            {"metadata": {"columns": {"sex": {"sdtype": "categorical"}}}, "table": table},
        ),
        "Schema.save": (schema.save, {"path": path}),
        "Schema.edit": (lambda name, v: schema.edit(name, lower=v), {"name": "age", "v": 1}),
        "Schema.drop": (lambda name: schema.drop(name), {"name": "age"}),
        "Schema.rename": (schema.rename, {"names": {"age": "years"}}),
        "Schema.with_constraint": (schema.with_constraint, {"constraint": {"never": {"age": 0}}}),
        "Schema.column": (schema.column, {"name": "age"}),
        "ImageSchema": (
            fs.ImageSchema,
            {"shape": [2, 2], "maximum": 16, "target": IMAGES.target, "person": "who"},
        ),
        "Categorical": (fs.Categorical, {"name": "a", "values": ["x"], "other": "z"}),
        "Boolean": (fs.Boolean, {"name": "a", "missing": False}),
        "Integer": (fs.Integer, limits),
        "Continuous": (fs.Continuous, {**limits, "decimals": 2}),
        "Datetime": (
            fs.Datetime,
            {**limits, "lower": "2020-01-01", "upper": "2021-01-01", "resolution": "day"},
        ),
        "Identifier": (fs.Identifier, {"name": "a", "prefix": "p"}),
        "method": (fs.MST, {"schema": schema, "settings": {}, "bins": 3}),
        "set_params": (NEW().set_params, {"schema": schema, "clip": None}),
        "plan": (NEW().plan, {"budget": BUDGET, "clients": 3, "survivors": 1.0}),
        "plan: forecast": (
            fs.plan,
            {"what": NEW(), "budget": BUDGET, "clients": 3, "records": 9, "survivors": 1.0},
        ),
        "plan: persons": (
            lambda rows_a_person: fs.plan(
                fs.MST(OF_PERSONS), {"epsilon": 1, "unit": "person"}, 3, rows_a_person=rows_a_person
            ),
            {"rows_a_person": [5, 3, 2]},
        ),
        "plan: keywords": (NEW().plan, {"clients": 3, "epsilon": 1.0, "delta": 1e-5}),
        "Plan.terms": (w.synth.plan(BUDGET, 3).terms, {"label": "histogram"}),
        "Plan.epsilon": (w.synth.plan(BUDGET, 3).epsilon, {"delta": 0.1}),
        "fit": (
            fit,
            {
                "one": table, "owners": sites, "budget": BUDGET, "plan": None, "seed": 0,
                "again": False, "resume": False, "moved": False, "survivors": 1.0,
                "owners_ledgers": {}, "checkpoint_every": 25, "owners_provenance": "declared",
                "most_records": 99, "outside": 0.05, "deadline": None, "caution": str,
                "insecure_noise_seed": None,
            },
        ),
        "fit: keywords": (
            lambda **given: NEW().fit(sites, **given),
            {
                "epsilon": 1.0, "delta": 1e-5, "unit": "record", "trust": "local", "units": 90,
                "curious": 1,
            },
        ),
        "sample": (w.synth.sample, drawn),
        "sample: proportions": (w.synth.sample, {"rows": 3, "proportions": {"f": 1}}),
        "sample: persons": (w.synth.sample, {"rows": 3, "persons": False}),
        "sample: a value": (lambda v: w.synth.sample(3, {"age": v}), {"v": 3}),
        "sample: a share": (lambda v: w.synth.sample(3, proportions={"f": v}), {"v": 1}),
        "sample, of another method": (w.infer.sample, {**drawn, "proportions": {"f": 1}}),
        "sample_weighted": (w.synth.sample_weighted, drawn),
        "impute": (w.synth.impute, {"frame": table, "seed": 1}),
        "marginal": (w.synth.marginal, {"columns": ["age"], "where": {"sex": "f"}, "level": 0.9}),
        "drew": (w.synth.drew, {"rows": table}),
        "check_draw": (w.synth.check_draw, {"where": {}, "proportions": {}}),
        "release": (
            w.synth.release,
            {
                "folder": w.release, "rows": 9, "report": None, "seed": 1, "edited": False,
                "persons": False,
            },
        ),
        "save": (w.synth.save, {"folder": w.release}),
        "method.load": (fs.MST.load, {"folder": w.folder / "model"}),
        "merge": (w.infer.merge, {"other": w.other}),
        "arrivals": (lambda order: list(w.infer.arrivals(order)), {"order": None}),
        "regression": (w.infer.regression, {"target": "visits", "on": ["sex"], "ridge": 0.0}),
        "Regression.intervals": (w.infer.regression("visits", "sex").intervals, {"level": 0.9}),
        "Regression.predict": (w.infer.regression("visits", "sex").predict, {"frame": table}),
        "probabilities": (w.infer.probabilities, {"data": table}),
        "FederatedClassifier": (
            fs.FederatedClassifier,
            {"schema": schema, "settings": {}, "hidden": [3], "scaled_by": "schema", "clip": 1.0},
        ),
        "FederatedClassifier.predict": (w.classifier.predict, {"data": table}),
        "FederatedClassifier.predict_proba": (w.classifier.predict_proba, {"data": table}),
        "FederatedClassifier.score": (w.classifier.score, {"data": table}),
        "FederatedClassifier.release": (w.classifier.release, {"folder": w.release}),
        "FederatedClassifier.load": (
            fs.FederatedClassifier.load, {"folder": w.folder / "classifier"},
        ),
        # Too few bins: what is right of all else ends there, before anything is computed.
        "federated_scores": (fs.federated_scores, {**scores, "budget": BUDGET, "bins": 1}),
        "shadow_attack": (
            fs.shadow_attack,
            {"make": lambda rows, seed: rows, "pool": table[:3], "schema": schema, "shadows": 4,
             "targets": 2, "seed": 0},
        ),
        "evaluate": (
            lambda release=None, **given: fs.evaluate(release, **given),
            # No such model, likewise.
            {"models": ["x"], "release": None, "real": table, "synthetic": table, "schema": schema,
             "train": table, "target": "x", "secrets": ["age"], "quasi_identifiers": ["age"],
             "against": (), "sensitive": [], "title": "t", "seed": 0, "public": False,
             "certificate": None},
        ),
        # No such metric, likewise.
        "tune": (
            lambda releases, **given: fs.tune(releases, metric="x", **given),
            {"releases": w.release, "trials": 1, "rows": 9, "seed": 0, "jobs": 1},
        ),
        # Nothing is held out, likewise.
        "select": (
            lambda **given: fs.select(**given, holdout=1.0),
            {"candidates": [NEW(), NEW()], "public": table, "budget": BUDGET, "clients": 3,
             "records": None, "repeats": 2, "score": None, "seed": 0, "progress": None},
        ),
        # Nobody is asked, since nobody is trusted.
        "select_privately": (
            lambda **given: fs.select_privately(**given, trust="distributed"),
            {"candidates": [NEW(), NEW()], "owners": table, "folder": w.folder / "best",
             "epsilon": 1.0, "trials": 2, "score": None, "holdout": 0.2, "rows": 9,
             "outside": "allow", "owners_ledgers": None, "owners_provenance": "declared",
             "caution": print},
        ),
        "Certificate.load": (fs.Certificate.load, {"folder": w.release}),
    }  # fmt: skip


def test_objects_that_are_no_arguments_get_an_error_of_ours_that_quotes_no_cell(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made of an object that will do is for other tests. One that is refused is refused by
    an error of ours, since one from inside helps nobody, and not quoted where it is a table."""
    monkeypatch.chdir(world.folder)
    strange = {}
    for name, (call, right) in calls(world).items():
        for parameter in right:
            for number, make in enumerate(WRONG):
                try:
                    call(**{**right, parameter: make(world)})
                except FedsynthError as error:
                    if CELL in str(error):
                        strange[name, parameter, number] = str(error)
                except Exception as error:
                    strange[name, parameter, number] = repr(error)
    assert strange == {}


def test_no_public_function_is_left_out(world: World) -> None:
    """Results, which users do not make, and methods, of which one stands for all, aside."""
    results = {
        "Certificate",
        "Draft",
        "Drift",
        "Evaluation",
        "Forecast",
        "Plan",
        "Selected",
        "Tuned",
    }
    results |= {"PrivatelySelected"}
    methods = {entry.kind for entry in ENTRIES.values()}
    tried = {name.partition(":")[0].partition(".")[0] for name in calls(world)}
    assert set(fs.__all__) - results - methods <= tried
