"""A forecast against golden values, and against the certificates and traffic of real small jobs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.errors import ConfigError
from fedsynth.privacy.integers import WIDER
from fedsynth.queries.persons import RowsAPerson
from fedsynth.schema import Categorical, Identifier, Schema
from tests.small_jobs import SCHEMA, table

ADULT = Path(__file__).parents[2] / "configs" / "schemas" / "adult.yaml"


@pytest.fixture(scope="module")
def adult():
    return fs.load_schema(ADULT)


@pytest.fixture(scope="module")
def aim(adult):
    return fs.plan(adult, fs.Budget(epsilon=1, delta=1e-5, curious=0), 10, records=50_000)


def test_a_schema_is_planned_by_the_method_that_auto_takes(aim):
    assert aim.method == "aim"
    assert aim.reason is not None and "15 columns" in aim.reason


@pytest.mark.parametrize(
    "constraint",
    [
        {"never": {"age": {"from": 0, "to": 9}, "income": "high"}},
        {"ordered": ["age", "weight"]},
        {"equal": ["age", "weight"]},
        {
            "determines": {
                "source": "group",
                "column": "income",
                "values": {"a": "low", "b": "high"},
            }
        },
    ],
)
@pytest.mark.parametrize("method", ["aim", "mst", "fedvae", "private-fusion"])
def test_a_schema_with_constraints_is_planned(method, constraint):
    more = [
        {**SCHEMA["columns"][0], "name": "weight"},
        {"kind": "categorical", "name": "group", "values": ["a", "b"]},
    ]
    columns = [*SCHEMA["columns"], *more]
    schema = Schema.from_dict({"columns": columns, "constraints": [constraint]})
    synth = fs.synthesizer(method, schema)
    found = fs.plan(synth, fs.Budget(epsilon=1, curious=0), 10, records=5_000)
    assert found.method == method and found.questions


def test_noise_and_epsilon_are_those_of_jobs_that_were_run(aim, adult):
    assert [question.noise_multiplier for question in aim.questions] == pytest.approx(
        [8.34361432364653, 5.899826267855671, 11.799652535711342], rel=1e-12
    )
    assert [question.count for question in aim.questions] == [1, 1, 4]
    assert aim.epsilon == pytest.approx(0.9997804563468697, rel=1e-4)
    assert aim.questions[0].noise == pytest.approx(WIDER * math.sqrt(25) * 8.343614, rel=1e-4)
    assert aim.questions[0].bytes_up == 8 * HistogramLayout.of(adult).dim


def test_errors_of_pairs_are_those_of_sums_of_independent_cells():
    """14 columns of 24 values and a target of two: 91 triples, of which a pair's cell sums two."""
    names = [Categorical(name=f"c{k}", values=range(24)) for k in range(14)]
    schema = Schema(columns=[*names, Categorical(name="y", values=[0, 1])], target="y")
    aim = fs.AIM(schema, marginals=28)  # seven in each of four messages
    found = fs.plan(aim, fs.Budget(epsilon=1, delta=1e-5, curious=0), 10)
    errors = {error.what: error.error for error in found.errors}
    magnitude = WIDER * math.sqrt(2 / math.pi)
    coarse = magnitude * 5.899826267855671 * math.sqrt(91 * 2)
    # Columns by themselves have .35 of the squared weights beside.
    again = magnitude * 11.799652535711342 * math.sqrt(7 * 2 / 0.65)
    assert coarse == pytest.approx(63.51, abs=0.02) and again == pytest.approx(43.69, abs=0.02)
    assert errors["pairs, asked coarsely"] == pytest.approx(coarse, rel=2e-5)
    assert errors["pairs, asked again"] == pytest.approx(again, rel=2e-5)
    both = (coarse**-2 + again**-2) ** -0.5
    assert errors["pairs, both together"] == pytest.approx(both, rel=2e-5)
    # Of 13 triples with a column and the target, whose cells sum 24; 28 of 91 are asked again.
    target = magnitude * 5.899826267855671 * math.sqrt(91 * 24 / 13)
    assert errors["pairs with the target, asked coarsely"] == pytest.approx(target, rel=2e-5)
    several = magnitude * 11.799652535711342 * math.sqrt(7 * 24 / (13 * 28 / 91) / 0.65)
    assert errors["pairs with the target, asked again"] == pytest.approx(several, rel=2e-5)


