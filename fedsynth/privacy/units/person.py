"""A person: all rows that one owner has of it."""

from fedsynth.privacy.units.unit import Unit

PERSON = Unit(
    name="person",
    words="person with all its rows at one owner",
    per_record=True,
    joined=True,
    # Of rows that are whole clients' it exchanges one for another. It has any number of records.
    moved={"person": 1.0, "client": 2.0},
    several=(
        "One person at several owners",
        "A person is protected with all its rows at one owner; whose a row is, that owner says. Of "
        "a person with rows at k owners epsilon is up to k times as large, and delta grows more "
        "than k times.",
    ),
    parallel=(
        " A person's rows lie at one client and move that client's messages alone, so the messages "
        "of all clients together cost what the dearest client's cost, not their sum (parallel "
        "composition)."
    ),
)
