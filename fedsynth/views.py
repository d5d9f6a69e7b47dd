"""What a person sees of an object: one description of it, shown as text in a shell and as HTML in a
notebook. It loads nothing, keeps to the colours of what is around it, and escapes every text."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from fedsynth.markup import Html, join, sentence, tag

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_WIDEST = 110
"""Characters of a line of text at most, where a terminal is wider."""

STYLE = Html(
    ".fedsynth{line-height:1.45;max-width:64em;overflow-x:auto}"
    ".fedsynth p{margin:.35em 0}"
    ".fedsynth table{border-collapse:collapse;margin:.4em 0;font-size:inherit}"
    ".fedsynth table th,.fedsynth table td{padding:.2em 1.2em .2em 0;text-align:left;"
    "vertical-align:top;border:0;border-bottom:1px solid rgba(128,128,128,.35);"
    "background:none;color:inherit;white-space:normal;max-width:34em;overflow-wrap:break-word}"
    # Short words stay whole; a hash, which stands last, is broken.
    ".fedsynth table td:last-child{overflow-wrap:anywhere}"
    ".fedsynth table th{font-weight:600}"
    ".fedsynth table .figure{text-align:right;font-variant-numeric:tabular-nums}"
    ".fedsynth .quiet{opacity:.75}"
    ".fedsynth .caution{border-left:4px solid #d97706;padding-left:.7em}"
    ".fedsynth .void{background:#b3161b;color:#fff;padding:.3em .7em;font-weight:600}"
)

_PAGE = Html(
    "body{font:1rem/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.4rem}"
    "pre{overflow-x:auto;background:#f5f6f4;padding:1em}svg{max-width:100%;height:auto}"
)

Tone = Literal["plain", "strong", "quiet", "caution", "void"]
_RICH: dict[Tone, str] = {"strong": "bold", "quiet": "dim", "caution": "yellow", "void": "bold red"}


@dataclass(frozen=True)
class Said:
    """A sentence or more. caution: what weakens a promise; void: that there is none."""

    text: str
    tone: Tone = "plain"

    def html(self) -> Html:
        """For a notebook."""
        class_ = None if self.tone in ("plain", "strong") else self.tone
        shown = sentence(clean(self.text))
        return tag("p", tag("strong", shown) if self.tone == "strong" else shown, class_=class_)

    def __rich__(self) -> RenderableType:
        warns = self.tone in ("caution", "void")
        return _styled(f"! {self.text}" if warns else self.text, self.tone)


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        head: titles; empty for none.
        rows: cells as text.
        figures: places of the columns that hold figures; a column without a text is left out.
        strong: places of the rows that stand out.
        most: rows that are shown at most: the first ones; the others are counted.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Sequence[int] = ()
    strong: Sequence[int] = ()
    most: int = 60

    @property
    def places(self) -> list[int]:
        """Of the columns that have a text."""
        width = len(self.rows[0]) if self.rows else 0
        return [place for place in range(width) if any(row[place] for row in self.rows)]

    @property
    def left_out(self) -> str | None:
        """How many rows are not shown, if any."""
        more = len(self.rows) - self.most
        return f".. and {more:,} more" if more > 0 else None

    def html(self) -> Html:
        """For a notebook."""
        lines = [self._line("th", self.head)] if self.head else []
        for place, row in enumerate(self.rows[: self.most]):
            lines.append(self._line("th" if place in self.strong else "td", row))
        more = tag("p", self.left_out, class_="quiet") if self.left_out else None
        return join([tag("table", *lines), more])

    def _line(self, name: str, cells: Sequence[str]) -> Html:
        shown = [(sentence(clean(cells[place])), place in self.figures) for place in self.places]
        # A corner without a title is no heading.
        return tag(
            "tr",
            *(
                tag(name if text else "td", text, class_=figure and "figure")
                for text, figure in shown
            ),
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table

        table = Table(
            box=None,
            show_header=bool(self.head),
            header_style="",
            pad_edge=False,
            padding=(0, 1),
        )
        for place in self.places:
            longest = max(len(clean(row[place])) for row in self.rows[: self.most])
            table.add_column(
                _styled(self.head[place], "quiet") if self.head else "",
                justify="right" if place in self.figures else "left",
                overflow="fold",
                # In one piece, where the other columns have room all the same.
                no_wrap=place == 0 and longest <= options.max_width // 3,
            )
        for number, row in enumerate(self.rows[: self.most]):
            tone: Tone = "strong" if number in self.strong else "plain"
            table.add_row(*(_styled(row[place], tone) for place in self.places))
        yield table
        if self.left_out:
            yield _styled(self.left_out, "quiet")


@dataclass(frozen=True)
class View:
    """A title and what stands below it."""

    title: str
    parts: Sequence[Said | Grid] = ()

    def html(self, *more: Html) -> Html:
        """For a notebook. more: what stands below the parts."""
        body = [part.html() for part in self.parts]
        title = tag("p", tag("strong", clean(self.title)))
        return tag("div", tag("style", STYLE), title, *body, *more, class_="fedsynth")

    def page(self, *more: Html) -> str:
        """An HTML document that needs nothing else, and prints. more: as of `html`."""
        head = [
            tag("meta", charset="utf-8"),
            tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name_="color-scheme", content="light"),
            tag("title", clean(self.title)),
            tag("style", _PAGE),
        ]
        title, parts = tag("h1", clean(self.title)), [part.html() for part in self.parts]
        style = tag("style", STYLE)
        body = tag("body", tag("main", style, title, *parts, *more, class_="fedsynth"))
        return f"<!DOCTYPE html>{tag('html', tag('head', *head), body, lang='en')}\n"

    def __rich__(self) -> RenderableType:
        from rich.console import Group

        shown: list[RenderableType] = [_styled(self.title, "strong")]
        for place, part in enumerate(self.parts):
            if place and Grid in (type(self.parts[place - 1]), type(part)):
                shown.append(_styled("", "plain"))
            shown.append(part)
        return Group(*shown)

    def text(self, width: int | None = None) -> str:
        """Without colours.

        Args:
            width: of a line at most; by default the terminal's.
        """
        from rich.console import Console

        width = width or min(shutil.get_terminal_size().columns, _WIDEST)
        out = io.StringIO()
        console = Console(file=out, width=width, color_system=None, force_jupyter=False)
        console.print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


class Shown:
    """An object that shells and notebooks show by its view."""

    def _view(self) -> View:
        """What a person sees of it: cheap, and without a private cell."""
        raise NotImplementedError

    def _html(self) -> Html:
        return self._view().html()

    def __repr__(self) -> str:
        try:
            return self._view().text()
        except Exception:
            # Who looks at an object that is broken is looking for what broke it.
            return object.__repr__(self)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str | None:
        try:
            return str(self._html())
        except Exception:
            return None

    def __rich__(self) -> View:
        return self._view()


class Outlined:
    """A dataclass that is shown without its numbers."""

    def __repr__(self) -> str:
        names = [one.name for one in fields(self)]  # type: ignore[arg-type]
        shown = (f"{name} {_outline(getattr(self, name, None))}" for name in names)
        return f"<{type(self).__name__}: {', '.join(shown)}>"


def _outline(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, int | float) or value is None:
        return f"{value!r}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"{value.dtype} {list(shape)}"
    return f"{len(value)} of a {kind}" if isinstance(value, Sized) else kind


def clean(text: object) -> str:
    """A text on one line, its control characters spelled out: none may rule a terminal."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        letter
        if letter.isprintable() or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode("ascii")
        for letter in shown
    )


def wrap(line: str) -> str:
    """A line of stderr, broken between words where that is a terminal; paths and commands stay
    whole. Else as it is: programs look for whole sentences."""
    if sys.stderr is None or not sys.stderr.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def spell_bytes(size: float) -> str:
    """A number of bytes to three digits."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"


def listed(values: Iterable[object], most: int = 60) -> str:
    """Values beside each other, as many as fit into so many characters, and how many others."""
    texts: list[str] = []
    left, room = 0, most
    for value in values:
        text = clean(value)
        room -= len(text) + 2
        if left or (texts and room < 0):
            left += 1
        else:
            texts.append(text if len(text) <= most else f"{text[: most - 2]}..")
    return ", ".join(texts) + (f", and {left:,} more" if left else "")


def _styled(text: object, tone: Tone) -> RenderableType:
    from rich.text import Text

    return Text(clean(text), style=_RICH.get(tone, ""))