def test_what_a_job_costs_is_what_its_certificate_says(tmp_path):
    schema, budget = fs.Schema.from_dict(SCHEMA), fs.Budget(epsilon=1.5, delta=1e-4)
    forecast = fs.plan(fs.MST(schema), budget, 3)
    owners = [table(60, seed) for seed in range(3)]
    synth = fs.MST(schema).fit(owners, budget)
    certificate = synth.release(tmp_path / "r", rows=10)
    assert forecast.epsilon == certificate.epsilon
    told = [one["epsilon"] for one in certificate.content["adversaries"]]
    assert [one.epsilon for one in forecast.adversaries] == told


@pytest.mark.parametrize("method", [fs.PrivateFusion, fs.FedInfer])
def test_the_size_of_a_single_message_is_what_is_sent(method):
    schema, budget = fs.Schema.from_dict(SCHEMA), fs.Budget(epsilon=2.0, delta=1e-4)
    synth = method(schema)
    forecast = fs.plan(synth, budget, 3)
    assert forecast.bytes_up is not None
    synth.fit([table(60, seed) for seed in range(3)], budget)
    assert synth.traffic.up / 3 == forecast.bytes_up
    # But for a request's few settings.
    assert synth.traffic.down / 3 == pytest.approx(forecast.bytes_down, abs=100)
    assert synth.ledger.spent().epsilon == forecast.epsilon


def test_a_trainings_answers_are_as_large_as_its_networks():
    """Of categories the sizes are known: only rare ones are joined, and none is rare here."""
    columns = [Categorical(name=name, values=["x", "y"]) for name in "ab"]
    schema, budget = Schema(columns=columns, target="b"), fs.Budget(epsilon=50.0, delta=1e-3)
    rows = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "x", "y", "y"] * 100})
    synth = fs.FedVAE(schema, hidden=[64, 64], latent=2, rounds=2, rate=0.5)
    forecast = fs.plan(synth, budget, 3)
    synth.fit([rows] * 3, budget, insecure_noise_seed=1)
    assert synth.traffic.up / 3 == forecast.bytes_up
    # Decoder and encoder go down every round; beside them there are documents.
    assert synth.traffic.down / 3 == pytest.approx(forecast.bytes_down, rel=0.03)


def test_a_given_noise_says_that_epsilon_follows():
    schema = fs.Schema.from_dict(SCHEMA)
    noisy = fs.FedVAE(schema, rounds=2, rate=1.0, noise_multiplier=2.0)
    free = fs.plan(noisy, fs.Budget(epsilon=math.inf), 3)
    assert free.solved.startswith("epsilon, for the training's noise_multiplier of 2")
    held = fs.plan(noisy, fs.Budget(epsilon=9.0, delta=1e-5), 3)
    assert "was given, and costs" in held.solved and held.epsilon <= 9
    sought = fs.plan(fs.FedVAE(schema, rounds=2, rate=1.0), fs.Budget(epsilon=9.0), 3)
    assert sought.solved == "noise, for epsilon 9"


def test_a_guarantee_that_is_empty_is_told_with_the_nearest_that_is_not():
    schema = fs.Schema.from_dict(SCHEMA)
    loose = fs.Budget(epsilon=40.0, delta=0.05, curious=0)
    forecast = fs.plan(fs.MST(schema), loose, 2, records=40)
    told = " ".join(forecast.warnings)
    assert "at least 1/40" in told and "beyond 20" in told
    assert "one owner: epsilon" in told
    suggested = " ".join(forecast.suggestions)
    assert all(name in suggested for name in ("delta: 0.017", "epsilon: 10", "curious: 1"))
    sound = fs.plan(fs.MST(schema), fs.Budget(epsilon=1.0, delta=1e-5), 3, records=5000)
    assert not sound.warnings and not sound.suggestions


def test_one_owner_alone_and_a_signal_below_the_noise_are_told():
    schema = fs.Schema.from_dict(SCHEMA)
    forecast = fs.plan(fs.MST(schema), fs.Budget(epsilon=1.0, delta=1e-5), 1, records=40)
    assert any("there is one owner" in warning for warning in forecast.warnings)
    assert "epsilon: 2.5, or records: 100 and more" in " ".join(forecast.suggestions)


def test_few_clients_are_told_to_protect_records():
    schema = fs.Schema.from_dict(SCHEMA)
    forecast = fs.plan(fs.MST(schema), fs.Budget(epsilon=1.0, unit="client"), 10)
    assert any("among few" in warning for warning in forecast.warnings)
    assert any(one.startswith("unit: record") for one in forecast.suggestions)


def test_a_forecast_is_plain_json():
    schema = fs.Schema.from_dict(SCHEMA)
    central = fs.plan(fs.MST(schema), fs.Budget(epsilon=1.0, delta=1e-5, trust="central"), 3)
    content = json.loads(json.dumps(central.to_dict(), allow_nan=False))
    assert content["adversaries"][-1]["epsilon"] == "inf"
    assert [one["noise"] is None for one in content["questions"]] == [False, True, False]
    assert content["budget"]["delta"] == 1e-5 and content["clients"] == 3


