"""Which aggregation function a training has, by its settings."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.methods.training.aggregation.aggregation import Aggregation
from fedsynth.methods.training.aggregation.fedadagrad import FedAdagrad
from fedsynth.methods.training.aggregation.fedadam import FedAdam
from fedsynth.methods.training.aggregation.fedavg import FedAvg
from fedsynth.methods.training.aggregation.fedavgm import FedAvgM
from fedsynth.methods.training.aggregation.fednag import FedNAG
from fedsynth.methods.training.aggregation.fednova import FedNova
from fedsynth.methods.training.aggregation.fedyogi import FedYogi
from fedsynth.methods.training.aggregation.scaffold import Scaffold1, Scaffold2

_FUNCTIONS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi, FedNova, FedNAG, Scaffold1, Scaffold2,
    )
}  # fmt: skip
LOCAL = (FedNova.name, FedNAG.name, Scaffold1.name, Scaffold2.name)
"""Those that change clients' own steps."""
_OF_SINGLES = {
    "fedmedian": "the median of the clients' weights",
    "fedavgopt": "factors fitted to each client's weights",
}
"""What needs each client's message by itself."""

_Positive = Annotated[float | None, Field(gt=0, description="a positive number")]
_Share = Annotated[float | None, Field(ge=0, lt=1, description="a number from 0 to below 1")]


class AggregationSettings(MethodSettings):
    """How clients' trainings of a round become one step of the server's weights.

    Attributes:
        aggregation: client level: fedavg (the mean, clients weighted alike), fedavgm, fedadagrad,
            fedadam or fedyogi; of the federated classifier also fednova, fednag, scaffold-1 or
            scaffold-2, which change clients' own steps. fedmedian and fedavgopt need single
            clients' weights, and are refused.
        server_learning_rate: of fedavgm, fedadagrad, fedadam and fedyogi; of fednova the number of
            steps that a round stands for, which must be given.
        server_momentum: of the same: decay of the mean over rounds; of fednag that of clients.
        server_decay: of the second moments of fedadam and fedyogi.
        server_floor: of fedadagrad, fedadam and fedyogi: added to the root of the second moments.
        proximal: client level: half of it times the squared distance to the round's weights is
            added to a client's mean loss (FedProx); 0 for none. With any aggregation.
    """

    aggregation: Annotated[
        Literal[
            "fedavg",
            "fedavgm",
            "fedadagrad",
            "fedadam",
            "fedyogi",
            "fednova",
            "fednag",
            "scaffold-1",
            "scaffold-2",
            "fedmedian",
            "fedavgopt",
        ],
        Field(
            description="fedavg, fedavgm, fedadagrad, fedadam, fedyogi, fednova, fednag, "
            "scaffold-1 or scaffold-2"
        ),
    ] = "fedavg"
    server_learning_rate: _Positive = None
    server_momentum: _Share = None
    server_decay: _Share = None
    server_floor: _Positive = None
    proximal: Annotated[float, Field(ge=0, description="a number of at least 0")] = 0.0

    def aggregated(self, *, record: bool, local: bool = False) -> dict[str, Any]:
        """The fields of the function in force, with its defaults.

        Args:
            local: whether clients can step by another rule.

        Raises:
            ConfigError: a function that cannot be, or settings that it has not.
        """
        given = {
            name: value
            for name in ("learning_rate", "momentum", "decay", "floor")
            if (value := getattr(self, f"server_{name}")) is not None
        }
        if record and (self.aggregation != FedAvg.name or given or self.proximal):
            raise ConfigError(
                f"{self.method}: aggregation, server_.. and proximal are of whole clients' "
                "trainings (unit client); for records a round is one step of the server's own"
            )
        if self.aggregation in _OF_SINGLES:
            raise ConfigError(
                f"{self.method}: {self.aggregation} takes {_OF_SINGLES[self.aggregation]}, and no "
                "client's own is seen here: clipped and noisy sums over clients alone are "
                "released, and noise for a sum does not cover what hangs on one of them. Take "
                "fedavg, fedavgm, fedadagrad, fedadam or fedyogi"
            )
        if self.aggregation in LOCAL and not local:
            raise ConfigError(
                f"{self.method}: {self.aggregation} changes clients' own steps, and is of the "
                "federated classifier alone: take fedavg (with proximal), fedavgm, fedadagrad, "
                "fedadam or fedyogi"
            )
        if self.aggregation == FedNova.name and "learning_rate" not in given:
            raise ConfigError(
                f"{self.method}: fednova takes a mean step of each client, and hides how many it "
                "took: say as server_learning_rate how many a round stands for, a public number "
                "(records that a client has, times local_epochs, over batch_size)"
            )
        kind = _FUNCTIONS[self.aggregation]
        known = {field.name for field in fields(kind)} - {"share"}
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"{self.method}: {self.aggregation} has no server_{name}: leave it out"
                )
        made = kind(**given)
        return {f"server_{name}": getattr(made, name) for name in known}


def aggregation_of(settings: AggregationSettings, share: float = 1.0) -> Aggregation:
    """The function that resolved settings say.

    Args:
        share: of the clients that a round draws.
    """
    kind = _FUNCTIONS[settings.aggregation]
    drawn = {"share": share} if issubclass(kind, Scaffold2) else {}
    made: Aggregation = kind(
        **drawn,
        **{
            field.name: value
            for field in fields(kind)
            if field.name != "share"
            and (value := getattr(settings, f"server_{field.name}")) is not None
        },
    )
    return made
