import gc

import numpy as np
import pytest

from fedsynth.codec import pack
from fedsynth.errors import (
    ConfigError,
    DataError,
    FederationError,
    MachineError,
    PrivacyError,
    ReleaseError,
)
from fedsynth.federation import kept as kept_module
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import Released
from fedsynth.federation.runtimes.local import ANSWERS, PRIVATE, LocalRuntime
from fedsynth.federation.runtimes.state_file import StateFile
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.door import Door
from fedsynth.federation.simulation.simulation import ROWS
from fedsynth.holding import CHECKPOINT
from fedsynth.methods.inference.synthesizer import FedInfer
from fedsynth.methods.marginal.mst import MST
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.models import matching
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries import session as fitting
from fedsynth.queries.options import Options
from fedsynth.queries.session import Session
from tests.methods.contract import budget_for, made
from tests.methods.small import SCHEMA, answering, owners, table

BUDGET, ALONE = Budget(epsilon=1.0, curious=1), Budget(epsilon=1.0)


@pytest.fixture(autouse=True, scope="module")
def few_draws():
    """What decoders are matched over, which is half of a small fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_DRAWS", 256)
        yield


class Crash(Exception):
    """Stands for a power cut."""


def crash_at(label, round_):
    def progress(step, done, total, epsilon):
        if (step, done) == (label, round_):
            raise Crash

    return progress


def synth(**settings):
    return FedVAE(
        SCHEMA, **{"rounds": 9, "hidden": (8,), "latent": 2, "pair_share": 0.0, **settings}
    )


def interrupted(folder, label, round_, budget=BUDGET, **settings):
    """A job that a crash ended; its ledger is let go of as the end of a process would."""
    made = synth(**settings)
    with pytest.raises(Crash):
        made.fit(
            owners(30, 30), budget, folder=folder, checkpoint_every=4,
            progress=crash_at(label, round_),
        )  # fmt: skip
    del made
    gc.collect()


@pytest.mark.parametrize(
    ("label", "round_"),
    [
        ("histogram", 0),
        ("histogram", 1),
        ("label-tables", 1),
        ("training", 4),
        ("training", 7),
        ("training", 9),
    ],
)
def test_a_resumed_job_spends_no_more_than_its_budget_and_forgets_nothing(tmp_path, label, round_):
    """Nor does anything of a lost round come back for free."""
    interrupted(tmp_path, label, round_)
    before = Ledger.read(tmp_path / "ledger.jsonl")
    resumed = synth().fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)
    after = Ledger.read(tmp_path / "ledger.jsonl")
    assert after.events[: len(before.events)] == before.events
    assert resumed.ledger.spent().epsilon <= 1.0
    assert [event.round for event in after.events] == list(range(len(after.events)))
    training = [e for e in after.events if e.label == "vae-gradient"]
    asked_again = [e for e in after.events if e.label != "vae-gradient"]
    if label == "training":
        # Rounds since the last checkpoint are charged and lost, so the job makes fewer.
        assert len(training) == 9
        assert len(asked_again) == 2
    assert len(resumed.sample(10)) == 10


def test_private_encoders_survive_an_interruption_and_the_job_deletes_them(tmp_path):
    interrupted(tmp_path, "training", 8, encoder="private")
    (path,) = (tmp_path / CHECKPOINT).glob(f"*{PRIVATE}")
    assert path.stat().st_mode & 0o077 == 0
    file = StateFile(path)
    assert np.abs(file.read(0)).max() > 0
    assert not np.array_equal(file.read(0), file.read(1))
    file.close()
    synth(encoder="private").fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)
    assert not list(tmp_path.rglob(f"*{PRIVATE}"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The folder of a job that a crash ended in its fifth round, which nobody resumes."""
    folder = tmp_path_factory.mktemp("begun") / "job"
    interrupted(folder, "training", 5)
    return folder


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"budget": Budget(epsilon=2.0, curious=1)}, "another budget"),
        ({"settings": {"latent": 3}}, "other settings"),
        ({"insecure_noise_seed": 1}, "another insecure_noise_seed"),
        ({"owners_provenance": "private-data"}, "another owners_provenance"),
        ({"seed": 1}, "another seed"),
        ({"most_records": 40}, "another seed, .* limit"),
        ({"outside": 0.5}, "another seed, .* limit"),
    ],
)
def test_a_job_is_resumed_as_it_was_begun_or_not_at_all(begun, changed, said):
    before = (begun / "ledger.jsonl").read_bytes()
    options = {k: v for k, v in changed.items() if k not in ("budget", "settings")}
    with pytest.raises(ConfigError, match=said):
        synth(**changed.get("settings", {})).fit(
            owners(30, 30), changed.get("budget", BUDGET), folder=begun, resume=True, **options
        )
    assert (begun / "ledger.jsonl").read_bytes() == before


