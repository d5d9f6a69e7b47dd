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


def page_of(view: View, plot: Html, code: str) -> str:
    """An HTML document that needs nothing else.

    Args:
        code: what is to be pasted to have the model.
    """
    paste = tag("p", tag("strong", "To paste")), tag("pre", code)
    free = tag("p", tag("strong", "Why this costs no privacy")), tag("p", _FREE)
    return view.page(plot, *paste, *free)
