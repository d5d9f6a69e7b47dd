"""Contents of reports as an evaluation makes them: a table, images, and hardly anything."""

from __future__ import annotations

import base64
import functools
import itertools
import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Content = dict[str, Any]

_NUMBERS = {
    "age": (17, 90, 38.6, 13.7),
    "fnlwgt": (12285, 1490400, 189664, 105604),
    "education-num": (1, 16, 10.1, 2.6),
    "capital-gain": (0, 99999, 1079, 7452),
    "capital-loss": (0, 4356, 87.5, 403),
    "hours-per-week": (1, 99, 40.4, 12.4),
}
_CATEGORIES = {
    "workclass": ".694 Private, .079 Self-emp-not-inc, .064 Local-gov, .057 (missing), "
    ".041 State-gov, .035 Self-emp-inc, .029 Federal-gov, .001 Never-worked",
    "education": ".323 HS-grad, .223 Some-college, .164 Bachelors, .054 Masters, .042 Assoc-voc, "
    ".037 11th, .033 Assoc-acdm, .028 10th, .020 7th-8th, .017 Prof-school, "
    ".015 9th, .013 12th, .012 Doctorate, .010 5th-6th, .005 1st-4th, "
    ".004 Preschool",
    "marital-status": ".458 Married-civ-spouse, .330 Never-married, .136 Divorced, .031 Separated, "
    ".031 Widowed, .013 Married-spouse-absent, .001 Married-AF-spouse",
    "occupation": ".126 Prof-specialty, .125 Craft-repair, .125 Exec-managerial, "
    ".115 Adm-clerical, .113 Sales, .101 Other-service, .062 Machine-op-inspct, "
    ".058 (missing), .048 Transport-moving, .042 Handlers-cleaners, .030 Farming, "
    ".030 Tech-support, .020 Protective-serv, .005 Priv-house-serv",
    "relationship": ".404 Husband, .258 Not-in-family, .155 Own-child, .105 Unmarried, .048 Wife, "
    ".030 Other-relative",
    "race": ".855 White, .096 Black, .031 Asian-Pac-Islander, .010 Amer-Indian-Eskimo, .008 Other",
    "sex": ".668 Male, .332 Female",
    "native-country": ".897 United-States, .019 Mexico, .018 (missing), .006 Philippines",
    "income": ".761 <=50K, .239 >50K",
}
"""Shares and values, separated by commas."""

NAMES = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
FEW = ["age", "workclass", "capital-gain", "income"]
"""Enough of them for whatever a page does not do for each column."""


_RECALL = [0.93, 0.96, 0.74, 0.72, 0.77, 0.561, 0.88, 0.81, 0.66, 0.75]
_RECALL_REAL = [0.99, 0.99, 0.98, 0.98, 0.98, 0.97, 0.985, 0.97, 0.97, 0.962]


def table(names: list[str] = NAMES) -> Content:
    """A full report on a table of these columns."""
    rng = np.random.default_rng(4)
    content = _frame("adult, epsilon 1, ten owners", "table")
    content["data"] |= {"columns": len(names), "target": "income", "task": "classification"}
    content["certificate"] = _certificate()
    content["summary"] = _summary()
    content["fidelity"] = fidelity([column(name, rng) for name in names], rng)
    content["utility"] = _utility(rng)
    content["privacy"] = _privacy()
    content["errors"] = errors(names)
    content["clients"] = [
        {"name": f"hospital-{i}", "rows": n, "accuracy": a, "distance": d}
        for i, (n, a, d) in enumerate(
            [(9120, 0.861, 0.031), (4233, 0.842, 0.048), (611, 0.787, 0.117), (88, None, 0.224)]
        )
    ]
    content["notes"] = [
        "Marginals of three columns: 455 sets, all of them.",
        "Shadow models were not trained: they are meant for fewer than 5,000 rows.",
        "Membership inference used 9,769 members and 9,769 others.",
    ]
    return content


