"""The first screen of a report where there is no room for a page: in a shell, in a notebook."""

from __future__ import annotations

from fedsynth.evaluation.report.content import Content
from fedsynth.evaluation.report.layout import bullets
from fedsynth.evaluation.report.sections.summary import about, banner_words, headlines
from fedsynth.evaluation.report.wording import score, sentence
from fedsynth.markup import Html, short, tag
from fedsynth.views import Grid, Said, View

_MORE = "The whole report: save(folder) writes it as one page."
_STYLE = Html(
    ".fedsynth .headlines{display:grid;gap:.5em 1.75em;list-style:none;margin:.8em 0;padding:0;"
    "grid-template-columns:repeat(auto-fit,minmax(13em,1fr))}"
    ".fedsynth .headlines li{border-top:2px solid rgba(128,128,128,.6);padding-top:.3em;margin:0}"
    ".fedsynth .headlines h2{font-size:1em;margin:0}"
    ".fedsynth .headlines .value{font-size:1.6em;font-weight:700;margin:0}"
    ".fedsynth .headlines small{font-size:.5em;font-weight:400;opacity:.75}"
    ".fedsynth .headlines .meaning,.fedsynth .legend{font-size:.9em;opacity:.85}"
    ".fedsynth .legend{display:flex;flex-wrap:wrap;gap:.1em 1.5em;list-style:none;padding:0}"
    ".fedsynth .legend li{display:flex;align-items:center;gap:.4em;margin:0}"
    ".fedsynth svg{display:block;max-width:100%;height:auto;font-size:12px;overflow:visible}"
    ".fedsynth svg text{fill:currentColor}.fedsynth svg .mid{text-anchor:middle}"
    ".fedsynth svg .end{text-anchor:end}.fedsynth svg path{fill:none}"
    ".fedsynth svg .axis,.fedsynth svg .lead,.fedsynth svg .mark.trivial{stroke:#868d96}"
    ".fedsynth svg .mark.trivial{stroke-width:2}"
    ".fedsynth svg .mark.synthetic{fill:#e0662a}"
    ".fedsynth svg .mark.real{fill:none;stroke:#3b82c4;stroke-width:2}"
)


def view(content: Content, caught: list[str]) -> View:
    """In text.

    Args:
        content: the report as JSON has it; of its parts, title, data, disclosure, summary and notes
            are looked at.
        caught: the attacks that told training rows from others.
    """
    summary = content["summary"]
    rows = [
        (
            one["name"],
            *(score(one[key]) for key in ("value", "real", "trivial")),
            one["better"],
        )
        for one in summary["headlines"]
    ]
    head = ("", "synthetic rows", "real rows", "trivial", "better")
    return View(
        _title(content),
        [
            *_said(content, caught),
            Grid(head, rows, figures=(1, 2, 3)),
            *([Said("Beware", "strong")] if summary["beware"] else []),
            *(Said(sentence(one), "caution") for one in summary["beware"]),
            *(Said(sentence(one), "quiet") for one in content.get("notes") or []),
        ],
    )


def html(content: Content, caught: list[str]) -> Html:
    """For a notebook: the report's own cards. As :func:`view`."""
    beware = bullets(sentence(one) for one in content["summary"]["beware"])
    return View(_title(content), _said(content, caught)).html(
        tag("style", _STYLE),
        headlines(content["summary"]["headlines"]),
        tag("div", tag("strong", "Beware"), beware) if beware else Html(""),
        *(tag("p", sentence(one), class_="quiet") for one in content.get("notes") or []),
        tag("p", _MORE, class_="quiet"),
    )


def _title(content: Content) -> str:
    return f"Evaluation: {content['title']}"


def _said(content: Content, caught: list[str]) -> list[Said]:
    words = banner_words(content)
    public = (content.get("disclosure") or {}).get("public")
    verdict = Said(content["summary"]["verdict"], "void" if caught else "strong")
    return [
        Said("".join(map(str, about(content, short))), "quiet"),
        *([Said(words, "quiet" if public else "caution")] if words else []),
        verdict,
    ]
