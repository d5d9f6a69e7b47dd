"""The first screen: each sentence and figure by hand, each warning by its cause alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fedsynth.evaluation.attacks.inference import Attribute
from fedsynth.evaluation.attacks.membership import MembershipAttack, Rate, can_alarm
from fedsynth.evaluation.attacks.neighbours import Neighbours
from fedsynth.evaluation.attacks.risks import Risk
from fedsynth.evaluation.attacks.suite import Privacy
from fedsynth.evaluation.findings.results import Results, share_of_gain, successful_attacks
from fedsynth.evaluation.findings.summary import summarise
from fedsynth.evaluation.measures.coherence import Coherence, Mismatch
from fedsynth.evaluation.measures.fidelity import Marginal
from fedsynth.evaluation.measures.images import ClassRecall, ImageFidelity
from fedsynth.evaluation.reading.confidence import ALARM


def useful(synthetic=0.8, real=0.9, guess=0.5, shuffled=0.6, primary="auroc", rho=1.0, high=None):
    """What a summary reads of a utility."""
    model = SimpleNamespace(name="boosting", synthetic={primary: synthetic}, real={primary: real})
    other = SimpleNamespace(name="other", synthetic={primary: 0.1}, real={primary: 0.2})
    bases = [SimpleNamespace(scores={primary: guess}), SimpleNamespace(scores={primary: shuffled})]
    return SimpleNamespace(
        models=(model, other),
        primary=primary,
        target="income",
        baselines=tuple(bases),
        agreement=SimpleNamespace(
            classifiers=SimpleNamespace(spearman=rho, high=rho if high is None else high)
        ),
    )


def column(name, score=0.9, real=0.95, outside=0.0):
    return SimpleNamespace(name=name, score=score, real=real, outside=outside)


def marginal(order, mean, real, trivial):
    return Marginal(order, mean, 0.5, ("a",) * order, 3, real, trivial)


def alike(columns=(), orders=3, told=True, coherent=None):
    attempts = (
        SimpleNamespace(auroc=0.9, real=0.8),
        SimpleNamespace(auroc=0.7, real=0.52),
    )
    marginals = [
        marginal(1, 0.01, 0.005, 0.005),
        marginal(2, 0.04, 0.02, 0.3),
        marginal(3, 0.2, 0.1, 0.6),
    ]
    return SimpleNamespace(
        columns=tuple(columns),
        marginals=tuple(marginals[:orders]),
        coherence=coherent,
        detection=attempts if told else (),
        distinguished=0.98,
    )


def senseless(share, declared=None):
    worst = Mismatch(("who", "sex"), (), 1, share, 0.015, 0.4, ("wife", "man"), 0.02)
    return Coherence(share, 0.015, 0.4, declared, 1, 3, (worst,))


def attack(name, found=False, auroc=0.51, members=100, others=100, low=0.4):
    rates = (Rate(0.001, 0.0, 0.0, 0.1), Rate(0.01, 0.0, 0.0, 0.1))
    curve: dict[str, list[float]] = {"fpr": [], "tpr": []}
    return MembershipAttack(name, found, "", auroc, low, 0.6, rates, members, others, curve)


def risk(name, column=None, found=False):
    return Risk(name, column, found, "", 0.0, 0.0, 0.1, 0.1, 0.1, 0.1, True, 100)


def attribute(column, found=False):
    return Attribute(column, found, "", 0.5, 0.5, 0.5, 0.5, 0.0, -0.1, 0.1, 100)


def near(train, expected):
    copies = {"train": train, "real": 0.0, "expected": expected}
    return Neighbours(copies, {}, {}, {})


SAFE = Privacy(membership=(attack("density ratio"), attack("nearest row", auroc=0.53)))
GOOD = Results(alike([column("age")]), useful(), None, SAFE, tested=1000)
PICTURES = ImageFidelity(
    student={"synthetic": 0.8, "real": 0.95, "majority": 0.12},
    classes=(
        ClassRecall("0", 0.9, 0.97),
        ClassRecall("1", 0.4, 0.9),
        ClassRecall("2", None, None),
    ),
    grid={},
    pixels={"mean_error": 0.03, "deviation_error": 0.05},
    notes=(),
)
IMAGES = Results(None, None, PICTURES, SAFE)


def told(found=GOOD, *, public=True, epsilon=1.0, certified=True):
    return summarise(found, public=public, epsilon=epsilon, certified=certified)


def with_utility(**options):
    return replace(GOOD, utility=useful(**options))


def test_kept_is_the_share_of_what_real_rows_teach_beyond_guessing():
    assert share_of_gain(useful(0.8, 0.9, 0.5, 0.6)) == pytest.approx(2 / 3)
    assert share_of_gain(useful(0.8, 0.9, 0.7, None)) == pytest.approx(1 / 2)
    assert share_of_gain(useful(0.5, 0.9, 0.5, 0.6)) == pytest.approx(-1 / 3)
    assert share_of_gain(useful(0.95, 0.9, 0.5, 0.5)) == pytest.approx(1.125)
    assert share_of_gain(useful(0.611, 0.611, 0.5, 0.6)) == pytest.approx(1)
    for unknown in (
        useful(0.7, 0.609, 0.5, 0.6),
        useful(None, 0.9),
        useful(0.9, None),
        useful(0.9, 0.9, None, None),
    ):
        assert share_of_gain(unknown) is None


@pytest.mark.parametrize(
    ("synthetic", "words"),
    [
        (1.0, "Models learn as much from these rows as from real ones"),
        (0.971, "Models learn as much from these rows as from real ones"),
        (0.969, "Models learn nearly as much from these rows as from real ones"),
        (0.901, "Models learn nearly as much from these rows as from real ones"),
        (0.899, "Models learn from these rows most of what real ones teach"),
        (0.701, "Models learn from these rows most of what real ones teach"),
        (0.699, "Models learn from these rows a part of what real ones teach"),
        (0.301, "Models learn from these rows a part of what real ones teach"),
        (0.299, "Models learn little from these rows"),
        (-4.0, "Models learn little from these rows"),
    ],
)
def test_each_band_has_its_words(synthetic, words):
    """Between 0 and 1 the score itself is the share kept."""
    verdict = told(with_utility(synthetic=synthetic, real=1.0, guess=0.0, shuffled=0.0)).verdict
    assert verdict.startswith(f"{words} (AUROC {synthetic:.3f} against 1.000).")


def test_the_verdict_word_for_word():
    assert told().verdict == (
        "Models learn from these rows a part of what real ones teach (AUROC 0.800 against 0.900). "
        "Pairs of columns are off by 4.0%, where other real rows are off by 2.0%. "
        "No attack told training rows from others."
    )
    assert "R2 0.800 against" in told(with_utility(primary="r2")).verdict
    nothing = told(with_utility(real=0.6)).verdict
    assert nothing.startswith("Whether models learn from these rows cannot be told")
    assert told(replace(GOOD, utility=None)).verdict.startswith("Pairs of columns are off by")
    one = replace(GOOD, utility=None, fidelity=alike(orders=1))
    assert told(one).verdict.startswith("The column is off by 1.0%, where other real rows are off")
    assert told(IMAGES).verdict == (
        "A network trained on these images reads 80.0% of real ones right, against 95.0% after "
        "real ones. No attack told training rows from others."
    )
    unlabelled = replace(IMAGES, images=replace(PICTURES, student=None, classes=()))
    assert told(unlabelled).verdict == "No attack told training rows from others."


def test_an_attack_that_found_something_comes_first():
    one = Privacy(membership=(attack("density ratio", found=True), attack("nearest row")))
    verdict = told(replace(GOOD, privacy=one)).verdict
    assert verdict.startswith(
        "Do not hand these rows out: one attack tells training rows from others. Models learn"
    )
    assert "No attack" not in verdict
    two = replace(one, risks=(risk("linkability", found=True),))
    assert "2 attacks tell training rows" in told(replace(GOOD, privacy=two)).verdict


def test_attacks_are_named_with_their_columns():
    privacy = Privacy(
        membership=(attack("density ratio", found=True), attack("nearest row")),
        risks=(
            risk("singling out, one column", found=True),
            risk("linkability"),
            risk("inference", "age", found=True),
        ),
        attributes=tuple(
            attribute(name, found=name != "income") for name in ("age", "sex", "income")
        ),
    )
    names = [
        "membership, density ratio",
        "singling out, one column",
        "inference of age",
        "attribute sex",
    ]
    assert successful_attacks(privacy) == names
    line = "Training rows can be told from others by: " + "; ".join(names) + "."
    assert told(replace(GOOD, privacy=privacy)).beware == (line,)


def test_silence_is_explained_by_what_was_run():
    def ends(privacy):
        return told(replace(GOOD, privacy=privacy)).verdict

    assert "No attack was run, so nothing is known here" in ends(Privacy())
    assert ends(Privacy(risks=(risk("linkability"),))).endswith(
        "nothing is known of what they give away."
    )
    few = Privacy(membership=(attack("nearest row", members=5, others=5),))
    assert "So few rows could raise no alarm" in ends(few)
    assert "No attack told" not in ends(few)
    mixed = Privacy(membership=(*few.membership, attack("density ratio")))
    assert ends(mixed).endswith("No attack told training rows from others.")


def test_an_interval_that_leaves_guessing_out_is_a_weak_signal():
    weak = Privacy(membership=(attack("nearest row", auroc=0.53, low=0.501), attack("other")))
    found = told(changed(privacy=weak))
    # One of forty does so by chance: that is no verdict.
    assert found.verdict.endswith("No attack told training rows from others.")
    (line,) = found.beware
    assert line.startswith("A weak signal: membership, nearest row, has an AUROC of 0.530")
    caught = Privacy(membership=(attack("nearest row", True, auroc=0.9, low=0.8),))
    assert not any("weak" in line for line in told(changed(privacy=caught)).beware)


def test_rows_that_are_told_from_real_ones_are_so_in_the_verdict_with_the_column_furthest_off():
    off = alike([column("age", 0.85), column("visits", 0.8, 0.99)])
    edge = replace_last(off, 0.9)
    assert "tells them from real" not in told(changed(fidelity=edge)).verdict
    verdict = told(changed(fidelity=replace_last(off, 0.951))).verdict
    assert "(AUROC 0.951); the column furthest off is visits." in verdict


def replace_last(fidelity, auroc):
    """The same with another figure of the last classifier's."""
    last = SimpleNamespace(auroc=auroc, real=0.5)
    return SimpleNamespace(**{**vars(fidelity), "detection": (*fidelity.detection[:-1], last)})


