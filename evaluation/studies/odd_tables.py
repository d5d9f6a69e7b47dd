"""Ten tables as people have them, three owners each, through draft, check, run and evaluate: what
is told, where, and whether anything is lost that nobody was told of.

    python evaluation/studies/odd_tables.py [NAME ...]

A column is lost where the release's column is farther from all owners' cells, read by hand from
what made them, than noise explains; silently, where no line of any step names it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

OUT = Path(__file__).resolve().parents[1] / "results/odd_tables.jsonl"
ROWS, EPSILON, FAR = 1_500, 3.0, 0.15
"""Of an owner; of a job; the total variation from which on a column counts as lost."""

Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Table:
    """An odd table: owners' files, what their cells mean, and what must be told of them.

    Attributes:
        paths: each owner's file.
        meant: by column, all owners' cells as values that can be compared, None for missing.
        read: by column, how a released column becomes such values; as it is by default.
        told: what must be said, by step: patterns, each to be found in what the step prints.
        data: keys of `data` and `sites` in the job, in place of the paths.
        edit: of the draft, before the job, as its owners would.
    """

    paths: Mapping[str, Path]
    meant: Mapping[str, list]
    read: Mapping[str, Callable[[pd.Series], pd.Series]] = field(default_factory=dict)
    told: Mapping[str, list[str]] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    edit: Callable[[dict], None] = lambda schema: None
    drafted: tuple[str, ...] = ()


OWNERS = ("north", "south", "west")


def people(seed: int, rows: int = ROWS) -> pd.DataFrame:
    """What all tables have: an age, a score that depends on it, an outcome that depends on both."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    score = np.clip(np.round(rng.normal(age / 2, 8), 1), 0, 80)
    likely = 1 / (1 + np.exp(-(score - 27) / 6))
    outcome = np.where(rng.random(rows) < likely, "ill", "well")
    return pd.DataFrame({"age": age, "score": score, "outcome": outcome})


def by_owner() -> Frames:
    return {owner: people(seed) for seed, owner in enumerate(OWNERS)}


def joined(frames: Frames, column: str) -> list:
    return [cell for frame in frames.values() for cell in frame[column]]


def write(folder: Path, frames: Frames, suffix: str = "csv", **options: object) -> dict[str, Path]:
    paths = {owner: folder / f"{owner}.{suffix}" for owner in frames}
    for owner, path in paths.items():
        if suffix == "parquet":
            frames[owner].to_parquet(path, index=False)
        elif suffix == "xlsx":
            frames[owner].to_excel(path, index=False)
        else:
            frames[owner].to_csv(path, index=False, **options)
    return paths


def codes(folder: Path) -> Table:
    """One owner spells sex in words, counts ages in months and has codes of its own."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for owner, frame in frames.items():
        frame["sex"] = rng.choice(["F", "M"], ROWS)
        own = {"north": "A", "south": "B", "west": "A"}[owner]
        frame["icd"] = [f"{own}{code:02d}" for code in rng.integers(0, 20, ROWS)]
    meant = {name: joined(frames, name) for name in ("age", "sex", "icd", "score", "outcome")}
    south = frames["south"]
    frames["south"] = south.assign(age=south.age * 12, sex=south.sex.map({"F": "w", "M": "m"}))
    return Table(
        write(folder, frames),
        meant,
        told={
            "draft": [r"age.*south", r"sex.*south", r"icd"],
            "check south": [r"sex", r"age", r"icd"],
            "run": [r"south.*(age|sex|icd)"],
        },
        drafted=("north",),
    )


def european(folder: Path) -> Table:
    """Semicolons, decimal commas, Windows letters; one owner's tabs in UTF-16."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for frame in frames.values():
        frame["ort"] = rng.choice(
            ["Köln", "Zürich", "Genève", "Málaga"], ROWS, p=[0.4, 0.3, 0.2, 0.1]
        )
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1400, ROWS), "D")
        frame["datum"] = days.strftime("%d.%m.%Y")
    meant = {name: joined(frames, name) for name in ("age", "score", "ort", "outcome")}
    meant["datum"] = [
        pd.to_datetime(cell, format="%d.%m.%Y").toordinal() for cell in joined(frames, "datum")
    ]
    paths = write(folder, frames, sep=";", decimal=",", encoding="cp1252")
    frames["west"].to_csv(paths["west"], index=False, sep="\t", decimal=",", encoding="utf-16")
    return Table(
        paths,
        meant,
        read={"datum": lambda s: pd.to_datetime(s, format="%d.%m.%Y").map(pd.Timestamp.toordinal)},
        told={"draft": [r"north.*';'.*commas.*Windows-1252", r"west.*tabs"]},
    )