def images() -> Content:
    """A report on images of ten classes: no columns, no target of a table."""
    content = _frame("mnist writers", "image")
    content["data"]["rows"] = {"real": 10000, "train": 60000, "synthetic": 10000}
    content["data"] |= {"columns": 784, "target": "digit", "task": "classification"}
    content["certificate"] = _certificate() | {
        "epsilon": 442.0,
        "unit": "client",
        "sentence": "Adding or removing any one client with all its records changes the "
        "probability of any outcome by at most a factor of 9.3e+191 (epsilon 442), except with "
        "probability 1e-05 (delta).",
    }
    content["summary"] = {
        "verdict": "Readable digits from which a network learns four in five of what real ones "
        "teach; at this epsilon the certificate protects nobody.",
        "headlines": [
            _headline("Accuracy of a student", 0.782, 0.981, 0.114, "Share of real digits read."),
            _headline("Worst class", 0.561, 0.962, 0.0, "Recall of the digit it reads worst."),
            _headline("Pixel means", 0.021, 0.004, 0.11, "Mean difference.", "lower"),
            _headline("Membership attack", None, 0.5, 0.5, "0.5 is guessing.", "lower"),
        ],
        "beware": ["An epsilon of 442 limits nothing in practice."],
    }
    content["images"] = {
        "student": {"synthetic": 0.782, "real": 0.981, "majority": 0.114},
        "classes": [
            {"name": str(digit), "synthetic": s, "real": r}
            for digit, (s, r) in enumerate(zip(_RECALL, _RECALL_REAL, strict=True))
        ],
        "grid": {"synthetic": _digits(7, 0.35), "real": _digits(3, 0.0)},
        "pixels": {"mean_error": 0.021, "deviation_error": 0.034},
    }
    content["privacy"] = {
        "membership": [],
        "risks": [],
        "attributes": [],
        "neighbours": None,
        "anonymity": None,
        "skipped": ["Membership inference: attacks on images are not built."],
    }
    content["reasons"] = {"membership": ["attacks on images are not built."]}
    content["notes"] = ["The student network was trained for five epochs."]
    return content


def minimal() -> Content:
    """Five rows, nobody's certificate, nearly nothing that could be computed."""
    content = _frame("five rows", "table")
    content["certificate"] = None
    content["disclosure"] = {"public": True, "text": "computed on a public holdout"}
    content["data"]["rows"] = {"real": 5, "train": None, "synthetic": 5}
    content["data"] |= {"columns": 2}
    content["summary"] = {
        "verdict": "Five rows are too few to say anything.",
        "headlines": [_headline("Columns alike", 0.6, None, None, "Mean overlap of columns.")]
        + [_headline(name, None, None, None, "") for name in ("Pairs", "Utility", "Attacks")],
        "beware": [],
    }
    content["fidelity"] = {
        "columns": [_empty_column("a", "number"), _empty_column("b", "category")],
        "pairs": {
            "names": ["a", "b"],
            "distance": [[0.4, None], [None, None]],
            "correlation": None,
            "contingency": None,
            "reference": None,
        },
        "marginals": [],
        "coherence": None,
        "detection": [],
        "quality": None,
        "diagnostic": None,
    }
    content["fidelity"]["columns"][0]["score"] = 0.6
    content["privacy"] = {
        "membership": [],
        "risks": [],
        "attributes": [],
        "neighbours": None,
        "anonymity": None,
        "skipped": ["Every attack needs at least 50 rows of each kind: there are 5."],
    }
    content["reasons"] = {"detection": ["it needs at least 20 rows of each kind: there are 5."]}
    content["notes"] = ["Detection needs at least 20 rows of each kind: there are 5."]
    return content


def wide(columns: int, name: str = "measurement {}") -> Content:
    """The table report with many columns of its kinds."""
    rng = np.random.default_rng(5)
    content = table()
    kinds = [column(each, rng) for each in NAMES]
    many = [kinds[i % 15] | {"name": name.format(i)} for i in range(columns)]
    content["data"]["columns"] = columns
    content["fidelity"] = fidelity(many, rng)
    return content


