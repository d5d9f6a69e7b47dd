"""Settings of AIM, MST and PrivBayes, with defaults by trust, target and epsilon."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

Count = Annotated[int | None, Field(ge=1, description="a whole number of at least 1")]
Share = Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")]
Selection = Annotated[
    Literal["exponential", "sums"] | None, Field(description="exponential or sums")
]

# A target of more values makes tables of three columns too large to tell from noise.
FEW = 12

Names = tuple[tuple[str, ...], ...]


class GraphicalSettings(MethodSettings):
    """How a table's graphical model is asked for and fitted.

    Attributes:
        bins: bins wanted for a numeric column; of AIM the most in tables of several columns, fewer
            where records are few for the noise, or where the target is a number and max_cells
            leaves no room for tables of three. By itself a column is counted in 24 at the least.
        rare: values of a category whose noisy count is below so many standard deviations of its
            noise are counted as one value, and told apart again by their noisy counts when rows
            are drawn. 0 keeps all apart.
        histogram_share: what the first histogram (bins, frequencies) may use of the budget, as a
            share of the squared signal-to-noise ratio that a single Gaussian release could have.
        max_cells: entries that the model's tables may have together; bounds time and memory.
        iterations: steps of the last fit, at the most.
    """

    method: ClassVar[str]

    bins: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 24
    rare: Annotated[float, Field(ge=0, description="a number of at least 0")] = 3.0
    histogram_share: Share = 0.1
    max_cells: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 60_000
    iterations: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 300

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> Self:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the schema or the trust.
        """
        return self


def selection_for(
    given: Selection, budget: Budget, *, default: bool = True
) -> Literal["exponential", "sums"]:
    """The selection in force: exponential needs somebody who may see exact scores.

    Args:
        default: whether it is taken where somebody may, and nothing is said.

    Raises:
        ConfigError: it is asked for, and nobody is trusted.
    """
    central = budget.trusts.server_adds
    if given == "exponential" and not central:
        raise ConfigError(
            "selection exponential needs a trusted server (trust central), since it chooses among "
            "exact scores: use selection sums"
        )
    return given or ("exponential" if central and default else "sums")


class AIMSettings(GraphicalSettings):
    """How AIM chooses and measures, beside what all graphical models share.

    Attributes:
        workload: the marginals that matter: pairs, triples (all three-way ones, and pairs),
            target-triples (pairs, and any two columns with the target), or a list of lists of
            columns' names. By default target-triples where the target has few values, else pairs.
        target_weight: how much more a marginal with the target matters than another.
        selection: exponential (central trust: among exact scores) or sums (among coarse noisy
            sums, for any trust). By default exponential where the server is trusted and nothing is
            to be predicted. Of a target of few values among ten thousands of records it often tells
            more; of numbers, and of few records, less.
        marginals: how many are measured at the most; by default 5/3 of the columns, more for a
            larger epsilon.
        messages: selection sums: in how many messages they are measured.
        coarse_share: of what the histogram leaves of the budget, the share that the coarse sums,
            or the choices of the exponential mechanism, may use; by default .5 and .1.
    """

    method: ClassVar[str] = "aim"

    histogram_share: Share = 0.2
    workload: Annotated[
        Literal["pairs", "triples", "target-triples"] | Names | None,
        Field(description="pairs, triples, target-triples, or a list of lists of columns"),
    ] = None
    target_weight: Annotated[float, Field(gt=0, description="a positive number")] = 3.0
    selection: Selection = None
    marginals: Count = None
    messages: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 4
    coarse_share: Annotated[float | None, Field(gt=0, lt=1, description="a share in (0, 1)")] = None

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> AIMSettings:
        super().resolved(budget, schema)
        assert isinstance(schema, Schema)
        self._check(schema)
        selection = selection_for(self.selection, budget, default=schema.target_column is None)
        # Public: the number of columns, and how far noise lets details show.
        reach = min(2.0, max(0.6, math.sqrt(budget.epsilon)))
        wanted = max(1, round(5 / 3 * len(schema.modelled) * reach))
        workload = self.workload
        if workload is None:
            few = 0 < schema.classes <= FEW and len(schema.modelled) > 2
            workload = "target-triples" if few else "pairs"
        marginals = wanted if self.marginals is None else self.marginals
        share = self.coarse_share
        if share is None:
            share = 0.1 if selection == "exponential" else 0.5
        return self.model_copy(
            update={
                "selection": selection,
                "workload": workload,
                "marginals": marginals,
                "messages": min(self.messages, marginals),
                "coarse_share": share,
            }
        )

    def _check(self, schema: Schema) -> None:
        if self.workload == "target-triples" and schema.target_column is None:
            raise ConfigError("aim: workload target-triples needs a target")
        if not isinstance(self.workload, tuple):
            return
        names = [column.name for column in schema.modelled]
        for columns in self.workload:
            for name in columns:
                if name not in names:
                    hint = suggestion(name, names)
                    raise ConfigError(f"aim: workload: there is no column {name!r}{hint}")
            if len(set(columns)) < len(columns) or not 1 <= len(columns) <= 6:
                raise ConfigError(
                    f"aim: workload: {list(columns)} must be 1 to 6 different columns"
                )


class MSTSettings(GraphicalSettings):
    """How MST chooses its tree, beside what all graphical models share.

    Attributes:
        selection: exponential (central trust: among exact scores) or sums (among coarse noisy
            sums, for any trust); by default exponential where the server is trusted.
    """

    method: ClassVar[str] = "mst"

    selection: Selection = None

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> MSTSettings:
        super().resolved(budget, schema)
        return self.model_copy(update={"selection": selection_for(self.selection, budget)})


class PrivBayesSettings(GraphicalSettings):
    """How the network is chosen, beside what all graphical models share.

    Attributes:
        degree: parents of a column, at the most; fewer where tables would drown in noise.
        structure: from noisy sums of all pairs (sums), or by a noisy majority vote of the clients
            (votes), which takes hundreds of clients to outweigh its noise.
        mechanism: gaussian noise; or laplace as first published, by which each release has an
            epsilon of its own without any delta, one over its noise multiplier. Its noise grows
            with the number of tables, the Gaussian's with its root: for few columns.
    """

    method: ClassVar[str] = "privbayes"

    degree: Annotated[int, Field(ge=1, le=5, description="a whole number from 1 to 5")] = 2
    structure: Annotated[Literal["sums", "votes"], Field(description="sums or votes")] = "sums"
    mechanism: Annotated[
        Literal["gaussian", "laplace"], Field(description="gaussian or laplace")
    ] = "gaussian"

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PrivBayesSettings:
        if self.mechanism == "laplace" and self.structure == "votes":
            raise ConfigError("privbayes: votes take gaussian noise: use structure sums")
        return self