def test_few_rows_raise_no_alarm():
    """A perfect attack on 7 and 7 rows has p = 1 / C(14, 7) = 1 / 3432."""
    assert ALARM == 0.001 and can_alarm(7, 7) and not can_alarm(6, 7)
    assert not can_alarm(1, 2998) and can_alarm(1, 2999)


def test_headlines_of_a_table():
    utility, pairs, boosting, membership = told().headlines
    assert (utility.name, utility.better, utility.low, utility.high) == (
        "AUROC on real rows",
        "higher",
        0,
        1,
    )
    assert (utility.value, utility.real, utility.trivial) == (0.8, 0.9, 0.6)
    assert "boosting" in utility.meaning and "income" in utility.meaning
    assert (pairs.name, pairs.better) == ("Error of pairs of columns", "lower")
    assert (pairs.value, pairs.real, pairs.trivial) == (0.04, 0.02, 0.3)
    assert (boosting.name, boosting.better, boosting.low) == ("Told from real rows", "lower", 0.5)
    assert (boosting.value, boosting.real, boosting.trivial) == (0.7, 0.52, 0.98)
    assert (membership.name, membership.better) == ("Membership attack", "lower")
    assert (membership.value, membership.real, membership.trivial) == (0.53, 0.5, None)


def test_headlines_without_a_figure():
    bare = Results(alike(orders=1, told=False), None, None, Privacy(), "No target.")
    utility, column_error, boosting, membership = told(bare).headlines
    assert (utility.value, utility.real, utility.trivial) == (None, None, None)
    assert utility.meaning == "No target."
    assert (column_error.name, column_error.value) == ("Error of the column", 0.01)
    assert (boosting.value, boosting.real) == (None, None)
    assert (membership.value, membership.real, membership.trivial) == (None, None, None)


