"""The section on what models learn from synthetic rows."""

from __future__ import annotations

from fedsynth.evaluation.report.charts.bars import axis, bars
from fedsynth.evaluation.report.charts.curves import Curve, roc, scatter
from fedsynth.evaluation.report.charts.drawing import Scale, legend, spread
from fedsynth.evaluation.report.content import Content, reason
from fedsynth.evaluation.report.layout import (
    Part,
    Section,
    absent,
    figure,
    lede,
    part,
    section,
    several,
    table,
)
from fedsynth.evaluation.report.wording import (
    DASH,
    capital,
    count,
    interval,
    known,
    metric_name,
    metric_value,
    score,
    seconds,
)
from fedsynth.markup import Html, name, tag

_SOURCES = ("synthetic", "real", "augmented")
_TITLES = {"synthetic": "Synthetic", "real": "Real", "augmented": "Both"}


def utility_section(content: Content) -> Section:
    """Models trained on synthetic rows and scored on real ones, against the alternatives."""
    utility = content.get("utility")
    title = "Utility: what do models learn from the rows?"
    if not utility:
        return section("utility", "Utility", title, absent("Utility", reason(content, "utility")))
    body = [_models(utility), _agreement(content), _curves(content)]
    return section("utility", "Utility", title, *body)


def _models(utility: Content) -> Part:
    primary, models = utility.get("primary") or "score", utility.get("models") or []
    words = lede(
        "Models are trained on synthetic rows, on real rows, or on both, to predict ",
        name(utility.get("target") or "the target", 60),
        ", and all are scored on real rows that none of them saw. Bars show ",
        f"{metric_name(primary)}, from the best trivial baseline, which learns nothing: the "
        "longer, the more was learned.",
    )
    kinds = [kind for kind in _SOURCES if any(model.get(kind) for model in models)]
    body = [words, legend(*kinds), _bars(utility, kinds), _everything(utility, kinds)]
    return part("models", "Trained on synthetic, tested on real", *body, link="Models")


def _bars(utility: Content, kinds: list[str]) -> Html:
    primary, models = utility.get("primary"), utility.get("models") or []
    origin, scale = _range(utility)
    rows = []
    for model in models:
        values = [(kind, (model.get(kind) or {}).get(primary)) for kind in kinds]
        said = ", ".join(f"{_TITLES[kind].lower()} {score(value)}" for kind, value in values)
        chart = bars(values, scale, origin, f"{model.get('name')}: {said}")
        title = capital(str(model.get("name")))
        rows.append([title, chart, *(score(v) for _, v in values), _kept(model, utility)])
    for base in utility.get("baselines") or []:
        value = (base.get("scores") or {}).get(primary)
        chart = bars([("trivial", value)], scale, origin, f"{base.get('name')}: {score(value)}")
        title = tag("span", "Trivial: ", base.get("name"), class_="quiet")
        rows.append([title, chart, score(value), *[""] * len(kinds)])
    head = ["Model", axis(scale), *(_TITLES[kind] for kind in kinds), "Kept"]
    table_ = table(f"Models by {metric_name(str(primary))}", head, rows, texts=(1,))
    note = (
        "“Kept” is the part of what real rows taught, above the trivial baseline, that synthetic "
    )
    return tag("div", table_, tag("p", f"{note}rows taught too.", class_="quiet"))


def _range(utility: Content) -> tuple[float, Scale]:
    """Where bars start, and their scale: R2 far below 0 is cut off at -1."""
    primary = utility.get("primary")
    bases = [(b.get("scores") or {}).get(primary) for b in utility.get("baselines") or []]
    scores = [
        (model.get(kind) or {}).get(primary)
        for model in utility.get("models") or []
        for kind in _SOURCES
    ]
    origin = max([value for value in bases if known(value)], default=0.0)
    low, high = spread([*bases, *scores, origin])
    return origin, Scale(max(low, -1.0), min(max(high, origin + 0.01), 1.0), 6, 220)