def long_names() -> Content:
    """The report on 60 columns whose names are long, as are those of clients and attacks."""
    content = wide(60, "systolic blood pressure at admission {}")
    long = "mean arterial pressure during the first day"
    for error in content["fidelity"]["marginals"]:
        error["worst_columns"] = [f"{long} {i}" for i in range(len(error["worst_columns"]))]
    for entry in [*content["privacy"]["risks"], *content["privacy"]["attributes"]]:
        entry["column"] = long
        entry["sentence"] = f"Whoever holds the rows guesses {long} of 100.0% of the people. " * 2
    for client in content["clients"]:
        client["name"] = f"university hospital, {long}, {client['name']}"
    return content


def _frame(title: str, kind: str) -> Content:
    return {
        "format": 1,
        "fedsynth": "0.1.0",
        "seed": 0,
        "title": title,
        "created": None,
        "data": {
            "kind": kind,
            "columns": None,
            "target": None,
            "task": None,
            "rows": {"real": 9769, "train": 39073, "synthetic": 39073},
        },
        "disclosure": {
            "public": False,
            "text": "computed on real data: not covered by epsilon, do not publish beside the "
            "release",
        },
        "certificate": None,
        "summary": {"verdict": "", "headlines": [], "beware": []},
        "fidelity": None,
        "utility": None,
        "privacy": None,
        "images": None,
        "clients": None,
        "errors": None,
        "notes": [],
        "reasons": {},
    }


def errors(columns: list[str]) -> list[Content]:
    """How far counts may be off: of each column, the worse the later it stands, and two pairs."""
    whole = 10_000.0

    def entry(names: list[str], cells: int, error: float | None, use: str) -> Content:
        worst = None if error is None else 2 * error
        held = {"columns": names, "cells": cells, "records": whole / cells}
        return held | {"error": error, "worst": worst, "use": use}

    uses = ["well", "roughly", "hardly"]
    alone = [entry([name], 4, 100.0 * k, uses[k % 3]) for k, name in enumerate(columns)]
    pairs = [entry(columns[:2], 16, 500.0, "hardly"), entry(columns[1:3], 16, None, "not measured")]
    return [*alone, *pairs, entry([columns[0], columns[2]], 8, 50.0, "well")]


def _certificate() -> Content:
    return {
        "sentence": "Adding or removing any one record changes the probability of any outcome by "
        "at most a factor of 2.72 (epsilon 1), except with probability 1e-05 (delta).",
        "epsilon": 1.0,
        "delta": 1e-05,
        "unit": "record",
        "trust": "distributed",
        "head": "0123456789abcdef" * 4,
        "adversaries": [
            {
                "who": "whoever holds the release",
                "knows": "the release",
                "epsilon": 0.89,
                "promised": True,
            },
            {
                "who": "one owner",
                "knows": "the same, with the server, and its share of the noise",
                "epsilon": 1.0,
                "promised": True,
            },
            {"who": "the server", "knows": "all", "epsilon": "inf", "promised": False},
        ],
        "not_covered": [
            "The schema (bounds, categories, decimals, which columns have missing values) was "
            "drafted from private rows: what it tells about them is not covered by epsilon."
        ],
        "cautions": [
            "A person with several records is protected less: for k records, epsilon is k times "
            "as large."
        ],
    }


def _headline(
    name: str,
    value: float | None,
    real: float | None,
    trivial: float | None,
    meaning: str,
    better: str = "higher",
) -> Content:
    ends = {"low": 0, "high": 1}
    return {"name": name, "value": value, "real": real, "trivial": trivial, "better": better} | {
        **ends,
        "meaning": meaning,
    }


