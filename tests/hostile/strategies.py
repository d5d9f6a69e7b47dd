"""Files as strangers may write them: what is right, changed here and there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fedsynth.yaml_files import yaml_text
from tests.hostile.mutations import VALUES, changed, leaves

_VALUES = st.sampled_from(
    [*VALUES, "2020-01-01", {"from": 1, "to": 0}, [1.5, "a", None, True], 10**11, "red", "age"]
)
_PIECES = st.sampled_from(
    [
        *("null", "true", "-1", "1e400", ".inf", ".nan", "9" * 400, "9" * 5000, "''", "[]", "{}"),
        *("&a ", "*a", "&a [*a]", "!!set ", "!!int z", "!!binary x", "!a ", "? ", "<<: ", "|\n"),
        *("- ", "\t", "\x00", "\x1b[31m", "\u2028", "\ufeff", "\x85", "[" * 200, "{" * 200, '"'),
        *("'", "#", "%", "\\", ",", ";", "\r", "\n", ": ", "{a: [}", "'\\0'", "x" * 5000, "=1+1"),
    ]
)


@st.composite
def edited(draw: Any, plain: Any) -> Any:
    """Plain content with up to three things changed, left out or added."""
    for _ in range(draw(st.integers(1, 3))):
        paths = list(leaves(plain))
        if not paths:
            return plain
        path = draw(st.sampled_from(paths))
        value = draw(_VALUES | st.sampled_from(paths).map(lambda p: p[-1]))
        gone = draw(st.integers(0, 3)) == 0
        plain = changed(plain, path) if gone else changed(plain, path, value)
    return plain


@st.composite
def mangled(draw: Any, text: str) -> str:
    """A text with pieces put in, taken out and doubled."""
    for _ in range(draw(st.integers(1, 4))):
        at, again = draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))
        piece = draw(_PIECES | st.sampled_from(["", text[again : again + 9]]))
        text = text[:at] + piece + text[at + draw(st.integers(0, 9)) :]
    return text


def documents(plain: dict[str, Any]) -> st.SearchStrategy[str]:
    """YAML of edited content, or mangled YAML."""
    return edited(plain).map(yaml_text) | mangled(yaml_text(plain))