def test_headlines_of_images():
    student, worst, pixels, membership = told(IMAGES).headlines
    assert (student.value, student.real, student.trivial) == (0.8, 0.95, 0.12)
    assert (worst.value, worst.real, worst.trivial) == (0.4, 0.9, 0.0)
    assert worst.meaning.startswith("Recall of 1,")
    assert (pixels.value, pixels.better) == (0.03, "lower")
    assert membership.value == 0.53
    bare = told(replace(IMAGES, images=replace(PICTURES, student=None, classes=()))).headlines
    assert [one.value for one in bare] == [None, None, 0.03, 0.53]


def test_nothing_to_beware_of():
    assert told().beware == () and told(IMAGES).beware == ()


def changed(**parts):
    return replace(GOOD, **parts)


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({"public": False}, "This report was computed on private rows"),
        ({"certified": False, "epsilon": None}, "No certificate: "),
        ({"epsilon": None}, "No finite epsilon is guaranteed"),
        ({"epsilon": 10.1}, "An epsilon of 10.1 limits next to nothing"),
        ({"found": with_utility(synthetic=0.74)}, "Models keep 47% of what real rows teach"),
        ({"found": with_utility(synthetic=0.1)}, "Models keep 0% of what"),
        ({"found": with_utility(rho=0.49, high=0.79)}, "Do not choose models on these rows"),
        ({"found": changed(fidelity=alike([column("age", 0.79)]))}, "Columns far from the real"),
        (
            {"found": changed(fidelity=alike([column("age", outside=0.01)]))},
            "Columns with values that the schema does not allow: age.",
        ),
        (
            {"found": changed(fidelity=alike([column("age")], coherent=senseless(0.031)))},
            "3.1% of the rows hold two values that hardly go together in real rows (1.5% of these "
            "do): most of all who and sex, such as who wife with sex man in 2.0%.",
        ),
        (
            {"found": changed(fidelity=alike([column("age")], coherent=senseless(0.03, 0.01)))},
            "1.0% of the rows break a constraint of the schema.",
        ),
        (
            {"found": changed(privacy=replace(SAFE, neighbours=near(0.03, 0.01)))},
            "3.0% of the synthetic rows equal a training row; of other real rows 1.0% do.",
        ),
    ],
)
def test_each_warning_has_its_cause_alone(options, start):
    (line,) = told(**options).beware
    assert line.startswith(start)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 10.0},
        {"found": with_utility(synthetic=0.75)},
        {"found": with_utility(rho=0.1, high=0.8)},
        {"found": with_utility(rho=None)},
        {"found": changed(fidelity=alike([column("age", 0.8)]))},
        {"found": changed(fidelity=alike([column("age")], coherent=senseless(0.03, 0.0)))},
        {"found": changed(fidelity=alike([column("age", 0.7, real=0.7)]))},
        {"found": changed(privacy=replace(SAFE, neighbours=near(0.02, 0.01)))},
        {"found": changed(privacy=replace(SAFE, neighbours=near(0.01, 0.0)))},
    ],
)
def test_at_the_edge_there_is_no_warning(options):
    assert told(**options).beware == ()


def test_many_columns_are_cut_short():
    poor = [column(f"c{k}", 0.1) for k in range(10)]
    (line,) = told(changed(fidelity=alike(poor))).beware
    assert line == "Columns far from the real ones: c0, c1, c2, c3, c4, c5, c6, c7 and 2 more."
    (line,) = told(changed(fidelity=alike(poor[:8]))).beware
    assert line.endswith("c6, c7.")


def test_few_real_rows_give_no_verdict_on_models():
    assert "too few real rows (49)" in told(replace(GOOD, tested=49)).verdict
    assert "cannot be told" not in told(replace(GOOD, tested=50)).verdict


def test_a_score_that_is_not_defined_is_no_score_of_zero():
    assert "AUROC is not defined" in told(with_utility(real=None)).verdict
    assert "real ones teach them nothing" in told(with_utility(real=0.6)).verdict


def test_real_rows_among_the_training_rows_silence_the_comfort():
    found = told(replace(GOOD, shared="Many are shared."))
    assert found.beware == ("Many are shared.",)
    assert "No attack told" not in found.verdict and "say nothing" in found.verdict
