"""What carries a job's frames between machines: messages for few questions, streams for many."""

from __future__ import annotations

from pathlib import Path

from fedsynth.errors import ConfigError
from fedsynth.federation.client.tasks import GroupTask, knows, lookup
from fedsynth.jobs.config import AUTO, Config
from fedsynth.jobs.data import without_rows
from fedsynth.registry import choose, synthesizer

MESSAGES, STREAM = "messages", "stream"
MOST_ROUNDS = 30
"""Questions of a job that go by messages unless it says otherwise: each starts a process at every
site, which takes 15 to 25 seconds before any work."""


def choose_carrier(config: Config, base: Path) -> tuple[str, str]:
    """What carries a job where both can, and why.

    Raises:
        ConfigError: by messages a site's process ends with each, and the method's tasks keep
            something in memory from one to the next.
        FedsynthError: the job has no plan.
    """
    asked = config.federation.carrier
    if asked == STREAM:
        return STREAM, "the job says so"
    data, method = without_rows(config, base), config.method
    if method == AUTO:
        method = choose(data.schema, config.privacy.budget).method
    clients, federation = len(config.federation.owners or ()), config.federation
    synth = synthesizer(method, data.schema, config.settings, data.public)
    plan = synth.plan(
        config.privacy.budget, clients, survivors=federation.survivors, secure=federation.secure
    )
    rounds = f"{plan.total:,} question{'' if plan.total == 1 else 's'}"
    remembers = any(knows(one) and isinstance(lookup(one), GroupTask) for one in plan.labels)
    if asked == MESSAGES:
        if remembers:
            raise ConfigError(
                f"federation: carrier: {method} has owners remember models from question to "
                "question, and by messages each starts a new process: say stream"
            )
        return MESSAGES, f"the job says so, of {rounds}"
    if remembers:
        return STREAM, f"{method} has owners remember models from question to question"
    return (MESSAGES if plan.total <= MOST_ROUNDS else STREAM), rounds