@pytest.mark.parametrize(("label", "round_"), [("histogram", 0), ("label-tables", 0)])
def test_a_job_without_a_checkpoint_is_resumed_with_its_settings_or_not_at_all(
    tmp_path, label, round_
):
    # Its noise was calibrated for the settings that its ledger names.
    interrupted(tmp_path, label, round_)
    assert not (tmp_path / CHECKPOINT / "state.safetensors").exists()
    for changed in ({"rate": 0.9}, {"rounds": 100}):
        with pytest.raises(ConfigError, match="another method or other settings"):
            synth(**changed).fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)
    with pytest.raises(ConfigError, match="another method or other settings"):
        MST(SCHEMA).fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)
    assert synth().fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True).ledger.events


def test_a_job_is_resumed_on_the_rows_that_it_began_with_or_not_at_all(tmp_path):
    interrupted(tmp_path, "training", 5)
    before = (tmp_path / "ledger.jsonl").read_bytes()
    rows = tmp_path / CHECKPOINT / ROWS
    assert rows.stat().st_mode & 0o077 == 0
    kept, others = rows.read_bytes(), {**owners(30, 30), "site-1": table(30, seed=9)}
    with pytest.raises(DataError, match="the rows of site-1 are not"):
        synth().fit(others, BUDGET, folder=tmp_path, resume=True)
    for lost in (None, b"{", b"3"):
        rows.unlink() if lost is None else rows.write_bytes(lost)
        with pytest.raises(DataError, match="missing or damaged"):
            synth().fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)
    rows.write_bytes(kept)
    assert (tmp_path / "ledger.jsonl").read_bytes() == before
    # In another order they are the same records.
    turned = {name: frame.iloc[::-1] for name, frame in owners(30, 30).items()}
    synth().fit(turned, BUDGET, folder=tmp_path, resume=True)


def test_rows_of_a_job_that_has_asked_nothing_may_be_others_when_it_is_resumed(tmp_path):
    interrupted(tmp_path, "histogram", 0)
    others = {**owners(30, 30), "site-1": table(30, seed=9)}
    synth().fit(others, BUDGET, folder=tmp_path, resume=True)


def test_vectors_without_a_checkpoint_belong_to_nobody_and_are_deleted(tmp_path):
    interrupted(tmp_path, "label-tables", 0, encoder="private")
    job = Ledger.read(tmp_path / "ledger.jsonl").job.job
    stale = tmp_path / CHECKPOINT / f"{job}{PRIVATE}"
    stale.parent.mkdir(exist_ok=True)
    stale.write_bytes(b"\xff" * 10_000)

    def watched(step, done, total, epsilon):
        assert not (step == "histogram" and stale.exists())

    made = synth(encoder="private")
    made.fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True, progress=watched)
    assert np.isfinite(made.learned.theta).all()


def test_rounds_lost_since_the_checkpoint_count_as_taken_by_everybody():
    ledger = Ledger.create(Job(budget=Budget(epsilon=float("inf")), participations=9))
    terms = Terms(unit="record", trust="distributed", clip=1.0, noise_multiplier=5.0)
    for number in range(8):
        ledger.charge(Event("task", number, terms))
    meta = {"events": 5, "participations": {"a": 2, "b": 0}}
    assert fitting._participations(({}, meta), ledger) == {"a": 5, "b": 3}
    assert fitting._participations(({}, {}), ledger) is None
    assert fitting._participations(None, ledger) is None


