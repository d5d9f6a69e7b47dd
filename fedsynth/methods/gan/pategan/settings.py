"""The settings of PATE-GAN: those of FedGAN that apply, and the teachers'."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.votes import vote_terms
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions


class PATEGANSettings(FedGANSettings):
    """How generator, student and teachers look and learn. None means the default.

    Of the settings of FedGAN, ``local_steps`` and ``batch_size`` are of a teacher's training in a
    round, ``discriminator_hidden`` and ``discriminator_learning_rate`` of teachers and student; the
    clip is that of the votes, everybody is asked in every round, and there is one conditional game
    with the logistic loss.

    Attributes:
        teachers: of every client, each taught by its own share of the client's records; by default
            100 where records are protected, 1 where clients are.
        queries: generated rows that the teachers judge in a round.
        warmup: steps of a teacher's training before its first vote; and after a job was resumed,
            when teachers begin anew.
        student_steps: of the student's training in a round.
    """

    method: ClassVar[str] = "pate-gan"

    teachers: Annotated[
        int | None, Field(ge=1, le=10_000, description="a whole number from 1 to 10,000")
    ] = None
    queries: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 64
    warmup: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 50
    student_steps: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 10

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PATEGANSettings:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the schema, or that PATE-GAN does not have.
        """
        clip = vote_terms(budget, 0.0, 1, self.queries, "gaussian").clip
        teachers = self.teachers or (100 if budget.protects.per_record else 1)
        known: dict[str, Any] = {"clip": self.clip or clip, "teachers": teachers}
        if self.classifier_hidden is None:
            known["classifier_hidden"] = ()
        full = super(PATEGANSettings, self.model_copy(update=known)).resolved(budget, schema)
        assert isinstance(full, PATEGANSettings)
        if abs((full.clip or clip) / clip - 1) > 1e-9:
            raise ConfigError("pate-gan: the clip is that of the votes, and no setting")
        return full

    def _check(self, budget: Budget, schema: Schema | ImageSchema) -> None:
        images = isinstance(schema, ImageSchema)
        problems = {
            "architecture conv is not for pate-gan: teachers are dense networks": self.architecture
            == "conv",
            "architecture residual is for tables": self.architecture == "residual" and images,
            "label_table_share is for tables with classes": bool(self.label_table_share)
            and (images or not conditions(schema)),
            "patience needs released tables to measure by: it is for tables": self.patience
            is not None
            and images,
            "matching needs released tables: it is for tables": bool(self.matching) and images,
        }
        for problem, present in problems.items():
            if present:
                raise ConfigError(f"pate-gan: {problem}")
        foreign = [name for name, value in _FIXED.items() if getattr(self, name) != value]
        if foreign:
            raise ConfigError(f"pate-gan: has no setting {', '.join(foreign)}, as fedgan has")


_FIXED: dict[str, Any] = {
    "scheme": "uni",
    "asks": False,
    "discriminator": "mlp",
    "loss": "logistic",
    "penalty": 0.0,
    "conditional_loss": 0.0,
    "auxiliary_loss": 0.0,
    "rate": 1.0,
    "sampling": "poisson",
    "classifier_hidden": (),
    # Its teachers stay where they are.
    "aggregation": "fedavg",
    "server_learning_rate": None,
    "server_momentum": None,
    "server_decay": None,
    "server_floor": None,
    "proximal": 0.0,
}
_BOTH: dict[str, Any] = {
    **_FIXED,
    "rounds": 50,
    "local_steps": 5,
    "batch_size": 32,
    "discriminator_learning_rate": 1e-3,
    "learning_rate": 1e-3,
    "schedule": "linear",
    "generator_steps": 5,
    "generator_batch": 256,
    "mode_seeking_loss": 0.0,
}
_TABLE = {
    **_BOTH,
    "architecture": "residual",
    "latent": 16,
    "smoothing": 0.1,
    "matching": 10.0,
    "label_table_share": 0.2,
}
_IMAGE = {
    **_BOTH,
    "architecture": "mlp",
    "latent": 30,
    "smoothing": 0.3,
    "matching": 0.0,
    "mode_seeking_loss": 0.1,
    "label_table_share": 0.0,
}

PATEGANSettings._defaults = {  # noqa: SLF001
    (per_record, images): _IMAGE if images else _TABLE
    for per_record in (True, False)
    for images in (True, False)
}
