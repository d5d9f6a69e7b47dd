"""The methods, and what each can be told: read from their settings, so that nothing is left out."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from fedsynth.cli.options import Json
from fedsynth.errors import ConfigError
from fedsynth.plain import print_json
from fedsynth.registry import ENTRIES, SETTINGS
from fedsynth.views import Grid, Said, View

_AUTO = (
    "`method: auto` takes aim for tables (fedvae where they are very wide) and mean-embedding for "
    "images; what it takes, and why, `fedsynth plan` says of a job."
)


@dataclass(frozen=True)
class Setting:
    """One setting of a method.

    Attributes:
        name: in job files under `settings`, and as a keyword in Python.
        default: None where it depends on the schema and the budget.
        allowed, meaning: words.
    """

    name: str
    default: Any
    allowed: str
    meaning: str


def settings_of(kind: type[Any]) -> list[Setting]:
    """The settings of a class of them, in its order, as its docstrings describe them."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _read_attributes(vars(base).get("__doc__") or "")
    return [
        Setting(name, _plain(field.default), field.description or "", meanings.get(name, ""))
        for name, field in kind.model_fields.items()
    ]


def _read_attributes(docstring: str) -> dict[str, str]:
    """What a docstring says of each attribute; those that are named together share their words."""
    _, _, listed = inspect.cleandoc(docstring).partition("Attributes:\n")
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=    \S)", "\n" + listed):
        names, colon, words = block.strip("\n").partition(": ")
        if colon:
            found |= dict.fromkeys(names.strip().split(", "), " ".join(words.split()))
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to see its settings.")] = None,
    as_json: Json = False,
) -> None:
    """Say which methods there are; of one, what it can be told."""
    from fedsynth.agreed import suggestion
    from fedsynth.cli.terminal import on_stdout

    if name is None:
        if as_json:
            print_json({entry.name: entry.description for entry in ENTRIES.values()})
            return
        rows = [(entry.name, f"fs.{entry.kind}", entry.description) for entry in ENTRIES.values()]
        grid = Grid(("method", "in Python", "what it does"), rows)
        more = Said("Settings: fedsynth methods NAME", "quiet")
        on_stdout().print(View("Methods", [grid, Said(_AUTO), more]))
        return
    if name not in ENTRIES:
        raise ConfigError(f"there is no method {name!r}{suggestion(name, ENTRIES)}")
    entry, settings = ENTRIES[name], settings_of(SETTINGS[name])
    if as_json:
        print_json({"method": name, "settings": [asdict(one) for one in settings]})
        return
    rows = [
        (
            one.name,
            "-" if one.default is None else str(one.default),
            f"{one.meaning.rstrip('.')} ({one.allowed})",
        )
        for one in settings
    ]
    grid = Grid(("setting", "default", "what it is"), rows)
    said = "-: by the schema and the budget. In a job file under `settings`, in Python a keyword."
    on_stdout().print(View(f"{name}: {entry.description}", [grid, Said(said, "quiet")]))