def test_a_damaged_checkpoint_is_named(tmp_path):
    interrupted(tmp_path, "training", 5)
    state = tmp_path / CHECKPOINT / "state.safetensors"
    state.write_bytes(state.read_bytes()[:40])
    with pytest.raises(ReleaseError, match=r"state\.safetensors"):
        synth().fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)


def test_a_second_job_in_the_same_folder_is_refused(tmp_path):
    synth(rounds=1).fit(owners(30), ALONE, folder=tmp_path)
    with pytest.raises(PrivacyError, match="never overwritten"):
        synth(rounds=1).fit(owners(30), ALONE, folder=tmp_path)


def test_a_resumed_client_cannot_take_part_more_often_than_was_accounted_for(tmp_path, monkeypatch):
    budget = Budget(epsilon=50.0, unit="client", trust="local", units=40)
    tables = {f"c{i}": table(4, seed=i) for i in range(40)}
    taken, drawn = [], []
    end, leave = LocalRuntime.close, Channel.close

    def ended(self, job, *, finished):
        taken.append({n: client.memory(job).participations for n, client in self._clients.items()})
        end(self, job, finished=finished)

    def left(self, *, finished):
        drawn.append(dict(self.participations))
        leave(self, finished=finished)

    monkeypatch.setattr(LocalRuntime, "close", ended)
    monkeypatch.setattr(Channel, "close", left)
    options = {"folder": tmp_path, "checkpoint_every": 4}
    with pytest.raises(Crash):
        synth(scheme="uni", rate=0.5).fit(
            tables, budget, progress=crash_at("training", 7), **options
        )
    gc.collect()
    made = synth(scheme="uni", rate=0.5).fit(tables, budget, resume=True, **options)
    cap = made.ledger.job.participations
    first, last = taken
    assert max(first.values()) > 0
    assert all(first[name] <= last[name] <= cap for name in tables)
    # A client counts the rounds that it agreed to, the server those that it drew it for.
    assert drawn[0] == first
    assert all(last[name] == min(drawn[1][name], cap) for name in tables)
    assert made.ledger.spent().epsilon <= 50


def test_too_few_answers_end_the_job_with_the_round_charged(tmp_path, monkeypatch):
    answering(monkeypatch, 1)
    with pytest.raises(FederationError, match="needed"):
        synth().fit(owners(20, 20, 20), BUDGET, folder=tmp_path)
    gc.collect()
    assert len(Ledger.read(tmp_path / "ledger.jsonl").events) == 1


def test_clients_may_drop_out_as_far_as_was_declared(monkeypatch):
    answering(monkeypatch, 2)
    made = synth().fit(owners(20, 20, 20), BUDGET, survivors=0.6)
    assert made.ledger.job.plan[0].terms.survivors == 2
    assert made.ledger.spent().epsilon <= 1
    rounds = {"histogram": 1, "label-tables": 1, "vae-gradient": 9}
    assert {one["stage"]: one["rounds"] for one in made.incidents} == rounds
    told = {(one["client"], one["reason"]) for one in made.incidents}
    assert told == {("site-2", "did not answer")}
    assert "vae-gradient (9 rounds) lacks site-2 in 9: did not answer" in made.remarks


def test_who_was_dropped_before_a_crash_is_told_of_all_rounds_whose_values_were_kept(
    tmp_path, monkeypatch
):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        answering(patch, 2)
        synth().fit(
            owners(20, 20, 20), BUDGET, folder=tmp_path, checkpoint_every=4, survivors=0.6,
            progress=crash_at("training", 7),
        )  # fmt: skip
    gc.collect()
    made = synth().fit(owners(20, 20, 20), BUDGET, folder=tmp_path, resume=True)
    rounds = {"histogram": 1, "label-tables": 1, "vae-gradient": 7}
    assert {one["stage"]: one["rounds"] for one in made.incidents} == rounds


