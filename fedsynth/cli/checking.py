"""`fedsynth schema check TABLE SCHEMA`: what an owner looks at before it joins a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from fedsynth.cli.options import Reader
from fedsynth.data.conforming import conform
from fedsynth.data.images import read_images
from fedsynth.data.persons import describe_persons
from fedsynth.data.suggesting import suggest
from fedsynth.demands import demand_path
from fedsynth.encoding.resolution import Crowded, find_crowded, resolution_cautions
from fedsynth.errors import DataError, SchemaError
from fedsynth.jobs.config import load_config
from fedsynth.jobs.data import read_schema, sites_of
from fedsynth.plain import print_json, print_note
from fedsynth.queries.options import OUTSIDE, Options
from fedsynth.schema import ImageSchema, Schema, load_schema
from fedsynth.schema.checking import ColumnCheck, Violation, check, check_columns
from fedsynth.schema.completing import complete
from fedsynth.schema.constraints import CONSTRAINTS
from fedsynth.yaml_files import read_yaml, yaml_text

if TYPE_CHECKING:
    import pandas as pd


def check_table(table: str, agreed: Path, reader: Reader, *, as_json: bool) -> None:
    """Print a line a column, and raise DataError if anything is outside.

    Args:
        agreed: a schema, or a job, whose column of owners is no fault of the table, and whose limit
            is held against its shares.
    """
    schema, site, most = _read_agreed(agreed)
    if isinstance(schema, ImageSchema):
        read_images(table, schema)
        if as_json:
            print_json(_content([], [], 0, [], [], {}))
        print_note(f"{table}: everything is within {agreed}")
        return
    frame = reader.read(table, schema)
    frame = complete(frame, schema, [column.name for column in schema.observed])
    beyond = _find_beyond(frame, schema, site, most)
    if site is not None and site not in {column.name for column in schema.columns}:
        # It names the owner and is not learned from.
        frame = frame.drop(columns=[site], errors="ignore")
    violations = check(frame, schema)
    columns = check_columns(frame, schema, violations)
    words, doubts = suggest(frame, schema)
    whole = not any(column.fault in ("absent", "extra") for column in columns) and not any(
        violation.rule == "missing" and violation.column == schema.person
        for violation in violations
    )
    conformed = conform(frame, schema, table) if whole else None
    left_out = None if conformed is None else conformed.left_out
    crowded = [] if conformed is None else find_crowded(conformed, schema)
    varying = {} if conformed is None else conformed.count_varying(schema)
    if as_json:
        content = _content(columns, violations, left_out, beyond, crowded, varying)
        print_json({**content, "translation": words.translated, "doubts": doubts})
    else:
        from fedsynth.cli.terminal import show_columns

        show_columns(columns, [v for v in violations if v.rule in CONSTRAINTS])
        if words.translated:
            print_note(f"{table}: what may mend it, in a file of its owner's, beside `path`:")
            for line in yaml_text(words.translated).splitlines():
                print_note(f"  {line}")
        for doubt in doubts:
            print_note(f"{table}: {doubt}")
    for caution in resolution_cautions(schema):
        print_note(f"{agreed}: {caution}")
    for one in crowded:
        print_note(f"{table}: {one}")
    if conformed is not None and conformed.persons is not None and conformed.rows:
        print_note(f"{table}: {describe_persons(conformed.persons)}")
    for name, count in varying.items():
        print_note(
            f"{table}: persons with several values in {name!r}, which is `of: person`: {count:,}. "
            "Their rows are learned from as they are, and invented persons have one"
        )
    repeated = Counter[str]()
    for violation in violations:
        if violation.rule == "repeated":
            repeated[violation.column] += violation.count
    for name, count in repeated.items():
        rows = "a row repeats" if count == 1 else f"{count:,} rows repeat"
        text = (
            f"{rows} an earlier row's {name!r}: if it says whose a row is, name it as the schema's"
        )
        print_note(
            f"{table}: {text} `person`, or rows of one person are taken for several persons'"
        )
    violations = [violation for violation in violations if violation.rule != "repeated"]
    if not violations:
        print_note(f"{table}: everything is within {agreed}")
        return
    said = f"{table}: {len(violations)} kinds of values are outside {agreed}"
    if left_out:
        said += f"; {left_out} rows would be left out"
    if beyond:
        named = [f"{one['owner']} {one['column']}".strip() for one in beyond]
        said += (
            f"; more than {most:.0%} of a column is ({', '.join(named)}), so a job would refuse "
            "its owner unless it says `outside: allow`"
        )
    raise DataError(said)


def _content(
    columns: Sequence[ColumnCheck],
    violations: Sequence[Violation],
    left_out: int | None,
    beyond: Sequence[dict[str, object]],
    crowded: Sequence[Crowded],
    varying: Mapping[str, int],
) -> dict[str, object]:
    return {
        "columns": [asdict(one) for one in columns],
        "findings": [asdict(violation) for violation in violations],
        "left_out": left_out,
        "beyond": list(beyond),
        "crowded": [asdict(one) for one in crowded],
        "varying": dict(varying),
    }


def _read_agreed(path: Path) -> tuple[Schema | ImageSchema, str | None, float]:
    """A schema, the column that names a row's owner, and the share of a column that may be outside.

    A schema alone has no such column, and the default share.
    """
    if demand_path("schema", path).is_file() and "sites" in read_yaml(path, SchemaError):
        config, base = load_config(path)
        sites = sites_of(config)
        site = sites.column if sites.path is None else None
        most = Options(outside=config.outside).most_outside
        return read_schema(config, base), site, most
    return load_schema(path), None, OUTSIDE


def _find_beyond(
    frame: pd.DataFrame, schema: Schema, site: str | None, most: float
) -> list[dict[str, object]]:
    """Each owner's columns of which more is outside than a job allows."""
    owners = {"": frame}
    if site is not None and site in frame:
        owners = {str(name): rows for name, rows in frame.groupby(site)}
    return [
        {"owner": owner, "column": one.column, "share": one.share}
        for owner, rows in owners.items()
        for one in check_columns(rows, schema, check(rows, schema))
        if one.share is not None and one.share > most
    ]
