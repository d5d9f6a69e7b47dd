"""Anonymeter 1.1.0 on three tables: prints the risks of its attacks as JSON.

    python3.11 -m venv ANONYMETER && ANONYMETER/bin/pip install anonymeter==1.1.0
    ANONYMETER/bin/python -P evaluation/studies/peers_anonymeter.py train.csv real.csv made.csv \\
        settings.json

Runs in that environment and imports nothing of fedsynth; `anonymeter.py` calls it. The settings
hold the attacks' number and seed, how many columns a description has, the halves, and the secrets.
Nothing is patched.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator


def figures(evaluator, start):
    told, risk = evaluator.results(), evaluator.risk()
    return {
        "risk": round(float(risk.value), 4),
        "low": round(float(risk.ci[0]), 4),
        "high": round(float(risk.ci[1]), 4),
        "attack": round(float(told.attack_rate.value), 4),
        "control": round(float(told.control_rate.value), 4),
        "baseline": round(float(told.baseline_rate.value), 4),
        "cpu_seconds": round(time.process_time() - start, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("train", "real", "synthetic", "settings"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    train, real, synthetic = (
        pd.read_csv(path, keep_default_na=False, na_values=["?"])
        for path in (options.train, options.real, options.synthetic)
    )
    settings = json.loads(options.settings.read_text())
    attacks, seed = settings["attacks"], settings["seed"]
    # Linkability and inference draw their targets from the global generator.
    np.random.seed(seed)  # noqa: NPY002
    warnings.simplefilter("ignore")
    found = {}
    for mode, name in (("univariate", "one column"), ("multivariate", "several columns")):
        start = time.process_time()
        evaluator = SinglingOutEvaluator(
            ori=train,
            syn=synthetic,
            control=real,
            n_attacks=attacks,
            n_cols=settings["columns"],
            seed=seed,
        )
        try:
            evaluator.evaluate(mode=mode)
            found[f"singling out, {name}"] = figures(evaluator, start)
        except RuntimeError as error:
            found[f"singling out, {name}"] = {"failed": str(error).splitlines()[0]}
    start = time.process_time()
    evaluator = LinkabilityEvaluator(
        ori=train, syn=synthetic, control=real, n_attacks=attacks, aux_cols=settings["halves"]
    )
    found["linkability"] = figures(evaluator.evaluate(n_jobs=1), start)
    for secret in settings["secrets"]:
        start = time.process_time()
        evaluator = InferenceEvaluator(
            ori=train,
            syn=synthetic,
            control=real,
            n_attacks=attacks,
            secret=secret,
            aux_cols=[column for column in train if column != secret],
        )
        found[f"inference of {secret}"] = figures(evaluator.evaluate(n_jobs=1), start)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