def test_where_taking_part_is_secret_nothing_published_names_a_dropped_client(
    tmp_path, monkeypatch
):
    """Nor does the checkpoint, which is as public as the release. Whoever runs the job is told."""
    budget = Budget(epsilon=50.0, unit="client", trust="central", units=4)
    answering(monkeypatch, 3)
    tables = {name: table(8) for name in "abcd"}
    made = synth(scheme="uni", rate=1.0).fit(tables, budget, folder=tmp_path, survivors=0.75)
    assert made.incidents == ()
    state = (tmp_path / CHECKPOINT / "state.safetensors").read_bytes()
    assert b"did not answer" not in state and b"dropped" not in state
    # Of three rows too little is told to part their numbers, which names nobody.
    named = [one for one in made.remarks if "one bin each" not in one]
    assert named and all("lack" in one and "d in" in one and "secret" in one for one in named)


def test_progress_names_each_step_and_never_overstates_what_is_left():
    steps = []
    synth().fit(owners(30), ALONE, progress=lambda *step: steps.append(step))
    labels = list(dict.fromkeys(step[0] for step in steps))
    assert labels == ["histogram", "label-tables", "training"]
    assert steps[-1][1:3] == (9, 9)
    assert 0.9 < steps[-1][3] <= 1
    # One that was passed already is told as none.
    spent = [step[3] for step in steps if not np.isnan(step[3])]
    assert spent == sorted(set(spent)) and spent[0] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"survivors": 0},
        {"survivors": 1.1},
        {"checkpoint_every": 0},
        {"resume": True},
        {"most_records": 0},
    ],
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError):
        Options(**wrong)


def test_an_owner_keeps_its_own_account_across_jobs_and_refuses_beyond_it(tmp_path):
    own = Budget(epsilon=1.4, delta=1e-5)
    path = tmp_path / "site-0.jsonl"

    def job(**options):
        ledger = Ledger.of_owner(path, own)
        try:
            return synth(rounds=12).fit(
                owners(20, 20, 20), BUDGET, owners_ledgers={"site-0": ledger}, **options
            )
        finally:
            ledger.close()

    first = job()
    written = Ledger.read(path)
    assert written.counts == first.ledger.counts
    # A second job would cost site-0 more than it is willing to pay, wherever it stands in it.
    with pytest.raises(FederationError, match="site-0: refuses: its own budget is spent"):
        job()
    second = job(survivors=0.6)
    after = Ledger.read(path)
    assert after.spent().epsilon <= 1.4
    assert len(after.events) < len(written.events) + len(second.ledger.events)


def test_an_owners_budget_is_set_once(tmp_path):
    Ledger.of_owner(tmp_path / "own.jsonl", Budget(epsilon=1.0)).close()
    with pytest.raises(PrivacyError, match="set once"):
        Ledger.of_owner(tmp_path / "own.jsonl", Budget(epsilon=9.0))
    Ledger.of_owner(tmp_path / "own.jsonl", Budget(epsilon=1.0)).close()


def test_a_ledger_for_somebody_who_takes_no_part_is_refused(tmp_path):
    ledger = Ledger.of_owner(tmp_path / "own.jsonl", Budget(epsilon=1.0))
    with pytest.raises(ConfigError, match="did you mean 'site-0'"):
        synth().fit(owners(20), ALONE, owners_ledgers={"sitee-0": ledger})


def test_private_vectors_never_change_hands_on_resume(tmp_path):
    interrupted(tmp_path, "training", 8, encoder="private")
    turned = dict(reversed(owners(30, 30).items()))
    with pytest.raises(ConfigError, match="other owners, or in another order"):
        synth(encoder="private").fit(turned, BUDGET, folder=tmp_path, resume=True)


