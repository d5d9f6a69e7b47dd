"""Real data that an install brings along, cleaned, each with its schema."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Literal, overload

import numpy as np
import pandas as pd

from fedsynth.agreed import shown, suggestion
from fedsynth.data.images import Images
from fedsynth.errors import DataError
from fedsynth.schema import ImageSchema, Schema, load_schema


@overload
def load_builtin(name: Literal["health", "randhie"]) -> pd.DataFrame: ...
@overload
def load_builtin(name: Literal["digits"]) -> Images: ...
@overload
def load_builtin(name: str) -> pd.DataFrame | Images: ...
def load_builtin(name: str) -> pd.DataFrame | Images:
    """Load a data set by name, without the network.

    "health": persons of the RAND Health Insurance Experiment, a row each, and the site of six that
    enrolled each, 5,912 x 11. "randhie": the same persons' years, one to five rows each, as
    statsmodels, which must be installed, ships them (Cameron and Trivedi 2005), 20,190 x 9.
    "digits": scikit-learn's handwritten digits, 1,797 images of 8 x 8, 0 to 16.

    Raises:
        DataError: if there is none of that name, or its package is not installed.
    """
    _demand_name(name)
    return _LOADERS[name]()


def builtin_schema(name: str) -> Schema | ImageSchema:
    """The schema of a data set that `load_builtin` knows.

    Raises:
        DataError: if there is none of that name.
    """
    _demand_name(name)
    with resources.as_file(resources.files("fedsynth") / "schemas" / f"{name}.yaml") as path:
        return load_schema(path)


def _demand_name(name: str) -> None:
    if not isinstance(name, str) or name not in _LOADERS:
        hint = suggestion(name if isinstance(name, str) else "", _LOADERS)
        raise DataError(f"no built-in data set is called {shown(name)}{hint}")


def _load_health() -> pd.DataFrame:
    with resources.as_file(resources.files("fedsynth") / "tables" / "health.csv.gz") as path:
        return pd.read_csv(path)


def _load_randhie() -> pd.DataFrame:
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise DataError(
            "the data set 'randhie' comes with statsmodels: pip install 'fedsynth[randhie]'"
        ) from None
    raw = randhie.load_pandas().data
    # Whose a row is stands in the file that the published one was made from, row by row.
    source = resources.files(randhie) / "src" / "randhie.csv"
    with source.open("rb") as file:
        person = pd.read_csv(file, usecols=["zper"])["zper"]
    # Three dummies for one answer; excellent health is the one without a dummy.
    health = np.select([raw.hlthg == 1, raw.hlthf == 1, raw.hlthp == 1], [1, 2, 3], default=0)
    return pd.DataFrame(
        {
            "person": person,
            "visits": raw.mdvis,
            "log_coinsurance": raw.lncoins,
            "individual_deductible": np.where(raw.idp == 1, "yes", "no"),
            "log_incentive": raw.lpi,
            "log_spending_cap": raw.fmde,
            "physical_limitation": raw.physlm,
            "chronic_diseases": raw.disea,
            "health": np.array(["excellent", "good", "fair", "poor"], dtype=object)[health],
        }
    )


def _load_digits() -> Images:
    from sklearn.datasets import load_digits

    raw = load_digits()
    return Images(raw.images.astype(np.uint8), raw.target.astype(np.int64))


_LOADERS: dict[str, Callable[[], pd.DataFrame | Images]] = {
    "digits": _load_digits,
    "health": _load_health,
    "randhie": _load_randhie,
}
