"""The methods: one list, from which names in Python, job files and the command line are derived.

A method's module is imported when the method is used; its settings' modules need no PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedsynth.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from fedsynth.data.images import Images
    from fedsynth.methods.fitting import Method
    from fedsynth.methods.synthesizer import Synthesizer
    from fedsynth.privacy.budget import Budget
    from fedsynth.release import Settings
    from fedsynth.schema import ImageSchema, Schema

# Columns beyond which the sums of all pairs drown in their own noise: AIM was ahead of FedVAE on
# a table of 55 and behind on one of 179. No rule by records would hold of tables that it was not
# made on (evaluation/README.md, what `auto` takes), and where records are protected their number
# is not public.
_WIDE = 100


@dataclass(frozen=True)
class Entry:
    """A method; its settings are in the module ``settings`` beside its own, without PyTorch.

    Attributes:
        name: in job files and on the command line.
        kind: its class's name, as in ``fedsynth.AIM``; its settings' is that and "Settings".
        module: of the class.
        description: what it does, in a line.
        labels_public: whether it takes public rows, to label them.
        rows: whether rows are drawn from what it learns; one without predicts the target alone.
    """

    name: str
    kind: str
    module: str
    description: str
    labels_public: bool = False
    rows: bool = True

    def load(self) -> Any:
        """The method's class."""
        return getattr(importlib.import_module(self.module), self.kind)

    def load_settings(self) -> Any:
        """The class of its settings."""
        package = self.module.rpartition(".")[0]
        return getattr(importlib.import_module(f"{package}.settings"), f"{self.kind}Settings")


