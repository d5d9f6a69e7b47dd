"""GANs across clients: beside FedVAE on MNIST (paper 001, section 4.5.5), and on Adult.

    export FEDSYNTH_DATA=../shared/data
    python evaluation/studies/gans.py --table mnist --method fedgan --cut writers --sigma 0.005
    python evaluation/studies/gans.py --table adult --method fedctgan --epsilon 1
    python evaluation/studies/gans.py --table radar

`mnist`: whole clients protected, trusted server; both methods at one standard deviation sigma of
the noise in the mean update, z = sigma qN / S. `--cut uniform`: as many clients as the paper has
(FedVAE 20, 10 a round, S = 0.5; the GAN 8, 4 a round, S = 1), or `kmeans`, `geometric`, its
other cuts; `--cut writers`: MNIST's 539 writers,
20 a round; `--cut pairs`, `--cut resampled`: the 30,000 clients, 100 a round, that paper 001 could
only reckon, with two images each, or each with 20 of its own, drawn from all (so that an image is
at ten clients, and no person's protection is meant). A client draws its part by coin flips.
Accuracy of the paper's student network, trained on 20,000 synthetic images, on the real test
images. `epsilon`: what the run cost. `scaled`: what
its rounds would cost among 30,000 clients at the same sigma with z = 1 and qN / z of them a round
(paper 001, section 4.5.1; delta = N^-1.1), with a label histogram of multiplier 20 inside;
`scaled_paper`: likewise the paper's number of rounds. They hold only while each client has as
much data as here.

`adult`: 10 silos, records protected, nobody trusted, delta 1e-5; split, score and rows of
`adult.py`, with marginals of three columns.

`radar`: figure 4.5.11 from the last rows of `mnist` with --cut and --sigma, to
results/gans_radar.svg: `scaled`, accuracy, parameters and processor seconds of the training.

`--set key=value` changes a setting of the method. A run adds a line to results/gans_TABLE.jsonl.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import yaml
from adult import DATA, HOME, ROWS

from fedsynth.data.images import Images
from fedsynth.data.tables import read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.evaluation.models import students
from fedsynth.evaluation.report.charts import radar as charts
from fedsynth.evaluation.report.charts.radar import Axis
from fedsynth.evaluation.report.wording import count, score
from fedsynth.federation.simulation.partitions import partition
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.registry import METHODS, synthesizer
from fedsynth.schema import ImageSchema, Schema

PLANNED = 30_000
HISTOGRAM_NOISE = 20.0
# Clip, clients and clients a round (uniform), rounds: tables 4.5.1 and 4.5.9, corrected to the
# epsilons that the paper prints.
PAPER = {"fedvae": (0.5, 20, 10, 1500), "fedgan": (1.0, 8, 4, 1400)}
CUTS = ("uniform", "dirichlet", "kmeans", "geometric", "writers", "pairs", "resampled")
A_ROUND = {"writers": 20, "pairs": 100, "resampled": 100}


def settled(method, given, **fixed):
    return METHODS[method].settings_type(**{**fixed, **given})


def progress(label, done, total, epsilon):
    if done % 25 == 0 or done == total:
        print(f"  {label} {done}/{total} {time.process_time():.0f} s", flush=True)


def digits(cut, clients, seed):
    """Schema, training images by owner and test images."""
    schema = ImageSchema.load(HOME / "configs/schemas/mnist.yaml")
    found = np.load(DATA / "mnist/mnist.npz")
    train, test = (
        Images(found[f"x_{part}"], found[f"y_{part}"].astype(np.int64))
        for part in ("train", "test")
    )
    if cut == "writers":
        column = np.load(DATA / "mnist/mnist_writers.npz")["writer_train"]
        return schema, partition(train, None, "column", schema=schema, column=column), test
    if cut == "resampled":
        chosen = np.random.default_rng(seed).integers(len(train), size=(PLANNED, 20))
        return schema, {f"client-{k:05}": train.take(own) for k, own in enumerate(chosen)}, test
    if cut == "pairs":
        clients, cut = PLANNED, "uniform"
    return schema, partition(train, clients, cut, schema=schema, seed=seed), test


def scaled(per_round, multiplier, rounds):
    """Epsilon of a training among PLANNED clients whose mean update has the same noise."""
    if not multiplier:
        return math.inf

    def terms(noise, sampling):
        return Terms(
            unit="client", trust="central", clip=1.0, noise_multiplier=noise, sampling=sampling
        )

    rate = per_round / (multiplier * PLANNED)
    training, labels = terms(1.0, Poisson(rate)), terms(HISTOGRAM_NOISE, Everyone())
    return spent({training: rounds, labels: 1}, PLANNED**-1.1).epsilon


def parameters(synth):
    """Weights of one encoder and decoder, or of one generator and discriminator."""
    learned = synth.learned
    if hasattr(learned, "game"):
        return learned.game.generator.dim + learned.game.discriminator.dim
    return learned.model.spec.encoder_dim + learned.model.spec.decoder_dim


def finite(value):
    return round(value, 4) if math.isfinite(value) else "inf"


def mnist(options):
    clip, clients, per_round, paper_rounds = PAPER[options.method]
    schema, sites, test = digits(options.cut, clients, options.seed)
    per_round = A_ROUND.get(options.cut, per_round)
    multiplier = options.sigma * per_round / clip
    rounds = options.rounds or paper_rounds
    settings = settled(
        options.method,
        options.set,
        rounds=rounds,
        rate=per_round / len(sites),
        clip=clip,
        noise_multiplier=multiplier,
    )
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=len(sites))
    synth = synthesizer(options.method, schema, settings)
    start, cpu = time.perf_counter(), time.process_time()
    synth.fit(sites, budget, seed=options.seed, progress=progress)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    rows = synth.sample(20_000, seed=options.seed)
    scores = students.train_on_synthetic(rows, test, schema, seed=options.seed)
    return {
        "method": options.method,
        "cut": options.cut,
        "sigma": options.sigma,
        "seed": options.seed,
        "settings": options.set,
        "noise_multiplier": multiplier,
        "clients": len(sites),
        "per_round": per_round,
        "rounds": rounds,
        "accuracy": round(scores.accuracy, 4),
        "epsilon": finite(synth.ledger.spent().epsilon),
        "delta": budget.resolved_delta,
        "scaled": finite(scaled(per_round, multiplier, rounds)),
        "scaled_paper": finite(scaled(per_round, multiplier, paper_rounds)),
        "parameters": parameters(synth),
        "remarks": list(synth.remarks),
        "seconds": round(seconds),
        "cpu_seconds": round(cpu),
    }


def adult(options):
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    table = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(options.seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train = table.iloc[order[:cut]].reset_index(drop=True)
    test = table.iloc[order[cut:]].reset_index(drop=True)
    beta = {"beta": 0.5} if options.cut == "dirichlet" else {}
    sites = partition(train, 10, options.cut, schema=schema, seed=options.seed, **beta)
    synth = synthesizer(options.method, schema, settled(options.method, options.set))
    budget = Budget(epsilon=options.epsilon, delta=1e-5, trust="distributed")
    start, cpu = time.perf_counter(), time.process_time()
    synth.fit(sites, budget, seed=options.seed, progress=progress)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    rows = synth.sample(ROWS, seed=options.seed)
    scores = utility.compare(train, test, rows, schema, seed=0)
    errors = [marginals.marginal_error(train, rows, schema, order).mean for order in (1, 2, 3)]
    return {
        "method": options.method,
        "cut": options.cut,
        "seed": options.seed,
        "settings": options.set,
        "epsilon": finite(synth.ledger.spent().epsilon),
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "f1": round(scores.synthetic.f1_positive, 4),
        "accuracy": round(scores.synthetic.accuracy, 4),
        **{f"tv{order}": round(error, 4) for order, error in enumerate(errors, start=1)},
        "calls_a_client": round(synth.traffic.calls_per_client, 1),
        "mb_a_client": round(synth.traffic.bytes_per_client / 1e6, 2),
        "remarks": list(synth.remarks),
        "fit_seconds": round(seconds, 1),
        "fit_cpu_seconds": round(cpu, 1),
    }


def reach(values):
    """A round end of an axis from 0 that holds the values with room."""
    largest = 1.1 * max(value for value in values if math.isfinite(value))
    power = 10.0 ** math.floor(math.log10(largest))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= largest)


def radar(options):
    path = HOME / "evaluation/results/gans_mnist.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = {"cut": options.cut, "sigma": options.sigma}
    rows = {r["method"]: r for r in rows if all(r[key] == v for key, v in wanted.items())}
    fields = ("scaled", "accuracy", "parameters", "cpu_seconds")
    gan, vae = ([float(rows[method][f]) for f in fields] for method in ("fedgan", "fedvae"))
    ends = [reach(pair) for pair in zip(gan, vae, strict=True)]
    axes = [
        Axis(f"epsilon at N = {PLANNED:,}", ends[0], 0.0),
        Axis("student accuracy", 0.1, 1.0, score),
        Axis("parameters", ends[2], 0.0, count, count),
        Axis("training, CPU s", ends[3], 0.0, count, count),
    ]
    cut = {"uniform": "cut uniformly", "writers": "by its writers"}[options.cut]
    what = f"MNIST {cut}, noise {options.sigma:g} in the mean update"
    gan_name = f"federated GAN, {rows['fedgan']['rounds']:,} rounds"
    vae_name = f"FedVAE, {rows['fedvae']['rounds']:,} rounds"
    chart = charts.radar(
        axes,
        [charts.Method(gan_name, gan), charts.Method(vae_name, vae)],
        f"Federated GAN and FedVAE on {what}: epsilon, accuracy, parameters and training time",
        f"{what}; outwards is better",
    )
    out = options.out or HOME / "evaluation/results/gans_radar.svg"
    out.write_text(charts.picture(chart))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=("mnist", "adult", "radar"), required=True)
    parser.add_argument("--method", choices=METHODS, default="fedgan")
    parser.add_argument("--cut", choices=CUTS, default="uniform")
    parser.add_argument("--sigma", type=float, default=0.0, help="mnist")
    parser.add_argument("--epsilon", type=float, default=1.0, help="adult")
    parser.add_argument("--rounds", type=int, help="mnist; the paper's by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    pairs = (pair.partition("=") for pair in options.set)
    options.set = {key: yaml.safe_load(value) for key, _, value in pairs}
    if options.table == "radar":
        radar(options)
        return
    out = options.out or HOME / f"evaluation/results/gans_{options.table}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    found = {"mnist": mnist, "adult": adult}[options.table](options)
    print(json.dumps(found), flush=True)
    with out.open("a") as file:
        file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
