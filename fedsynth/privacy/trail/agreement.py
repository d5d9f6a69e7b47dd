"""What a job agreed on beside method and budget: it is resumed with the same, or not at all.

Which rows are held out, and which owner's a simulated row is, hang on it; its hash stands in the
ledger's first line. Where the rows lie may change, and which synthetic rows are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def agreement_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a job file's plain content that a job keeps to; of owners' files their names."""
    federation = config.get("federation") or {}
    owners = federation.get("owners")
    # Over a network rows are held out and dealt out by their owners.
    sites = {"owners": list(owners)} if owners else dict(config["sites"])
    sites.pop("path", None)
    if "paths" in sites:
        sites["paths"] = list(sites["paths"])
    return {
        "seed": config["seed"],
        "holdout": config.get("holdout"),
        "outside": config.get("outside"),
        "survivors": federation.get("survivors", 1.0),
        "most_records": federation.get("most_records"),
        "sites": sites,
    }