def _summary() -> Content:
    return {
        "verdict": "Good for training models and for tables of one and two columns; relations of "
        "three columns are blurred. One of eight attacks found a leak.",
        "headlines": [
            _headline("Utility (AUROC)", 0.906, 0.932, 0.5, "How well a model trained on the rows "
                      "ranks real incomes."),
            _headline("Columns alike", 0.981, 0.994, 0.993, "Mean overlap of single columns."),
            _headline("Pairs apart", 0.049, 0.021, 0.118, "Mean distance of pairs of columns.",
                      "lower"),
            _headline("Membership attack", 0.503, 0.5, 0.5, "How well the best attack tells who "
                      "was in the data; 0.5 is guessing.", "lower"),
        ],
        "beware": [
            "capital-gain is far from real (0.812): do not use it alone.",
            "A classifier tells the rows from real ones (AUROC 0.87): analyses that look at fine "
            "structure may go wrong.",
            "Three-way tables are off by 0.098 on average.",
        ],
    }  # fmt: skip


def column(name: str, rng: np.random.Generator) -> Content:
    """One column of the kind that Adult has under that name."""
    loss = float(rng.gamma(2, 0.008))
    found: Content = {
        "name": name,
        "score": 1 - loss - 0.004,
        "real": 1 - float(rng.gamma(2, 0.002)),
        "outside": 0.0,
        "coverage": float(1 - rng.gamma(1, 0.02)),
        "mean": None,
        "deviation": None,
        "wasserstein": None,
        "missing": {"real": 0.0, "synthetic": 0.0},
    }
    if name in _NUMBERS:
        low, high, mean, deviation = _NUMBERS[name]
        found |= {"kind": "number", "metric": "KSComplement", "wasserstein": loss * 1.2}
        found["mean"] = {"real": mean, "synthetic": mean * (1 + loss)}
        found["deviation"] = {"real": deviation, "synthetic": deviation * (1 - loss)}
        found["histogram"] = _bins(low, high, mean, deviation, rng)
    else:
        values = [each.split(" ", 1) for each in _CATEGORIES[name].split(", ")]
        if name == "native-country":
            values += [[str(0.003 / i), f"Country {i}"] for i in range(1, 38)]
        shares = np.array([float(share) for share, _ in values])
        real = shares / shares.sum()
        moved = real * np.exp(rng.normal(0, 0.12, len(real)))
        found |= {"kind": "boolean" if len(real) == 2 else "category", "metric": "TVComplement"}
        if "(missing)" in _CATEGORIES[name]:
            found["missing"] = {"real": 0.057, "synthetic": 0.0541}
        found["histogram"] = {
            "labels": [value for _, value in values],
            "real": real.tolist(),
            "synthetic": (moved / moved.sum()).tolist(),
        }
    if name == "capital-gain":
        found |= {"score": 0.812, "wasserstein": 0.0831, "outside": 0.0004, "coverage": 0.713}
    return found


def _bins(
    low: float, high: float, mean: float, deviation: float, rng: np.random.Generator
) -> Content:
    edges = np.linspace(low, high, 25)
    middle = (edges[1:] + edges[:-1]) / 2
    real = np.exp(-0.5 * ((middle - mean) / deviation) ** 2) + 1e-4
    real *= 1 + 0.4 * np.sin(middle / deviation * 5)
    real /= real.sum()
    moved = real * np.exp(rng.normal(0, 0.1, len(real))) + 0.002
    return {
        "labels": [f"{a:,.0f} to {b:,.0f}" for a, b in itertools.pairwise(edges)],
        "real": real.tolist(),
        "synthetic": (moved / moved.sum()).tolist(),
    }


def joint(columns: int) -> Content:
    """Tables of two by two cells of up to 500 pairs: as many rows on the diagonal as are real, one
    in a hundred more for each column that stands before the second."""
    places = list(itertools.combinations(range(columns), 2))[:500]
    return {
        "labels": [["low", "high"]] * columns,
        "places": [list(pair) for pair in places],
        "real": [[5_000, 0, 0, 5_000]] * len(places),
        "synthetic": [[5_000 - 100 * j, 100 * j, 0, 5_000] for _, j in places],
    }