def test_a_forecast_is_shown_like_a_plan():
    schema = fs.Schema.from_dict(SCHEMA)
    forecast = fs.plan(fs.MST(schema), fs.Budget(epsilon=1.0, delta=1e-5), 3, records=600)
    shown = repr(forecast)
    assert shown.startswith("Forecast of mst for 3 clients: epsilon 0.99978")
    assert "A client sends" in shown and "and receives" in shown
    assert "pairs, asked coarsely" in shown and "records in a cell" in shown
    assert "<table>" in forecast._repr_html_()
    alone = replace(forecast, plan=replace(forecast.plan, clients=1))
    assert repr(alone).startswith("Forecast of mst for 1 client: epsilon")


@pytest.mark.parametrize("what", [None, "aim", table()])
def test_what_is_no_synthesizer_and_no_schema_is_refused(what):
    with pytest.raises(ConfigError, match="plan needs a synthesizer"):
        fs.plan(what, 1.0, 3)


def test_what_aim_may_ask_of_persons_goes_by_their_number():
    columns = [*(Categorical(name=f"c{k}", values=range(9)) for k in range(4))]
    schema = Schema(columns=[Identifier(name="who"), *columns], person="who")
    told = {}
    for persons in (300, 30_000):
        budget = fs.Budget(epsilon=1, delta=1e-5, unit="person", units=persons)
        notes = fs.plan(fs.AIM(schema), budget, 5, records=40_000).notes
        told[persons] = next(note for note in notes if note.startswith("AIM asks by"))
    assert "Of 300 " in told[300] and "Of 30,000 " in told[30_000]


OF_PERSONS = Schema(columns=[Categorical(name="a", values=range(4)), Identifier(name="who")],
                    person="who")  # fmt: skip


def of_persons(budget: dict, **known) -> tuple[fs.Forecast, str]:
    allowed = fs.Budget(**{"epsilon": 1, "delta": 1e-5, "unit": "person", **budget})
    found = fs.plan(fs.MST(OF_PERSONS), allowed, 5, **known)
    return found, " ".join(found.notes)


def test_the_price_of_a_clip_is_named_before_it_is_spent():
    """Of 300, 200 and 100 persons of 1, 2 and 4 rows."""
    rows = {"rows_a_person": [300, 200, 0, 100]}
    known = RowsAPerson((300.0, 200.0, 0.0, 100.0, *[0.0] * 14), 0.0)
    given, told = of_persons({"weigh": "row", "person_clip": 2}, **rows)
    assert f"would be {2 * 600 / (300 + 2 * 300):.3g}." in told  # 1.33
    open_one, untold = of_persons({"weigh": "row"})
    assert "as large as keeps that at 1.2" in untold and "All figures here are for C = 1" in untold
    chosen, told = of_persons({"weigh": "row"}, **rows)
    clip = known.choose_clip()
    assert f"C would be {clip:g}" in told and f"would be {known.price(clip):.3g}." in told
    # Figures are for that; the plan, and what it costs, are as they were.
    assert chosen.plan == open_one.plan and chosen.epsilon == open_one.epsilon
    assert chosen.questions[1].noise == pytest.approx(clip * open_one.questions[1].noise)
    assert chosen.questions[0].noise == open_one.questions[0].noise
    assert chosen.questions[0].bytes_up == 8 * 18
    assert given.questions[1].noise == pytest.approx(2 * open_one.questions[1].noise)


def test_rows_a_person_are_guessed_from_persons_and_records():
    _, told = of_persons({"weigh": "row", "units": 1000}, records=3000)
    assert "Of persons of 3" in told or "Of persons of 2.9" in told
    _, alone = of_persons({"weigh": "row", "units": 1000}, records=1000)
    assert "C would be 1:" in alone and "that would be 1." in alone


@pytest.mark.parametrize(
    ("rows", "said"),
    [([], "numbers of persons"), ([-1], "numbers of"), ([0, 0], "numbers of"), ("x", "numbers of"),
     ([1] * 19, "at most 18"), (3, "numbers of")],
)  # fmt: skip
def test_persons_that_are_none_are_refused(rows, said):
    with pytest.raises(ConfigError, match=said):
        of_persons({}, rows_a_person=rows)
    with pytest.raises(ConfigError, match="for unit: person"):
        fs.plan(fs.MST(OF_PERSONS), 1.0, 5, rows_a_person=[3])