def _kept(model: Content, utility: Content) -> str:
    """Share of the gain over the best trivial baseline that synthetic rows keep."""
    origin, _ = _range(utility)
    primary = utility.get("primary")
    ours, theirs = ((model.get(kind) or {}).get(primary) for kind in ("synthetic", "real"))
    if not known(ours) or not known(theirs) or theirs - origin < 0.01:
        return DASH
    return f"{(ours - origin) / (theirs - origin) * 100:.0f}\u202f%".replace("-", "\u2212")


def _everything(utility: Content, kinds: list[str]) -> Html:
    """All metrics, for whoever wants them."""
    metrics, rows = utility.get("metrics") or [], []
    for model in utility.get("models") or []:
        used = model.get("rows") or {}
        for kind in kinds:
            scores = model.get(kind)
            if not scores:
                continue
            number = count(used.get(kind)) if kind in used else DASH
            rows.append(
                [capital(str(model.get("name"))), _TITLES[kind], number]
                + [metric_value(metric, scores.get(metric)) for metric in metrics]
                + [seconds(model.get("seconds")) if kind == kinds[0] else ""]
            )
    for base in utility.get("baselines") or []:
        scores = base.get("scores") or {}
        rows.append(
            [capital(str(base.get("name"))), "Trivial", DASH]
            + [metric_value(metric, scores.get(metric)) for metric in metrics]
            + [""]
        )
    head = ["Model", "Trained on", "Rows", *(capital(metric_name(m)) for m in metrics), "Seconds"]
    caption = "All metrics of all models"
    shown = table(caption, head, rows, texts=(1,))
    return tag("details", tag("summary", caption), shown, class_="block")


def _curves(content: Content) -> Part | Html:
    utility = content.get("utility") or {}
    curves, models = utility.get("curves"), utility.get("models") or []
    if not curves:
        return absent("ROC curves", reason(content, "curves"))
    drawn = [
        Curve(f"trained on {kind} rows", kind, curves[kind]["fpr"], curves[kind]["tpr"])
        for kind in ("real", "synthetic")
        if curves.get(kind)
    ]
    first = str(models[0].get("name")) if models else "the first model"
    areas = ", ".join(
        f"trained on {kind} rows {score((models[0].get(kind) or {}).get('auroc'))}"
        for kind in ("synthetic", "real")
        if models
    )
    chart = roc(drawn, f"ROC curves of {first}, tested on real rows. AUROC: {areas or DASH}")
    words = (
        f"{capital(first)}, tested on real rows. The closer to the upper left corner, the better."
    )
    keys = legend("synthetic", "real", lines=True, synthetic="trained on synthetic", real="on real")
    title = "ROC curves"
    return part("curves", title, lede(words), keys, figure(chart), link=title)


def _agreement(content: Content) -> Part | Html:
    agreement = (content.get("utility") or {}).get("agreement") or {}
    groups = [
        (title, agreement[key])
        for key, title in (("classifiers", "Models"), ("settings", "Settings of a model"))
        if agreement.get(key)
    ]
    if not groups:
        return absent("Rank agreement", reason(content, "agreement"))
    words = (
        "Whoever picks the best model on synthetic rows alone, would they pick the same on real "
        "rows? Rank correlation 1: the same order; 0: no relation. The dotted line is equality."
    )
    charts = several(_scatter(title, group) for title, group in groups)
    return part("agreement", "Rank agreement", lede(words), charts, link="Agreement")


def _scatter(title: str, group: Content) -> Html:
    value = score(group.get("spearman"), 2)
    ends = interval(group.get("low"), group.get("high"), 2)
    within = f", 95 % interval {ends}" if ends != DASH else ""
    said = f"{title}: Spearman {value}{within}, {count(group.get('n'))} compared"
    return figure(
        scatter(group, f"{said}. Scores on synthetic rows alone, against real ones"), said
    )