def test_private_vectors_of_an_earlier_version_are_never_silently_replaced(tmp_path):
    interrupted(tmp_path, "training", 8, encoder="private")
    (tmp_path / CHECKPOINT / "private.bin").touch()
    with pytest.raises(ReleaseError, match="earlier version"):
        synth(encoder="private").fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True)


STOPS = {
    "charged, nobody asked": (LocalRuntime, "sum", None, True),
    "asked, answers not kept": (Kept, "keep", ANSWERS, True),
    "answers kept, not given": (Kept, "keep", ANSWERS, False),
    "answered, not noised": (Door, "_take", None, True),
    "released, not kept": (Kept, "keep", ".released", True),
    "kept, not used": (Kept, "keep", ".released", False),
    "used, no checkpoint": (Session, "checkpoint", None, True),
}


def stopped(monkeypatch, stop, fit):
    """Has a fit stopped, as a kill would, before or after the first call of a function."""
    owner, name, suffix, before = STOPS[stop]
    genuine = getattr(owner, name)

    def stopping(self, *given, **named):
        here = suffix is None or self.path.suffix == suffix
        if here and before:
            raise KeyboardInterrupt
        result = genuine(self, *given, **named)
        if here:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(owner, name, stopping)
        fit()
    gc.collect()


@pytest.mark.parametrize(
    ("name", "stop", "owned"),
    [
        # Clients without accounts keep no answers.
        *(("fedinfer", stop, False) for stop in STOPS if STOPS[stop][2] != ANSWERS),
        *(("fedinfer", stop, True) for stop in STOPS),
        ("mean-embedding", "released, not kept", True),
        ("private-fusion", "charged, nobody asked", False),
        ("fusion-gan", "answered, not noised", False),
        ("fusion-gan", "answers kept, not given", True),
    ],
)
def test_a_job_of_one_message_outlives_a_kill_anywhere_and_pays_once(
    name, stop, owned, tmp_path, monkeypatch
):
    """Of owners with accounts too, which hold the one round and no more."""
    budget = budget_for(name)
    own = Budget(epsilon=1.3 * budget.epsilon, delta=1e-3, trust="central")

    def fit(resume=False):
        accounts = {}
        if owned:
            accounts = {f"site-{i}": Ledger.of_owner(tmp_path / f"{i}.jsonl", own) for i in "01"}
        try:
            return made(name).fit(
                owners(20, 20), budget, folder=tmp_path / "job", resume=resume,
                owners_ledgers=accounts,
            )  # fmt: skip
        finally:
            for account in accounts.values():
                account.close()

    stopped(monkeypatch, stop, fit)
    charged = Ledger.read(tmp_path / "job" / "ledger.jsonl")
    assert len(charged.events) == 1
    synth = fit(resume=True)
    assert synth.ledger.events == charged.events
    assert len(synth.sample(5, seed=0)) == 5
    if owned:
        for i in "01":
            assert len(Ledger.read(tmp_path / f"{i}.jsonl").events) == 1
        # What was kept of the round is gone with the job.
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl", "job"]
    assert [path.name for path in (tmp_path / "job" / CHECKPOINT).iterdir()] != []
    assert not list(tmp_path.rglob("*.released"))


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_what_a_resumed_job_has_again_is_what_it_released(trust, tmp_path, monkeypatch):
    """One release, not two: where the server adds the noise it is not drawn again either."""

    def fit(**resume):
        return FedInfer(SCHEMA).fit(
            owners(20, 20, 20), Budget(epsilon=1.0, trust=trust), folder=tmp_path, **resume
        )

    stopped(monkeypatch, "kept, not used", fit)
    (kept,) = tmp_path.rglob("*.released")
    assert kept.stat().st_mode & 0o077 == 0
    _, arrays, _ = Kept(kept, durable=False).find(0)

    def asked(*_):
        raise AssertionError("a value that is there was asked for again")

    monkeypatch.setattr(LocalRuntime, "sum", asked)
    synth = fit(resume=True)
    other = FedInfer(SCHEMA)
    monkeypatch.undo()
    monkeypatch.setattr(Door, "sum", lambda *_: Released(arrays["value"], 3, 3))
    other.fit(owners(20, 20, 20), Budget(epsilon=1.0, trust=trust))
    np.testing.assert_equal(pack(synth.learned)[0], pack(other.learned)[0])


