"""Every runtime keeps the contract; a new one is a line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.runtimes.secure import SecureRuntime
from fedsynth.federation.secure.rules import Rules
from tests.federation.runtimes.carriers import Loopback, Machines
from tests.federation.runtimes.contract import CHECKS, Build
from tests.federation.runtimes.posts import Posted


def secure(owners, private=None):
    """All but one of so many owners are enough."""
    return SecureRuntime(owners, Rules(len(owners), max(2, len(owners) - 1), 0), private)


RUNTIMES: dict[str, Callable[[Path], Build]] = {
    "local": lambda folder: LocalRuntime,
    "secure": lambda folder: secure,
    "sites": Machines,
    "streams": Loopback,
    "messages": Posted,
}

_MEMORY = "takes_memory_for_an_answer_and_not_for_all"
# A check that hangs on how answers are added up, which another test looks at where they come in
# any order, at a hundredth of the time; under secure sums at most 100 owners wait for each other.
ELSEWHERE = {
    ("sites", _MEMORY),
    ("streams", _MEMORY),
    ("secure", _MEMORY),
    # A site that dies takes no server with it.
    ("streams", "makes_under_its_charge_what_never_left"),
    # What sites keep of a job, whatever carries it: looked at in "sites".
    ("streams", "serves_two_jobs_apart"),
    ("streams", "forgets_a_finished_job_and_no_other"),
}


# A process a message costs the most, and what it forgets these look at; the others look at the hub
# and the site, which are those of "sites".
BY_MESSAGES = {
    "announces_before_it_asks",
    "brings_messages_by_client",
    "brings_the_same_again_until_it_is_settled",
    "keeps_private_vectors_on_disk",
}


@pytest.mark.parametrize(
    ("runtime", "check"),
    [
        pytest.param(name, check, id=f"{name}-{check.__name__}")
        for name in RUNTIMES
        for check in CHECKS
        if (name, check.__name__) not in ELSEWHERE
        and (name != "messages" or check.__name__ in BY_MESSAGES)
    ],
)
def test_a_runtime(runtime, check, tmp_path: Path, tmp_path_factory):
    build = RUNTIMES[runtime](tmp_path_factory.mktemp("machines"))
    try:
        check(build, tmp_path)
    finally:
        if isinstance(build, Machines):
            build.close()