def money(folder: Path) -> Table:
    """Amounts with signs, percentages and durations, all as texts."""
    frames, rng = by_owner(), np.random.default_rng(9)
    plain: dict[str, list] = {"cost": [], "share": [], "stay": []}
    for frame in frames.values():
        cost, share = np.exp(rng.normal(7, 1, ROWS)).round(2), rng.integers(0, 101, ROWS)
        stay = rng.integers(5, 600, ROWS)
        frame["cost"] = [f"${value:,.2f}" for value in cost]
        frame["share"] = [f"{value}%" for value in share]
        frame["stay"] = [f"{value // 60}:{value % 60:02d}" for value in stay]
        for name, values in (("cost", cost), ("share", share), ("stay", stay)):
            plain[name] += values.tolist()
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome")} | plain
    return Table(
        write(folder, frames),
        meant,
        read={
            "cost": lambda s: s.astype(str).str.replace("[$,]", "", regex=True).astype(float),
            "share": lambda s: s.astype(str).str.rstrip("%").astype(float),
            "stay": lambda s: (
                s.astype(str).str.split(":").map(lambda c: 60 * int(c[0]) + int(c[1]))
            ),
        },
        told={"draft": [r"cost", r"share", r"stay"]},
    )


def bad_cells(folder: Path) -> Table:
    """A few cells that are no numbers or dates; 9999-12-31 and NA among dates."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for frame in frames.values():
        days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, ROWS), "D")
        frame["seen"] = days.strftime("%Y-%m-%d")
        frame["until"] = np.where(rng.random(ROWS) < 0.3, "9999-12-31", frame.seen)
        frame["left"] = np.where(rng.random(ROWS) < 0.2, "NA", frame.seen)
        frame["count"] = rng.integers(5, 1000, ROWS).astype(str)
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome")}
    meant["seen"] = [pd.Timestamp(cell).toordinal() for cell in joined(frames, "seen")]
    for name, marker in (("until", "9999-12-31"), ("left", "NA")):
        meant[name] = [
            None if cell == marker else pd.Timestamp(cell).toordinal()
            for cell in joined(frames, name)
        ]
    meant["count"] = [float(cell) for cell in joined(frames, "count")]
    south = frames["south"].astype(object)
    south.loc[3, "score"], south.loc[4, "seen"], south.loc[5, "count"] = "n.a.", "2020-02-30", "<5"
    frames["south"] = south
    date = lambda s: pd.to_datetime(s, errors="coerce").map(  # noqa: E731
        lambda day: None if pd.isna(day) else day.toordinal()
    )
    return Table(
        write(folder, frames),
        meant,
        read={"seen": date, "until": date, "left": date},
        told={"draft": [r"seen.*(no date|1)", r"count", r"until.*9999|9999"]},
    )


def persons(folder: Path) -> Table:
    """Names, mail, phones, birth dates, account numbers, free text, a constant."""
    frames, rng = by_owner(), np.random.default_rng(9)
    first, last = ["Ada", "Ben", "Cleo", "Dan", "Eve"], ["Kay", "Lee", "Moe", "Nys", "Orr"]
    for number, frame in enumerate(frames.values()):
        frame.insert(0, "patient", [f"P{number}{place:05d}" for place in range(ROWS)])
        frame["name"] = [f"{rng.choice(first)} {rng.choice(last)}{place}" for place in range(ROWS)]
        frame["mail"] = [f"p{number}{place}@example.org" for place in range(ROWS)]
        frame["phone"] = [f"+49 30 {rng.integers(10**6, 10**7)}" for _ in range(ROWS)]
        frame["iban"] = [
            f"DE{rng.integers(10, 99)}{rng.integers(10**17, 10**18)}" for _ in range(ROWS)
        ]
        born = pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 25000, ROWS), "D")
        frame["birth_date"] = born.strftime("%Y-%m-%d")
        frame["note"] = [
            f"seen on day {place}, said {rng.integers(10**6)}" for place in range(ROWS)
        ]
        frame["country"] = "DE"
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome", "country")}
    meant["birth_date"] = [pd.Timestamp(cell).toordinal() for cell in joined(frames, "birth_date")]
    return Table(
        write(folder, frames),
        meant,
        read={"birth_date": lambda s: pd.to_datetime(s).map(pd.Timestamp.toordinal)},
        told={
            "draft": [
                rf"\b{name}\b" for name in ("name", "mail", "phone", "iban", "note", "country")
            ]
            + [r"birth_date.*(birth|date)"]
        },
    )


def many_values(folder: Path) -> Table:
    """Postcodes by the thousand, and a code of 9,000 values of which 5,000 can be kept."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for frame in frames.values():
        frame["zip"] = [
            f"{code:05d}" for code in 500 + 7 * (rng.beta(1, 6, ROWS) * 3000).astype(int)
        ]
        frame["code"] = [f"c{code}" for code in rng.integers(0, 9000, ROWS)]
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome", "zip", "code")}
    told = {"draft": [r"\bzip\b", r"\bcode\b"], "evaluate": [r"far from.*\bcode\b"]}
    return Table(write(folder, frames), meant, told=told)