def by_name(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entries by their methods' names.

    Raises:
        ConfigError: two methods, or two classes, of one name.
    """
    found: dict[str, Entry] = {}
    for entry in entries:
        for other in found.values():
            if entry.name == other.name or entry.kind == other.kind:
                raise ConfigError(
                    f"the method {entry.name!r} ({entry.module}.{entry.kind}) cannot be registered "
                    f"beside {other.name!r} ({other.module}.{other.kind}): rename one of them"
                )
        found[entry.name] = entry
    return found


ENTRIES = by_name(
    (
        Entry(
            "aim",
            "AIM",
            "fedsynth.methods.marginal.aim",
            "marginals that a graphical model explains worst, measured and fitted",
        ),
        Entry(
            "mst",
            "MST",
            "fedsynth.methods.marginal.mst",
            "a tree of the pairs of columns that depend most on each other",
        ),
        Entry(
            "privbayes",
            "PrivBayes",
            "fedsynth.methods.marginal.privbayes",
            "a Bayesian network of noisy conditional tables",
        ),
        Entry(
            "fedvae",
            "FedVAE",
            "fedsynth.methods.vae.synthesizer",
            "variational autoencoders that share decoders; at the record level encoders too",
        ),
        Entry(
            "fedgan",
            "FedGAN",
            "fedsynth.methods.gan.synthesizer",
            "a GAN whose discriminators learn at the clients",
        ),
        Entry(
            "fedctgan",
            "FedCTGAN",
            "fedsynth.methods.gan.synthesizer",
            "FedGAN with CTGAN's generator, loss and conditions",
        ),
        Entry(
            "mean-embedding",
            "MeanEmbedding",
            "fedsynth.methods.embedding.synthesizer",
            "sums of public random features that a generator learns to match",
        ),
        Entry(
            "private-fusion",
            "PrivateFusion",
            "fedsynth.methods.copula.private",
            "histograms and second moments in one message, a copula for every class",
        ),
        Entry(
            "fusion",
            "Fusion",
            "fedsynth.papers.fusion.published",
            "Fusion Learning as published, without privacy",
        ),
        Entry(
            "hybrid-fusion",
            "HybridFusion",
            "fedsynth.papers.fusion.hybrid",
            "Fusion from clients to edge servers, averaged by a cloud",
        ),
        Entry(
            "fusion-gan",
            "FusionGAN",
            "fedsynth.papers.fusion_gan.synthesizer",
            "a GAN and a classifier of every client, sent once",
        ),
        Entry(
            "fedinfer",
            "FedInfer",
            "fedsynth.methods.inference.synthesizer",
            "means and second moments, for answers with intervals",
        ),
        Entry(
            "pate",
            "PATE",
            "fedsynth.methods.pate.synthesizer",
            "rows labelled by the noisy votes of the clients' teachers",
            labels_public=True,
        ),
        Entry(
            "pate-gan",
            "PATEGAN",
            "fedsynth.methods.gan.pategan.synthesizer",
            "a generator whose discriminator learns from the votes of teachers",
        ),
        Entry(
            "federated-classifier",
            "FederatedClassifier",
            "fedsynth.methods.classifier.federated",
            "a classifier of the target in place of rows",
            rows=False,
        ),
    )
)


class _WhenUsed(Mapping[str, Any]):
    """What a method's entry loads, by the method's name; a look at the names imports nothing."""

    def __init__(self, load: Callable[[Entry], Any]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> Any:
        return self._load(ENTRIES[name])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


METHODS = _WhenUsed(Entry.load)
"""The methods' classes."""
SETTINGS = _WhenUsed(Entry.load_settings)
"""The classes of their settings."""
LABEL_PUBLIC = tuple(entry.name for entry in ENTRIES.values() if entry.labels_public)
"""The methods that take public rows, to label them."""
SYNTHESIZERS = tuple(entry.name for entry in ENTRIES.values() if entry.rows)
"""The methods that rows are drawn from."""


@dataclass(frozen=True)
class Choice:
    """A method, and why it was chosen, in a sentence."""

    method: str
    reason: str


def choose(
    schema: Schema | ImageSchema, budget: Budget | Mapping[str, Any] | float | None = None
) -> Choice:
    """The method for a job, from public facts alone: the schema and the budget.

    The rules are what the studies of `evaluation/` measured.
    """
    from fedsynth.queries.arguments import budget_of
    from fedsynth.schema import ImageSchema, demand_schema

    demand_schema(schema, "choose")
    if budget is not None:
        budget_of(budget)
    if isinstance(schema, ImageSchema):
        return Choice(
            "mean-embedding",
            "the data are images, whose pixels no few marginals describe, and one noisy "
            "sum of public features teaches as much of them as hundreds of training rounds",
        )
    columns = len(schema.modelled)
    if columns > _WIDE:
        pairs = columns * (columns - 1) // 2
        return Choice(
            "fedvae",
            f"{columns} columns make {pairs:,} pairs, too many to ask for within the noise",
        )
    return Choice(
        "aim",
        f"for a table of {columns} columns, marginals with a graphical model come nearest to the "
        "real counts in few messages and answer any condition exactly (on some tables fedvae or "
        "private-fusion teach a classifier more)",
    )


def make(
    method: str,
    schema: Schema | ImageSchema,
    settings: Settings | None = None,
    public: pd.DataFrame | Images | None = None,
    **overrides: Any,
) -> Method[Any]:
    """A method by its name, whether or not rows are drawn from it; see :func:`synthesizer`."""
    from fedsynth.agreed import suggestion
    from fedsynth.demands import demand_kind

    demand_kind("method", method, str, f"a name, one of {', '.join(ENTRIES)}")
    if method not in ENTRIES:
        raise ConfigError(f"there is no method {method!r}{suggestion(method, ENTRIES)}")
    more = {} if public is None else {"public": public}
    if more and method not in LABEL_PUBLIC:
        raise ConfigError(f"public rows are for the method {', '.join(LABEL_PUBLIC)}, not {method}")
    made: Method[Any] = METHODS[method](schema, settings, **more, **overrides)
    return made


def synthesizer(
    method: str,
    schema: Schema | ImageSchema,
    settings: Settings | None = None,
    public: pd.DataFrame | Images | None = None,
    **overrides: Any,
) -> Synthesizer[Any]:
    """A synthesizer by its method's name, or by "auto" what :func:`choose` takes for the schema.

    Args:
        settings, overrides: as of its class: `fedsynth methods NAME` lists them.
        public: rows that anybody may see, for methods that label them.

    Raises:
        ConfigError: there is no such method or setting, no rows are drawn from it, or it is not
            for this kind of data.
    """
    if isinstance(method, str) and method == "auto":
        method = choose(schema).method
    if isinstance(method, str) and method in ENTRIES and not ENTRIES[method].rows:
        kind = ENTRIES[method].kind
        raise ConfigError(f"{method} makes no rows: it is made by fs.{kind}(schema)")
    made: Any = make(method, schema, settings, public, **overrides)
    synth: Synthesizer[Any] = made
    return synth
