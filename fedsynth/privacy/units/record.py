"""A record: one row of one client's data."""

from fedsynth.privacy.units.unit import Unit

RECORD = Unit(
    name="record",
    words="record",
    per_record=True,
    # Of rows that are whole clients' it exchanges one for another.
    moved={"record": 1.0, "client": 2.0},
    several=(
        "Several rows of one person",
        "A record is one row. Of a person with k rows in the data epsilon is up to k times as "
        "large, and delta grows more than k times.",
    ),
    parallel=(
        " A record lies at one client and moves that client's messages alone, so the messages of "
        "all clients together cost what the dearest client's cost, not their sum (parallel "
        "composition)."
    ),
)
