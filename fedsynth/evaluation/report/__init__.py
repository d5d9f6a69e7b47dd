"""The evaluation's report: one page for people, one JSON file for programs."""

from fedsynth.evaluation.report.page import page
from fedsynth.evaluation.report.saving import save

__all__ = ["page", "save"]
