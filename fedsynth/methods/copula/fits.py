"""Many features fitted side by side, in processes of their own.

Fitting is Python calling small array functions, so threads would wait for each other. The processes
are started afresh rather than forked: a fork of a process in which torch has run may hang, and
Python's own pools run the caller's script again.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from fedsynth.federation.client.progress import advance
from fedsynth.files import module_path
from fedsynth.methods.copula.families import (
    LARGEST,
    POINT,
    Effort,
    Fit,
    Floats,
    Outcome,
    fit_feature,
    parameters_of,
    thin,
)

# Features for which a process pays: it takes about a second to start, a feature a tenth.
_FEATURES_A_PROCESS = 24

_ALONE = (
    "a process that was to fit {} columns beside this one could not be started, or gave no answer "
    "that can be read: they are fitted here, to the same result, which takes longer"
)


def fit_features(
    features: Sequence[Floats], effort: Effort, processes: int | None = None
) -> list[Outcome]:
    """:func:`~fedsynth.methods.copula.families.fit_feature` of each, whatever the processes.

    Args:
        features: finite values, [n] each.
        processes: this one included; by default the processors that this one may use, at most the
            number in OMP_NUM_THREADS, and one for few features.
    """
    reduced = [thin(np.sort(values), effort.points) for values in features]
    hard = [k for k, points in enumerate(reduced) if len(points) and points[0] != points[-1]]
    count = _processors() if processes is None else processes
    if processes is None:
        count = min(count, len(hard) // _FEATURES_A_PROCESS)
    count = max(1, min(count, len(hard)))
    outcomes = dict(zip(hard, _spread([reduced[k] for k in hard], effort, count), strict=True))
    return [
        outcomes[k] if k in outcomes else fit_feature(points, effort)
        for k, points in enumerate(reduced)
    ]


def _processors() -> int:
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return min(there, int(threads)) if threads.isdigit() and int(threads) > 0 else there


def _spread(features: Sequence[Floats], effort: Effort, count: int) -> list[Outcome]:
    """This process takes a share itself, and that of one which fails to answer."""
    outcomes: list[Outcome | None] = [None] * len(features)
    helpers = [_start(features[k::count], effort) for k in range(1, count)]
    try:
        outcomes[0::count] = [_fit(values, effort, count) for values in features[0::count]]
        for k, helper in enumerate(helpers, start=1):
            share = features[k::count]
            found = _read_outcomes(helper, len(share))
            if not found:
                warnings.warn(_ALONE.format(len(share)), stacklevel=2)
                found = [fit_feature(values, effort) for values in share]
            outcomes[k::count] = found
    finally:
        for helper in helpers:
            if helper is not None:
                helper.kill()
                helper.wait()
    return [one for one in outcomes if one is not None]


def _fit(values: Floats, effort: Effort, count: int) -> Outcome:
    """One of this process's features, which stands for as many as there are processes."""
    outcome = fit_feature(values, effort)
    advance(count)
    return outcome


def _start(share: Sequence[Floats], effort: Effort) -> subprocess.Popen[bytes] | None:
    """A process that fits a share, or None where none can be started."""
    body = io.BytesIO()
    np.savez(body, *share, effort=astuple(effort))
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(module_path()),
    }
    try:
        # -P: else the working directory would come first, and a numpy.py there would be run with
        # an owner's values before it.
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError:
        return None
    try:
        assert helper.stdin is not None
        helper.stdin.write(body.getvalue())
        helper.stdin.close()
    except OSError:
        helper.kill()
        helper.wait()
        return None
    return helper


def _read_outcomes(helper: subprocess.Popen[bytes] | None, count: int) -> list[Outcome]:
    """What a process found, nothing where it did not answer in full."""
    if helper is None or helper.stdout is None:
        return []
    body = helper.stdout.read()
    helper.stdout.close()
    if helper.wait() != 0:
        return []
    try:
        outcomes = [_parse(plain) for plain in json.loads(body)]
    except (ValueError, TypeError, RecursionError):
        return []
    return outcomes if len(outcomes) == count else []


def _to_plain(outcome: Outcome) -> list[object]:
    fit = outcome.fit
    fields = None if fit is None else [fit.family, list(fit.parameters), fit.statistic]
    return [fields, list(outcome.failed)]


def _parse(plain: Any) -> Outcome:
    """The inverse of :func:`_to_plain`. Raises ValueError or TypeError for what is none of its."""
    fields, failed = plain
    if not isinstance(failed, list) or not all(_is_family(one) for one in failed):
        raise ValueError("no families")
    if fields is None:
        return Outcome(None, tuple(failed))
    family, parameters, statistic = fields
    values = tuple(map(float, parameters))
    fits = _is_family(family) and len(values) == parameters_of(family)
    if not (fits and all(abs(x) <= LARGEST for x in values) and 0 <= float(statistic) <= 1):
        raise ValueError("no fit")
    return Outcome(Fit(family, values, float(statistic)), tuple(failed))


def _is_family(value: object) -> bool:
    return type(value) is int and 0 <= value <= POINT


def _main() -> None:
    """Fit the features on standard input; answer on standard output."""
    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as content:
        effort = Effort(*(int(number) for number in content["effort"]))
        features = [content[f"arr_{k}"] for k in range(len(content.files) - 1)]
    sys.stdout.write(json.dumps([_to_plain(fit_feature(values, effort)) for values in features]))


if __name__ == "__main__":
    _main()
