"""What carries a job's frames between machines: messages for few questions, streams for many."""

from __future__ import annotations

from pathlib import Path

from fedsynth.errors import ConfigError
from fedsynth.federation.client.tasks import GroupTask, knows, lookup
from fedsynth.jobs.config import AUTO, Config
from fedsynth.jobs.data import without_rows
from fedsynth.queries.plan import Plan
from fedsynth.registry import choose, make

MESSAGES, STREAM = "messages", "stream"
MOST_MESSAGES = 40
"""Messages to a site by which a job goes unless it says otherwise: each starts a process there,
which takes 6 to 25 seconds before any work."""


def choose_carrier(config: Config, base: Path) -> tuple[str, str]:
    """What carries a job where both can, and why, before it is begun.

    Raises:
        ConfigError: as :func:`carrier_of`.
        FedsynthError: the job has no plan.
    """
    data, budget, agreed = without_rows(config, base), config.privacy.budget, config.federation
    method = config.method if config.method != AUTO else choose(data.schema, budget).method
    made = make(method, data.schema, config.settings, data.public)
    plan = made.plan(budget, len(agreed.owners or ()), agreed.survivors, agreed.secure)
    return carrier_of(agreed.carrier, method, plan)


def count_messages(plan: Plan) -> int:
    """To a site: a question each; of secure sums the exchanges behind the first (docs/
    secure-sums.md), of which the first round has more, since no round before brought its keys."""
    if plan.secure is None or not plan.total:
        return plan.total
    return plan.total + 2 if plan.secure.needs_all else 3 * plan.total + 3


def carrier_of(asked: str | None, method: str, plan: Plan) -> tuple[str, str]:
    """What carries a plan, and why.

    Args:
        asked: by the job; None or auto leaves it to the plan.

    Raises:
        ConfigError: by messages a site's process ends with each, and the method's tasks keep
            something in memory from one to the next.
    """
    messages = count_messages(plan)
    questions = f"{plan.total:,} question{'' if plan.total == 1 else 's'}"
    questions += f" in {messages:,} messages" if messages > plan.total else ""
    remembers = any(knows(one) and isinstance(lookup(one), GroupTask) for one in plan.labels)
    if asked == MESSAGES and remembers:
        raise ConfigError(
            f"federation: carrier: {method} has owners remember models from question to "
            "question, and by messages each starts a new process: say stream"
        )
    if asked in (MESSAGES, STREAM):
        return str(asked), f"the job says so, of {questions}"
    if remembers:
        return STREAM, f"{method} has owners remember models from question to question"
    return (MESSAGES if messages <= MOST_MESSAGES else STREAM), questions