def test_a_training_goes_on_with_all_its_rounds(tmp_path, monkeypatch):
    """They used to be lost since the last checkpoint; the generator is that of no interruption."""
    options = {"checkpoint_every": 100, "insecure_noise_seed": 3}
    whole = synth().fit(owners(30, 30), BUDGET, **options)
    with pytest.raises(Crash):
        synth().fit(
            owners(30, 30), BUDGET, folder=tmp_path, progress=crash_at("training", 9), **options
        )
    gc.collect()
    answered = []
    genuine = LocalRuntime.sum
    monkeypatch.setattr(
        LocalRuntime, "sum", lambda self, *asked: answered.append(1) or genuine(self, *asked)
    )
    made = synth().fit(owners(30, 30), BUDGET, folder=tmp_path, resume=True, **options)
    assert not answered
    np.testing.assert_array_equal(made.learned.theta, whole.learned.theta)


def test_a_round_that_leaves_something_at_its_clients_is_not_made_twice(tmp_path, monkeypatch):
    """A private encoder moved with it, so a second answer would be a second release."""
    budget = Budget(epsilon=1.0)

    def fit(**resume):
        return synth(encoder="private", rounds=2).fit(owners(30), budget, folder=tmp_path, **resume)

    sums = iter(range(9))
    genuine = Kept.keep
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):

        def third(self, *given):
            if next(sums) == 2:
                raise KeyboardInterrupt
            genuine(self, *given)

        broken.setattr(Kept, "keep", third)
        fit()
    gc.collect()
    asked = []
    genuine_sum = LocalRuntime.sum
    monkeypatch.setattr(
        LocalRuntime,
        "sum",
        lambda self, request, cohort: (
            asked.append(request.round) or genuine_sum(self, request, cohort)
        ),
    )
    made = fit(resume=True)
    # The round that was lost is the third of four; the last is asked in its stead.
    assert asked == [3] and len(made.ledger.events) == 4


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def fit(**resume):
        return FedInfer(SCHEMA).fit(owners(20, 20, 20), BUDGET, folder=tmp_path, **resume)

    for module, name in ((kept_module.os, "pwrite"), (fitting, "write_whole")):
        with monkeypatch.context() as broken:
            broken.setattr(module, name, full)
            with pytest.raises(MachineError, match=r"No space left on device.*[rR]esume"):
                fit(resume=bool(list(tmp_path.iterdir())))
        gc.collect()
    made = fit(resume=True)
    assert len(made.ledger.events) == 1


def test_a_message_of_too_few_clients_is_asked_again_once_they_are_back(tmp_path, monkeypatch):
    """Secure aggregation opens no sum that lacks noise, so nothing was released."""
    with monkeypatch.context() as broken:
        answering(broken, 1)
        with pytest.raises(FederationError, match="under the charge that it has"):
            FedInfer(SCHEMA).fit(owners(20, 20, 20), BUDGET, folder=tmp_path)
    gc.collect()
    made = FedInfer(SCHEMA).fit(owners(20, 20, 20), BUDGET, folder=tmp_path, resume=True)
    assert len(made.ledger.events) == 1


def test_a_message_that_is_lost_for_good_is_said_to_be(tmp_path, monkeypatch):
    stopped(
        monkeypatch,
        "released, not kept",
        lambda: FedInfer(SCHEMA).fit(owners(20, 20, 20), BUDGET, folder=tmp_path),
    )
    (kept,) = tmp_path.rglob("*.released")
    kept.unlink()
    with pytest.raises(PrivacyError, match="nothing to resume"):
        FedInfer(SCHEMA).fit(owners(20, 20, 20), BUDGET, folder=tmp_path, resume=True)