def fidelity(columns: list[Content], rng: np.random.Generator) -> Content:
    """The section for given columns."""
    n = len(columns)
    weak = rng.gamma(1.2, 0.02, n)
    noise = rng.gamma(2, 0.01, (n, n))
    distance = np.clip(weak[:, None] + weak[None, :] + (noise + noise.T) / 2, 0, 1)
    reference = np.clip(0.012 + (noise + noise.T) / 8, 0, 1)
    np.fill_diagonal(distance, [1 - each["score"] for each in columns])
    np.fill_diagonal(reference, [1 - each["real"] for each in columns])
    return {
        "columns": columns,
        "pairs": {
            "names": [each["name"] for each in columns],
            "distance": distance.round(6).tolist(),
            "correlation": 0.962,
            "contingency": 0.934,
            "reference": reference.round(6).tolist(),
            "joint": joint(n),
        },
        "marginals": [
            {"order": 1, "mean": 0.0164, "worst": 0.188, "worst_columns": ["capital-gain"]}
            | {"sets": 15, "real": 0.0059, "trivial": 0.0065},
            {"order": 2, "mean": 0.049, "worst": 0.231, "worst_columns": ["age", "capital-gain"]}
            | {"sets": 105, "real": 0.0214, "trivial": 0.118},
            {"order": 3, "mean": 0.098, "worst": 0.342, "sets": 455, "real": 0.0603}
            | {"worst_columns": ["age", "capital-gain", "occupation"], "trivial": 0.214},
        ],
        "coherence": {"synthetic": 0.441, "real": 0.011, "trivial": 0.933, "declared": 0.0}
        | {"pairs": 11, "tried": 105}
        | {
            "worst": [
                {"columns": ["education", "education-num"], "synthetic": 0.44, "real": 0.0}
                | {"settled": ["education-num", "education"], "cells": 272, "trivial": 0.808}
                | {"example": ["HS-grad", "10"], "share": 0.061},
                {"columns": ["relationship", "sex"], "synthetic": 0.0, "real": 0.0001}
                | {"settled": [], "cells": 2, "trivial": 0.165, "example": None, "share": 0.0},
            ]
        },
        "detection": [
            {"name": "logistic regression", "auroc": 0.561, "low": 0.553, "high": 0.569}
            | {"pmse": 0.0031, "pmse_ratio": 14.2, "real": 0.501},
            {"name": "gradient boosting", "auroc": 0.871, "low": 0.865, "high": 0.877}
            | {"pmse": 0.0893, "pmse_ratio": None, "real": 0.498},
        ],
        "quality": {"score": 0.957, "column_shapes": 0.981, "column_pair_trends": 0.933}
        | {"real": 0.987, "trivial": 0.929},
        "diagnostic": {"score": 1.0, "data_validity": 1.0, "data_structure": 1.0},
    }


_MODELS = {
    "logistic regression": (0.902, 0.908),
    "gradient boosting": (0.911, 0.929),
    "random forest": (0.898, 0.917),
    "extra trees": (0.889, 0.9),
    "AdaBoost": (0.903, 0.918),
    "decision tree": (0.862, 0.879),
    "k nearest neighbours": (0.841, 0.857),
    "naive Bayes": (0.873, 0.868),
    "linear discriminant": (0.888, 0.893),
    "support vectors": (0.893, 0.902),
    "student, small": (0.904, 0.912),
    "student, large": (0.905, 0.914),
}


def _scores(auroc: float, rng: np.random.Generator) -> Content:
    return {
        "accuracy": auroc - 0.06 + float(rng.normal(0, 0.004)),
        "balanced_accuracy": auroc - 0.15,
        "f1": auroc - 0.13,
        "auroc": auroc,
        "average_precision": auroc - 0.17,
    }


