"""A client: an owner with all its records."""

from fedsynth.privacy.units.unit import Unit

CLIENT = Unit(
    name="client",
    words="client with all its records",
    per_record=False,
    moved={"client": 1.0},
    several=(
        "One person at several owners",
        "An owner is protected with all its records. Of a person with records at k owners "
        "epsilon is up to k times as large, and delta grows more than k times.",
    ),
    few=(
        "A client-level guarantee over {units} clients hides each among few: useful noise levels "
        "come at epsilons too large to protect anybody. Protect records, or find more clients."
    ),
)
