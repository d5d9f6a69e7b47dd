"""What a report's content, as JSON has it, says of itself: its facts, and why a part is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from fedsynth.errors import ConfigError
from fedsynth.evaluation.report.wording import sentence

Content = Mapping[str, Any]

FORMAT = 1

_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_ATTACKS = frozenset({"membership", "risks", "attributes"})


def check(content: object) -> None:
    """Refuse what is no report.

    Raises:
        ConfigError: content of another format, a figure that JSON has no word for (NaN must be
            null), a value that is no JSON, or a picture that is not embedded.
    """
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, Mapping) else type(content).__name__
        raise ConfigError(
            f"the report's content has format {given!r}; this fedsynth reads format {FORMAT}"
        )
    _check_json(content, "report")
    grid = (content.get("images") or {}).get("grid") or {}
    for key, picture in grid.items():
        if picture is not None and not _PICTURE.fullmatch(str(picture)):
            raise ConfigError(
                f"report.images.grid.{key} is no embedded picture; give a data:image/png;base64 URL"
            )


def _check_json(value: object, where: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"{where} is {value}, which JSON cannot hold; put null in its place")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _check_json(each, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            if type(each) is not float or not math.isfinite(each):
                _check_json(each, f"{where}[{index}]")
    else:
        raise ConfigError(f"{where} is a {type(value).__name__}, which JSON cannot hold")


def reason(content: Content, key: str) -> str:
    """Why a part is missing: what the run noted under its key, else what the data make plain."""
    texts = (content.get("reasons") or {}).get(key)
    if texts:
        return " ".join(sentence(text) for text in texts)
    plain = _plain_reason(content, key)
    if not plain and key in _ATTACKS and (content.get("privacy") or {}).get("skipped"):
        return "See “Attacks that were not run” below."
    return plain or "The run recorded no reason for it."


def _plain_reason(content: Content, key: str) -> str | None:
    data = content.get("data") or {}
    if key == "errors":
        return (
            "Releases of aim, mst and privbayes tell how far counts may be off: to `fedsynth "
            "evaluate RELEASE`, and to evaluate(load(RELEASE), real=..)."
        )
    if key in {"fidelity", "columns", "pairs", "marginals"} and data.get("kind") == "image":
        return "The data are images, which have no columns to compare one by one."
    if key == "coherence" and data.get("columns") == 1:
        return "There is one column."
    if key == "utility" and data.get("kind") == "image" and content.get("images"):
        return "What a network learns from the images stands under “Images”."
    if key == "utility" and not data.get("target"):
        return "No target was named, so there is nothing to predict."
    if key == "curves" and (data.get("task") == "regression" or data.get("kind") == "image"):
        return "A ROC curve needs a target of two classes."
    if key in {"risks", "attributes"} and data.get("kind") == "image":
        return "The attack is one on tables, and the data are images."
    if key in {*_ATTACKS, "neighbours"} and (data.get("rows") or {}).get("train") is None:
        return "It needs the rows that the generator learned from, and they were not given."
    if key == "anonymity":
        return (
            "No columns were named that somebody may know a person by (quasi-identifiers), as age "
            "and place of living."
        )
    if key == "clients":
        return "The rows were not scored at the clients."
    return None


def others(content: Content) -> str:
    """The rows that stand in place of the synthetic ones: what `real` figures are of."""
    rows = (content.get("data") or {}).get("rows") or {}
    return "other real rows" if rows.get("train") is None else "real training rows"


def is_void(certificate: Content) -> bool:
    """Whether nothing is guaranteed, whatever epsilon was reckoned: the sentence says so."""
    return str(certificate.get("sentence") or "").startswith("Void")