def _utility(rng: np.random.Generator) -> Content:
    metrics = ["accuracy", "balanced_accuracy", "f1", "auroc", "average_precision"]
    models = [
        {"name": name, "rows": {"synthetic": 39073, "real": 39073}, "seconds": 2.3}
        | {"synthetic": _scores(s, rng), "real": _scores(r, rng)}
        | {"augmented": _scores(r + 0.001, rng)}
        for name, (s, r) in _MODELS.items()
    ]
    models[9] |= {"augmented": None, "rows": {"synthetic": 5000, "real": 5000}}
    commonest = {"accuracy": 0.761, "balanced_accuracy": 0.5, "f1": 0.432, "auroc": 0.5}
    names = list(_MODELS)
    return {
        "task": "classification",
        "target": "income",
        "primary": "auroc",
        "metrics": metrics,
        "models": models,
        "baselines": [
            {"name": "commonest class", "scores": commonest | {"average_precision": 0.239}},
            {"name": "independent columns", "scores": _scores(0.503, rng) | {"f1": None}},
        ],
        "curves": {"synthetic": curve(0.902), "real": curve(0.908)},
        "agreement": {
            "classifiers": {"spearman": 0.937, "low": 0.78, "high": 0.98, "n": 12, "names": names}
            | {
                side: [_MODELS[n][i] for n in names] for i, side in enumerate(["synthetic", "real"])
            },
            "settings": {"spearman": 0.71, "low": 0.1, "high": 0.93, "n": 8}
            | {"names": [f"depth {i}" for i in range(2, 10)]}
            | {"synthetic": (0.86 + rng.random(8) / 20).tolist()}
            | {"real": (0.87 + np.arange(8) / 150).tolist()},
        },
    }


def curve(auroc: float, points: int = 60) -> Content:
    """A smooth ROC curve of about that area."""
    power = (1 - auroc) / auroc
    fpr = np.concatenate([[0], np.geomspace(1e-4, 1, points)])
    return {"fpr": fpr.tolist(), "tpr": (fpr**power).tolist()}


def _rate(fpr: float, value: float, low: float, high: float) -> Content:
    return {"fpr": fpr, "value": value, "low": low, "high": high}


def _privacy() -> Content:
    attack = {"members": 9769, "others": 9769, "caught": False}
    risk = {"caught": False, "attempts": 2000}
    return {
        "membership": [
            attack
            | {"name": "density ratio (DOMIAS)", "auroc": 0.503, "auroc_low": 0.495}
            | {"auroc_high": 0.511, "curve": curve(0.503)}
            | {"sentence": "Ranking records by density finds members no better than guessing"}
            | {"tpr": [_rate(0.001, 0.0012, 0.0006, 0.0021), _rate(0.01, 0.0107, 0.009, 0.013)]},
            attack
            | {"name": "nearest synthetic row", "auroc": 0.501, "auroc_low": 0.493}
            | {"auroc_high": 0.509, "curve": curve(0.501)}
            | {"sentence": "Records near a synthetic row are no likelier to be members."}
            | {"tpr": [_rate(0.001, 0.0009, 0.0004, 0.0017), _rate(0.01, 0.0101, 0.008, 0.012)]},
        ],
        "risks": [
            risk
            | {"name": "singling out, one column", "column": None, "risk": 0.0, "low": 0.0}
            | {"high": 0.004, "attack": 0.021, "control": 0.022, "baseline": 0.019}
            | {"sentence": "Predicates from the rows single out nobody beyond chance."},
            risk
            | {"name": "singling out, several columns", "column": None, "risk": 0.011, "low": 0.0}
            | {"high": 0.029, "attack": 0.142, "control": 0.133, "baseline": 0.09}
            | {"sentence": "Predicates of four columns find as many others as members."},
            risk
            | {"name": "linkability", "column": None, "risk": 0.002, "low": 0.0, "high": 0.007}
            | {"attack": 0.008, "control": 0.006, "baseline": 0.001}
            | {"sentence": "The rows help nobody to link two halves of a record."},
            risk
            | {"name": "inference", "column": "income", "risk": 0.098, "low": 0.071, "high": 0.125}
            | {"attack": 0.871, "control": 0.857, "baseline": 0.63, "caught": True}
            | {"sentence": "Income is guessed better for members than for others."},
        ],
        "attributes": [
            {"column": name, "caught": False, "synthetic": s, "others": o, "held_out": h}
            | {"commonest": c, "gain": s - o, "low": s - o - 0.013, "high": s - o + 0.013}
            | {"rows": 9769, "sentence": f"Whoever holds the rows guesses {name} of members no "
               "better than of others."}
            for name, s, o, h, c in [
                ("marital-status", 0.812, 0.814, 0.829, 0.458),
                ("income", 0.849, 0.847, 0.861, 0.761),
            ]
        ],
        "neighbours": {
            "copies": {"train": 0.0121, "real": 0.0031, "expected": 0.0134},
            "distance": {
                "synthetic_to_train": [0.02, 0.11, 0.32, 0.71, 1.81],
                "real_to_train": [0.0, 0.08, 0.26, 0.6, 1.74],
            },
            "ratio": {"synthetic": 0.781, "real": 0.744},
            "histogram": {
                "edges": np.linspace(0, 3, 21).tolist(),
                "synthetic": _decay(0.32),
                "real": _decay(0.38),
            },
            "note": "a diagnostic: small distances raise a question, large ones are no evidence "
            "of privacy",
        },
        "anonymity": {
            "quasi_identifiers": ["age", "sex", "race", "native-country"],
            "sensitive": ["income"],
            "tables": {
                "synthetic": _classes(0.0, 812),
                "real": _classes(None, 795),
            },
            "notes": ["age was cut into bands of five years"],
        },
        "skipped": ["Shadow models: meant for fewer than 5,000 rows"],
    }  # fmt: skip


