"""Who chooses the marginals when nobody is trusted: all, by coarse sums, or one client a round?

    FEDSYNTH_DATA=../shared/data python evaluation/studies/client_selection.py [--seeds 4 5 6]

Maddock, Cormode, Maple 2024, "FLAIM: AIM-based synthetic data generation in the federated setting",
let clients choose: in every round one of them, on its own rows, by the exponential mechanism
(NaiveFLAIM), and the marginal is then measured over all. That needs no trust, but a client's rows
are unlike everyone's where the owners differ. DistAIM chooses among everyone's exact scores inside
secure computation, which is what our central selection gives, with the cost of that computation.
Here, on Adult, 10 silos, epsilon 1, delta 1e-5, the same budgets and number of marginals: `sums`
(ours), `client` (one client a round) and `central`, for owners alike and unlike (Dirichlet beta).
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from adult import DATA, HOME, ROWS

from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.federation.simulation.partitions import partition
from fedsynth.marginals import count
from fedsynth.methods.marginal import measurer
from fedsynth.methods.marginal.aim import AIM
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

# The rows of every client of the run, which a study may look at and a method may not.
OWNERS = []


def chosen_by_a_client(self, label, cliques, estimate, weights, penalties):
    """Stands for Measurer.choose: the exponential mechanism on one client's own rows."""
    channel, terms = self.session.channel, self.terms(label)
    # Charged as the release that it would be: the client's records and nobody else's are in it.
    channel.select(
        measurer.MARGINALS.name,
        terms,
        estimate,
        starts=np.cumsum([0, *[self.domain.cells(c) for c in cliques][:-1]]),
        weights=weights,
        penalties=penalties,
        arrays=measurer.table_arrays(cliques, np.ones(len(cliques))),
    )
    # Who chooses is this client, on its own rows, which the server's half never sees.
    rows = OWNERS[len(self.measurements) % len(OWNERS)]
    codes = self.encoding.encode(rows)
    growth = self.encoding.records / max(1, len(codes))
    own = np.concatenate([count(self.domain, codes, c).ravel() * growth for c in cliques])
    starts = np.cumsum([0, *[self.domain.cells(c) for c in cliques][:-1]])
    distances = np.add.reduceat(np.abs(own - estimate), starts)
    scores = weights * (distances - penalties)
    return int(np.argmax(scores + terms.scale * growth * self.rng.gumbel(size=len(scores))))


def run(seed, beta, way):
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    table = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train = table.iloc[order[:cut]].reset_index(drop=True)
    test = table.iloc[order[cut:]].reset_index(drop=True)
    options = {"beta": beta, "minimum": 50}
    owners = partition(train, 10, "dirichlet", schema=schema, seed=seed, **options)
    OWNERS[:] = [conform(rows, schema, where=name) for name, rows in owners.items()]
    budget = Budget(epsilon=1.0, delta=1e-5, trust="distributed" if way == "sums" else "central")
    original = measurer.Measurer.choose
    if way == "client":
        measurer.Measurer.choose = chosen_by_a_client
    try:
        synth = AIM(schema).fit(owners, budget, seed=seed)
    finally:
        measurer.Measurer.choose = original
    rows = synth.sample(ROWS, seed=seed)
    scores = utility.train_on_synthetic(rows, test, schema, seed=0)
    errors = [marginals.marginal_error(train, rows, schema, order).mean for order in (2, 3)]
    return scores.auroc, *errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[4, 5, 6])
    options = parser.parse_args()
    out = HOME / "evaluation/results/client_selection.jsonl"
    out.unlink(missing_ok=True)
    for beta in (100.0, 0.5, 0.1):
        for way in ("sums", "client", "central"):
            found = np.array([run(seed, beta, way) for seed in options.seeds])
            mean, spread = found.mean(axis=0).round(4), found.std(axis=0, ddof=1).round(4)
            line = {"beta": beta, "choice": way, "seeds": len(found)}
            for name, m, s in zip(("auroc", "tv2", "tv3"), mean, spread, strict=True):
                line[name] = f"{m} +- {s}"
            print(json.dumps(line), flush=True)
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