def types(folder: Path) -> Table:
    """Parquet with time zones, Decimal, nullable integers, an order of categories, keys."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for number, (owner, frame) in enumerate(frames.items()):
        frame.insert(0, "key", [f"P{number}{place:04d}" for place in range(ROWS)])
        seconds = pd.to_timedelta(rng.integers(0, 10**8, ROWS), "s")
        frame["at"] = (pd.Timestamp("2020-01-01") + seconds).tz_localize("UTC")
        frame["at"] = frame["at"].dt.tz_convert("Europe/Berlin")
        frame["price"] = [Decimal(int(cents)) / 100 for cents in rng.integers(100, 10**5, ROWS)]
        visits = pd.array(rng.integers(0, 9, ROWS), dtype="Int64")
        visits[rng.random(ROWS) < 0.1] = pd.NA
        frame["visits"] = visits
        grade = pd.Categorical(
            rng.choice(["low", "mid", "high"], ROWS), ["low", "mid", "high"], ordered=True
        )
        frame["grade"] = grade
        frames[owner] = frame
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome", "grade")}
    meant["price"] = [float(cell) for cell in joined(frames, "price")]
    meant["visits"] = [None if cell is pd.NA else float(cell) for cell in joined(frames, "visits")]
    meant["at"] = [cell.timestamp() for cell in joined(frames, "at")]
    return Table(
        write(folder, frames, "parquet"),
        meant,
        read={
            "at": lambda s: pd.to_datetime(s, utc=True).map(pd.Timestamp.timestamp),
            "price": lambda s: s.astype(float),
        },
    )


def clocks(folder: Path) -> Table:
    """Twelve-hour clocks, years of two digits, names of months, dates that read both ways."""
    frames, rng = by_owner(), np.random.default_rng(9)
    formats = {"clock": "%m/%d/%Y %I:%M %p", "short": "%d.%m.%y", "named": "%b %d %Y %H:%M"}
    for frame in frames.values():
        minutes = pd.to_timedelta(rng.integers(0, 2_000_000, ROWS), "min")
        for name, spelled in formats.items():
            frame[name] = (pd.Timestamp("2015-01-01") + minutes).strftime(spelled)
        both = rng.integers(1, 13, (ROWS, 2))
        frame["both"] = [f"{day:02d}/{month:02d}/2020" for day, month in both]
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome")}
    read = {}
    for name, spelled in formats.items():
        parse = lambda s, spelled=spelled: pd.to_datetime(s, format=spelled).map(  # noqa: E731
            pd.Timestamp.timestamp
        )
        read[name] = parse
        meant[name] = parse(pd.Series(joined(frames, name))).tolist()
    return Table(
        write(folder, frames),
        meant,
        read=read,
        told={"draft": [r"both.*say which|both.*fit", r"short.*(19|20)\d\d"]},
    )


def wide(folder: Path) -> Table:
    """Public bounds far beyond the values, and -999 for missing."""
    frames, rng = by_owner(), np.random.default_rng(9)
    for frame in frames.values():
        frame["amount"] = np.exp(rng.normal(3, 2, ROWS)).round(2)
        frame["pressure"] = np.where(rng.random(ROWS) < 0.1, -999, rng.integers(90, 180, ROWS))
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome", "amount")}
    meant["pressure"] = [None if cell == -999 else cell for cell in joined(frames, "pressure")]

    def edit(schema: dict) -> None:
        for column in schema["columns"]:
            if column["name"] == "amount":
                column.update(lower=0.0, upper=1e9)

    return Table(
        write(folder, frames),
        meant,
        told={"draft": [r"pressure.*-999"], "check north": [r"amount"], "run": [r"amount"]},
        edit=edit,
    )


def sources(folder: Path) -> Table:
    """A workbook, a database and a CSV file; columns in another order; an owner of few rows."""
    frames = by_owner()
    frames["west"] = frames["west"].iloc[:40][["outcome", "score", "age"]]
    meant = {name: joined(frames, name) for name in ("age", "score", "outcome")}
    paths = {"north": folder / "north.xlsx", "west": folder / "west.csv"}
    frames["north"].to_excel(paths["north"], index=False)
    frames["west"].to_csv(paths["west"], index=False)
    import sqlite3

    with sqlite3.connect(folder / "south.db") as database:
        frames["south"].to_sql("patients", database, index=False)
    query = {"url": f"sqlite:///{folder / 'south.db'}", "query": "SELECT * FROM patients"}
    sites: dict[str, object] = {
        "north": str(paths["north"]),
        "south": query,
        "west": str(paths["west"]),
    }
    return Table(paths, meant, data={"sites": {"paths": sites}})


TABLES = (codes, european, money, bad_cells, persons, many_values, types, clocks, wide, sources)


def say(*arguments: object) -> tuple[int, str]:
    """A command's exit code and all it printed."""
    command = [sys.executable, "-m", "fedsynth.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def distance(real: pd.Series, made: pd.Series) -> float:
    """Total variation of values, numbers in 20 quantile bins of the real ones; missing is one."""
    numbers = pd.to_numeric(real, errors="coerce")
    coded = any(isinstance(cell, str) and cell.startswith("0") for cell in real)
    if numbers.notna().sum() == real.notna().sum() and not coded:
        cuts = np.unique(np.quantile(numbers.dropna(), np.linspace(0, 1, 21)[1:-1]))
        made = pd.to_numeric(made, errors="coerce")
        real, made = (
            pd.Series(np.where(one.isna(), -1, np.searchsorted(cuts, one, "right")))
            for one in (numbers, made)
        )
    else:
        real, made = (
            one.map(lambda cell: "missing" if pd.isna(cell) else str(cell)) for one in (real, made)
        )
    left, right = (one.value_counts(normalize=True) for one in (real, made))
    return float(left.sub(right, fill_value=0).abs().sum() / 2)


def follow(build: Callable[[Path], Table], folder: Path) -> dict:
    """One table through all steps."""
    table = build(folder)
    said: dict[str, str] = {}
    codes: dict[str, int] = {}

    def step(name: str, *arguments: object) -> None:
        codes[name], said[name] = say(*arguments)

    schema, job, out = folder / "schema.yaml", folder / "job.yaml", folder / "run"
    files = list(table.paths.values())
    step("draft", "schema", "draft", *files, "--target", "outcome", "-o", schema)
    if table.drafted:
        schema.unlink()
        only = [table.paths[owner] for owner in table.drafted]
        say("schema", "draft", *only, "--target", "outcome", "-o", schema)
    content = yaml.safe_load(schema.read_text())
    table.edit(content)
    schema.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    sites = {"sites": {"paths": {owner: str(path) for owner, path in table.paths.items()}}}
    config = {
        "schema": "schema.yaml",
        "holdout": 0.1,
        **(table.data or sites),
        "privacy": {"epsilon": EPSILON, "delta": 1e-5, "unit": "record", "trust": "distributed"},
        "method": "aim",
        "sample": {"rows": 3 * ROWS},
    }
    job.write_text(yaml.safe_dump(config, sort_keys=False))
    for owner, path in table.paths.items():
        step(f"check {owner}", "schema", "check", path, job)
    step("run", "run", job, "--out", out, "--quiet")
    if codes["run"] == 3:
        # Refused for what is outside, as it should be: its owners look, and want it all the same.
        step("run, allowed", "run", job, "--out", out, "--quiet", "--set", "outside=allow")
    released = (out / "certificate.json").exists()
    if released:
        step("evaluate", "evaluate", out, "--models", "standard", "--quiet")
    far = {}
    if released:
        made = pd.read_csv(out / "rows.csv", dtype=object, keep_default_na=False)
        missing = content.get("missing_values", [""])
        for name, cells in table.meant.items():
            if name not in made:
                far[name] = 1.0
                continue
            column = made[name].where(~made[name].isin([*map(str, missing), ""]))
            known = column.dropna()
            try:
                read = table.read.get(name, lambda s: s)(known)
            except (ValueError, TypeError):
                read = known
            far[name] = distance(pd.Series(cells, dtype=object), read.reindex(column.index))
    everything = "\n".join(said.values())
    lost = {name: round(value, 3) for name, value in far.items() if value > FAR}
    return {
        "table": build.__name__,
        "what": (build.__doc__ or "").strip(),
        "codes": codes,
        "released": released,
        "far": {name: round(value, 3) for name, value in far.items()},
        "lost": lost,
        "silent": [name for name in lost if not re.search(rf"\b{re.escape(name)}\b", everything)],
        "untold": {
            name: absent
            for name, patterns in table.told.items()
            if (absent := [one for one in patterns if not re.search(one, said.get(name, ""))])
        },
        "said": said,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=[one.__name__ for one in TABLES])
    chosen = parser.parse_args().tables
    OUT.unlink(missing_ok=True)
    for build in TABLES:
        if build.__name__ not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = follow(build, Path(folder))
            # The folder's name is of this run alone.
            found["said"] = {
                name: text.replace(folder + "/", "") for name, text in found["said"].items()
            }
        with OUT.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(found["table"], found["codes"], "lost", found["lost"], flush=True)
        print(
            "  silently lost:",
            found["silent"] or "nothing",
            " untold:",
            found["untold"] or "nothing",
        )


if __name__ == "__main__":
    main()
