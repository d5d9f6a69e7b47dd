"""Results as JSON can hold them, and lines for a terminal."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from fedsynth.views import clean, wrap


def make_jsonable(content: Any) -> Any:
    """The content with Python's own numbers, lists and dictionaries.

    JSON has neither NaN nor infinity: None stands for both.
    """
    if isinstance(content, Mapping):
        return {str(key): make_jsonable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [make_jsonable(value) for value in content]
    # Told by its module, since importing NumPy would slow down every command.
    if type(content).__module__ == "numpy":
        return make_jsonable(content.tolist())
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def spell_infinite(content: Any) -> Any:
    """The same with "inf" for what JSON cannot hold."""
    if isinstance(content, Mapping):
        return {key: spell_infinite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [spell_infinite(value) for value in content]
    if isinstance(content, float) and math.isinf(content):
        return "inf"
    return content


def round_up(value: float, digits: int) -> str:
    """A bound in so many significant digits that it still holds, as `3.01` for 3.001 in three."""
    # What sums of floating numbers leave in their last digits is no reason for the next one.
    exact = Decimal(value) * (1 - Decimal("1e-12"))
    held = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(exact)
    return f"{float(held):.{digits}g}"


def hash_plain(content: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of plain content, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def print_note(text: object) -> None:
    """Print a line on stderr; what strangers wrote in it rules no terminal."""
    print(wrap(clean(text)), file=sys.stderr)


def print_json(content: object) -> None:
    """Print on stdout what `make_jsonable` makes of the content."""
    print(json.dumps(make_jsonable(content), indent=2, allow_nan=False))
