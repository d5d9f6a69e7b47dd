"""What is to be known of owners' persons before anything is asked, where all owners are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd

from fedsynth.data.conforming import Conformed
from fedsynth.data.persons import keys_of_persons
from fedsynth.errors import Figures
from fedsynth.schema import Schema

_MOST_TOLD = 10


def remark_persons(owners: Mapping[str, pd.DataFrame], schema: Schema) -> Iterator[Figures]:
    """Keys that stand at several owners, and owners whose persons have one row each.

    Only a simulation can compare keys: where owners are apart nobody does, nor may.

    Raises:
        DataError: a row without a key.
    """
    persons = Counter[str]()
    single = []
    for name, frame in owners.items():
        keys = keys_of_persons(frame, schema, name)
        if keys is None or keys.empty:
            continue
        counts = keys.value_counts()
        persons.update(dict.fromkeys(counts.index, 1))
        if counts.max() == 1:
            single.append(name)
    several = sum(count > 1 for count in persons.values())
    if several:
        meaning = (
            "stand at several owners: each is a person of its own at each of them, so one who is "
            "the same there is as many units, and is protected and split as such"
        )
        yield Figures(
            f"{several:,} of {len(persons):,} keys in {schema.person!r} {meaning}",
            f"keys in {schema.person!r} {meaning}",
        )
    if single:
        more = len(single) - _MOST_TOLD
        named = ", ".join(single[:_MOST_TOLD]) + (f" and {more} owners more" if more > 0 else "")
        said = f"no key in {schema.person!r} repeats at {named}: a person is a row there"
        yield Figures(said, said)


def remark_varying(owners: Mapping[str, Conformed], schema: Schema) -> Iterator[Figures]:
    """Persons who have several values in a column that is `of: person`."""
    found = {name: data.count_varying(schema) for name, data in owners.items()}
    told = {name: columns for name, columns in found.items() if columns}
    if told:
        means = (
            "the schema says of these columns `of: person`. Rows are learned from as they are: "
            "were they brought into line, a row would hang on others"
        )
        figures = "; ".join(
            f"{name}: {', '.join(f'{column} of {n:,}' for column, n in columns.items())}"
            for name, columns in told.items()
        )
        bare = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in told.items())
        yield Figures(
            f"persons have several values in a column, for the owner's eyes alone, by persons: "
            f"{figures}; {means}",
            f"persons have several values in a column: {bare}; {means}",
        )
