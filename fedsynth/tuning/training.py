"""The winner of a search, trained once on owners' rows, by a job with an account of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedsynth.errors import Caution, ConfigError
from fedsynth.evaluation.reading.scores import Scores as Figures
from fedsynth.jobs.config import AUTO, Config
from fedsynth.jobs.data import JobData, prepare, read_schema
from fedsynth.jobs.run import Outcome, start
from fedsynth.jobs.scoring import answer_held_out
from fedsynth.methods.classifier.federated import FederatedClassifier
from fedsynth.methods.classifier.settings import FederatedClassifierSettings
from fedsynth.progress import Report
from fedsynth.tuning.federating import federate
from fedsynth.tuning.tuned import Tuned

_METHOD = FederatedClassifierSettings.method


@dataclass(frozen=True)
class Trained:
    """A classifier with the settings that a search found, trained on owners' rows.

    Attributes:
        outcome: of its job: release, certificate, scores on rows held out.
        default: the figures on the same rows of one with the job's own settings, of which nothing
            is released; None where the job holds nothing out, or it cannot be scored.
    """

    outcome: Outcome
    default: Figures | None


def demand_job(config: Config, base: Path, releases_schema: str) -> None:
    """Raises ConfigError for a job that cannot train what a search on such releases finds."""
    if config.method not in (AUTO, _METHOD):
        raise ConfigError(f"--federate trains by {_METHOD}, and the job's method is another")
    if config.federation.runtime is not None:
        raise ConfigError(
            "--federate: this job's owners are on their own machines. Search without it: "
            "settings.json in --out has what was found as `federated`. Write that into the job, as "
            f"`settings` of `method: {_METHOD}`, and let `fedsynth serve` run it"
        )
    if read_schema(config, base).digest != releases_schema:
        raise ConfigError("--federate: the job's schema is another than the releases'")


def train_winner(
    found: Tuned, config: Config, base: Path, folder: Path, progress: Report, caution: Caution
) -> Trained:
    """Run a job with the settings that were found, and hold it against the job's own settings.

    Args:
        config: of the owners' rows and the budget; its other settings stay.
        base: what its paths are relative to.
        folder: a new one, for the release.

    Raises:
        FedsynthError: as a job does; before anything is asked where it cannot begin.
    """
    demand_job(config, base, found.schema.digest)
    given = config.settings
    own = {}
    if isinstance(given, FederatedClassifierSettings):
        own = given.model_dump(exclude_unset=True)
    won = federate(found.model, found.best.settings, found.rows, found.schema.classes)
    settings = FederatedClassifierSettings(**{**own, **won})
    content = {key: part for key, part in config.to_dict().items() if key != "sample"}
    job = Config(**{**content, "method": _METHOD, "settings": settings})
    outcome = start(job, base, folder, progress, caution)
    data = prepare(config, base, lambda _: None)
    default = None
    if data.test is not None and outcome.scores is not None and outcome.scores.why is None:
        default = _score_default(FederatedClassifierSettings(**own), config, data, progress)
    return Trained(outcome, default)


def _score_default(
    settings: FederatedClassifierSettings, config: Config, data: JobData, progress: Report
) -> Figures:
    """Of a classifier that nothing is released of, trained alike; the figure alone is seen."""
    assert data.test is not None

    def tell(step: str, done: int, whole: int, _: float) -> None:
        # Epsilon of what nobody gets to see is left out.
        progress(f"{step} with the job's own settings", done, whole)

    model = FederatedClassifier(data.schema, settings).fit(
        data.owners,
        config.privacy.budget,
        seed=config.seed,
        survivors=config.federation.survivors,
        most_records=config.federation.most_records,
        outside=config.outside,
        # Nothing leaves, so that nothing is remembered of it either.
        insecure_noise_seed=config.seed,
        caution=lambda _: None,
        progress=tell,
    )
    return answer_held_out(model, data.test)
