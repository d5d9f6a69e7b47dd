"""What of owners' tables the schema does not allow: told, limited, and never another value."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from fedsynth.errors import ConfigError, DataError, PrivacyWarning
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.methods.marginal.mst import MST
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.schema import Categorical, Integer, Schema

CODES = tuple(f"A{code:02d}" for code in range(5))


def schema_of(**icd: object) -> Schema:
    icd_column = Categorical(name="icd", values=CODES, **icd)
    return Schema(columns=[icd_column, Integer(name="age", lower=0, upper=99)])


def patients(rows: int, strange: int, code: str = "X") -> pd.DataFrame:
    """So many rows, of which the first `strange` have a code that no schema here lists."""
    codes = [f"{code}{row}" for row in range(strange)]
    codes += [CODES[1 + row % 4] for row in range(rows - strange)]
    return pd.DataFrame({"icd": codes, "age": 40})


def fit(schema, owners, epsilon=math.inf, **options):
    """What an exact fit of them tells its owners, and rows of it."""
    told = []
    budget = Budget(epsilon=epsilon, trust="central")
    synth = MST(schema).fit(owners, budget, caution=told.append, **options)
    # A budget of these tests promises little, which is said too.
    return [one for one in told if one.startswith("outside")], synth.sample(2000, seed=0)


@pytest.mark.parametrize(("icd", "rest"), [({}, set()), ({"other": "other"}, {"other"})])
def test_an_undeclared_code_becomes_no_code_of_the_schema(icd, rest):
    owners = {"north": patients(100, 0), "south": patients(100, 95)}
    _, rows = fit(schema_of(**icd), owners, outside="allow")
    shares = rows["icd"].value_counts(normalize=True)
    assert "A00" not in shares or shares["A00"] < 0.02
    if rest:
        assert shares["other"] == pytest.approx(95 / 200, abs=0.05)


def test_owners_are_told_their_shares_outside_and_the_rows_left_out():
    south = patients(100, 3)
    south.loc[50:53, "age"] = 700
    told, rows = fit(schema_of(), {"north": patients(50, 0), "south": south})
    assert len(told) == 1 and told[0].endswith(
        "of south: age 4%, icd 3% (3 rows are left out for it)"
    )
    assert not rows["icd"].isin(["A00"]).mean() > 0.02
    few = patients(1000, 1)
    assert "icd below 1%" in fit(schema_of(missing=True), few)[0][0]
    assert fit(schema_of(), patients(50, 0))[0] == []


def test_an_owner_beyond_the_public_limit_is_refused_before_anything_is_asked(tmp_path):
    owners = {"north": patients(100, 5), "south": patients(100, 6)}
    told: list[str] = []
    with pytest.raises(DataError, match=r"5%.* south: icd\. .*Nothing was asked") as refused:
        MST(schema_of()).fit(owners, 1.0, folder=tmp_path / "job", caution=told.append)
    assert "north" not in str(refused.value) and told == []
    assert "6%" not in str(refused.value)
    assert not (tmp_path / "job").exists()
    told, _ = fit(schema_of(), owners, outside=0.06)
    assert "north: icd 5%" in told[0] and "south: icd 6%" in told[0]


def test_a_warning_which_logs_may_keep_tells_no_figure_of_private_rows():
    owners = {"north": patients(50, 0), "south": patients(100, 3)}
    with pytest.warns(PrivacyWarning) as warned:
        MST(schema_of()).fit(owners, Budget(epsilon=math.inf, trust="central"))
    told = [str(one.message) for one in warned if "outside" in str(one.message)]
    assert told == [
        "outside the schema are cells of south: icd (rows are left out for it). "
        "`fedsynth schema check` counts them"
    ]


def test_a_clamped_number_is_outside_too():
    table = patients(20, 0).assign(age=[300] * 3 + [40] * 17)
    with pytest.raises(DataError, match=r"client-0: age\. "):
        fit(schema_of(), table)


def test_many_owners_are_told_of_in_a_line():
    told, _ = fit(schema_of(), [patients(20, 1) for _ in range(14)])
    assert len(told) == 1 and told[0].endswith("and 4 owners more")


def test_an_owner_all_of_whose_rows_are_left_out_answers_like_one_without_rows():
    owners = {"north": patients(40, 0), "south": patients(30, 30)}
    _, rows = fit(schema_of(), owners, outside="allow")
    pd.testing.assert_frame_equal(rows, fit(schema_of(), [owners["north"], owners["south"][:0]])[1])


def test_an_owner_has_the_records_that_are_not_left_out():
    told: list[str] = []
    budget = Budget(epsilon=math.inf, trust="central")
    owners = Simulation({"south": patients(30, 12)}, schema_of())
    runtime = owners.open(NoiseSource(1), {}, None, budget, 18, caution=told.append)
    assert runtime._clients["south"].records == 18
    with pytest.raises(DataError, match="more than 17 records"):
        owners.open(NoiseSource(1), {}, None, budget, 17, caution=told.append)


@pytest.mark.parametrize("outside", ["never", -0.1, 1.5, True, None, math.nan])
def test_a_limit_is_a_share_or_allow(outside):
    with pytest.raises(ConfigError, match="outside"):
        MST(schema_of()).fit(patients(9, 0), 1.0, outside=outside)
