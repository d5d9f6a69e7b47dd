"""A search as a page of its own, to be kept or given away: there is nothing private in it."""

from __future__ import annotations

from fedsynth.markup import Html, tag
from fedsynth.views import View

_FREE = (
    "Candidates were trained and scored on rows drawn from finished releases, and on nothing else. "
    "Whatever is computed from a release is covered by its epsilon (post-processing), however many "
    "candidates are tried and however often. Training the model on real rows is another matter: it "
    "is private as they are, and so is every figure of it. None of these stands here, and none "
    "belongs into a release."
)
_STYLE = Html(
    "body{font:1rem/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}"
    "pre{overflow-x:auto;background:#f5f6f4;padding:1em}svg{max-width:100%;height:auto}"
)


def page_of(view: View, plot: Html, code: str) -> str:
    """An HTML document that needs nothing else.

    Args:
        code: what is to be pasted to have the model.
    """
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width"),
        tag("title", view.title),
        tag("style", _STYLE),
    ]
    paste = tag("p", tag("strong", "To paste")), tag("pre", code)
    free = tag("p", tag("strong", "Why this costs no privacy")), tag("p", _FREE)
    body = tag("body", view.html(plot, *paste, *free))
    return f"<!DOCTYPE html>{tag('html', tag('head', *head), body, lang='en')}\n"
