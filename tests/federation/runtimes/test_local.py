"""Clients in this process: whatever is asked, and wherever it is stopped, a charge is an answer."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.federation.client.client import Client
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import Request
from fedsynth.federation.runtimes.local import ANSWERS, LocalRuntime, kept_of
from fedsynth.federation.runtimes.secure import SecureRuntime
from fedsynth.federation.secure.rules import Rules
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import OBEDIENT, Vectors, terms

OWN = Budget(epsilon=math.inf, unit="record", trust="central")
NOISY = {
    trust: terms(unit="record", trust=trust, noise_multiplier=2.0, survivors=count)
    for trust, count in (("distributed", 2), ("local", 1))
}

ASKED = st.tuples(
    st.integers(0, 3),  # round
    st.sampled_from(["a", "a", "b"]),  # which request
    st.sampled_from([None, None, "before", "after"]),  # stopped, as it keeps its answers
    st.booleans(),  # settled
)


KINDS = {
    "local": LocalRuntime,
    "secure": lambda owners: SecureRuntime(owners, Rules(2, 2, 0)),
}


def opened(folder: Path, kind: str = "local") -> tuple[LocalRuntime, list[Ledger]]:
    ledgers = [Ledger.of_owner(folder / f"{name}.jsonl", OWN) for name in "cd"]
    owners = [
        Client(f"c{i}", np.full((2, 3), 0.1), 2, ledger, floor=OBEDIENT)
        for i, ledger in enumerate(ledgers)
    ]
    runtime = KINDS[kind](owners)
    runtime.open("job", {})
    return runtime, ledgers


def had(runtime: LocalRuntime, request: Request) -> bytes:
    """What came of a round; nothing, where it was refused."""
    if request.terms.trust == "local":
        return b"".join(one.values.tobytes() for one in runtime.collect(request, ["c0", "c1"])[0])
    summed = runtime.sum(request, ["c0", "c1"])
    return summed.total.tobytes() if summed.answered else b""


@settings(max_examples=30)
@given(
    asked=st.lists(ASKED, max_size=8),
    trust=st.sampled_from(sorted(NOISY)),
    kind=st.sampled_from(sorted(KINDS)),
)
def test_a_round_is_given_once_and_charged_once_however_often_it_is_asked(asked, trust, kind):
    given_ = {}
    genuine = Kept.keep
    with tempfile.TemporaryDirectory() as name:
        runtime, ledgers = opened(Path(name), kind)
        for number, which, stop, settled in asked:
            request = Request(
                Vectors.name, NOISY[trust], 3, settings={"which": which}, job="job", round=number
            )

            def keep(*arguments, stop=stop):
                if stop != "before":
                    genuine(*arguments)
                if stop is not None:
                    raise KeyboardInterrupt

            try:
                with patch.object(Kept, "keep", keep):
                    value = had(runtime, request)
            except KeyboardInterrupt:
                for ledger in ledgers:
                    ledger.close()
                runtime.close("job", finished=False)
                runtime, ledgers = opened(Path(name), kind)
                continue
            if value:
                # Noise is drawn anew for every answer that is made, so another one would show.
                assert given_.setdefault(number, (which, value)) == (which, value)
            if settled and value:
                runtime.settle("job", number + 1)
                assert had(runtime, request) == b""
        for ledger in ledgers:
            charged = Counter(event.round for event in ledger.events)
            assert set(charged.values()) <= {1}
            assert given_.keys() <= charged.keys()
            ledger.close()
        runtime.close("job", finished=True)


@pytest.mark.parametrize("kept", [0, 1])
def test_what_may_have_left_something_at_its_client_is_not_made_again(tmp_path, kept):
    """What stays there was noised and stored before the answer was kept: another one beside it
    would be a second release, so being stopped in between costs the round."""
    runtime, ledgers = opened(tmp_path)
    request = Request(Vectors.name, NOISY["distributed"], 3, kept, job="job", round=0)
    client = runtime._clients["c0"]
    assert client.consent(request) is None
    assert (client.consent(request) is None) is (kept == 0)
    assert [event.round for event in ledgers[0].events] == [0]
    runtime.close("job", finished=True)


def test_answers_are_kept_anew_only_of_a_job_that_no_account_knows(tmp_path):
    """Where an account knows it and the file is gone, what was given is not known."""
    ledgers = [Ledger.of_owner(tmp_path / f"{name}.jsonl", OWN) for name in "cd"]
    owners = [Client(f"c{i}", np.zeros((2, 3)), 2, one) for i, one in enumerate([None, *ledgers])]
    ledgers[1].charge(Event("vectors", 0, NOISY["local"], "job"))
    assert kept_of(owners, "job", ANSWERS) is None
    new = kept_of(owners, "another", ANSWERS)
    assert new is not None
    new.close(delete=True)
    assert kept_of(owners[:1], "another", ANSWERS) is None