def _classes(delta: float | None, classes: int) -> Content:
    """One table's figures of the k-anonymity family, beside another library's."""
    diversity = {"alpha": 1.0, "l": 1, "entropy_l": 1.0, "c": None, "t": 0.761, "beta": 3.18}
    diversity |= {"enhanced_beta": None, "delta": delta, "information": 0.041}
    return {"rows": 9769, "classes": classes, "k": 1, "identified": 1.0, "diversity": diversity} | {
        "library": {"k": 1, "l": 1, "t": 0.761, "entropy_l": 1, "enhanced_beta": 1.43}
    }


def _decay(rate: float) -> list[float]:
    shares = np.exp(-rate * np.arange(20))
    return [float(share) for share in shares / shares.sum()]


def _empty_column(name: str, kind: str) -> Content:
    both = {"real": None, "synthetic": None}
    return {"name": name, "kind": kind, "metric": "KSComplement", "score": None, "real": None} | {
        "wasserstein": None,
        "missing": both,
        "outside": None,
        "coverage": None,
        "mean": both,
        "deviation": None,
        "histogram": {"labels": [], "real": [], "synthetic": []},
    }


def _digits(seed: int, blur: float) -> str:
    """Ten rows of ten digits as an embedded picture."""
    rng, digits = np.random.default_rng(seed), _load_digits()
    rows = []
    for label in range(10):
        among = digits.images[digits.target == label]
        picked = among[rng.integers(0, len(among), 10)] * (1 - blur) + blur * among.mean(axis=0)
        rows.append(np.hstack([np.pad(each, 1) for each in picked]))
    return png(np.clip(np.vstack(rows) * 15.9, 0, 255).astype(np.uint8))


@functools.cache
def _load_digits() -> Any:
    from sklearn.datasets import load_digits

    return load_digits()


def png(pixels: NDArray[np.uint8]) -> str:
    """Grey pixels [height, width] as a data URL."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    encoded = base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode("ascii")
    return f"data:image/png;base64,{encoded}"


def without_figures(content: Content) -> Content:
    """The same content with null for every number of its sections, as a hard case."""

    def blank(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: blank(each) for key, each in value.items()}
        if isinstance(value, list):
            return [blank(each) for each in value]
        return None if isinstance(value, float) and not math.isnan(value) else value

    kept = ("format", "fedsynth", "seed", "title", "data")
    return {key: value if key in kept else blank(value) for key, value in content.items()}
