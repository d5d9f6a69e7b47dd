"""How many rows make sense: AIM, AIM without the zeros that released counts show, FedVAE, it
without tables of pairs, and it where the schema declares that education settles education-num.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/coherence.py [--seeds 1 2]

Adult, 10 silos (Dirichlet 0.5 over the label), nobody trusted, epsilon 1, delta 1e-5.
"""

from __future__ import annotations

import argparse
import json
import time

from adult import DATA, HOME

from fedsynth.data.tables import read_table
from fedsynth.evaluation.measures import marginals
from fedsynth.evaluation.measures.coherence import coherence
from fedsynth.evaluation.measures.utility import utility
from fedsynth.evaluation.reading.codes import encode_tables
from fedsynth.evaluation.reading.rows import read_real_rows, read_rows
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.marginal import aim, graphical
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

METHODS = ("aim", "aim without zeros", "fedvae", "fedvae without pairs", "fedvae declared")
_LEVELS = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc "
    "Assoc-acdm Bachelors Masters Prof-school Doctorate"
)
EDUCATION = {
    "determines": {
        "source": "education",
        "column": "education-num",
        "values": {level: number for number, level in enumerate(_LEVELS.split(), 1)},
    }
}
"""The census bureau's numbers of levels of education."""


def run(seed, method, scored):
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    if method == "fedvae declared":
        schema = schema.with_constraint(EDUCATION)
    table = read_table(DATA / "adult/adult.csv.gz", schema).sample(
        frac=1, random_state=seed, ignore_index=True
    )
    test, train = table[: len(table) // 5], table[len(table) // 5 :]
    kept = aim.keep_sense, graphical.find_outside
    if method == "aim without zeros":
        aim.keep_sense, graphical.find_outside = lambda model, _: model, lambda *_: []
    synth = aim.AIM(schema)
    if method.startswith("fedvae"):
        synth = FedVAE(schema, **({"pair_share": 0.0} if method.endswith("pairs") else {}))
    sites = partition(train, 10, "dirichlet", schema=schema, beta=0.5, seed=seed)
    began = time.process_time()
    synth.fit(sites, Budget(epsilon=1.0, delta=1e-5), seed=seed, progress=False)
    spent = time.process_time() - began
    rows = read_rows(synth.sample(len(train), seed=seed), schema, "rows")
    aim.keep_sense, graphical.find_outside = kept
    learned, real = (read_real_rows(part, schema, "real") for part in (train, test))
    found = coherence(rows, learned, real)
    codes = encode_tables([learned, rows])
    auroc = {}
    if scored:
        useful = utility(rows, learned, real, models=["gradient boosting"], seed=0).models[0]
        auroc = {"auroc": useful.synthetic["auroc"], "auroc_real": useful.real["auroc"]}
    return {
        "method": method,
        "seed": seed,
        "broken": found.synthetic,
        "real": found.real,
        "trivial": found.trivial,
        **auroc,
        **{
            f"tv{order}": marginals.marginal_errors(codes, learned.names, order)[0].mean
            for order in (1, 2)
        },
        "cpu": spent,
        "worst": [[*one.columns, one.synthetic, one.real] for one in found.worst[:4]],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--unscored", action="store_true", help="no classifier on the rows")
    options = parser.parse_args()
    for seed in options.seeds:
        for method in options.methods:
            line = json.dumps(run(seed, method, not options.unscored))
            with (HOME / "evaluation/results/coherence.jsonl").open("a") as file:
                file.write(line + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
