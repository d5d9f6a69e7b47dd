"""The command line: parse, call, print. What takes long to import is imported by its command."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.accounts import account
from fedsynth.cli.card import card
from fedsynth.cli.drift import drift
from fedsynth.cli.evaluate import evaluate
from fedsynth.cli.init import init
from fedsynth.cli.methods import methods
from fedsynth.cli.network import join, keys_app, serve, status
from fedsynth.cli.options import (
    OWN_TABLE,
    TABLE,
    Decimal,
    Encoding,
    Json,
    Query,
    Quiet,
    Reader,
    Release,
    Seed,
    Separator,
    Sheet,
    Where,
)
from fedsynth.cli.planning import plan
from fedsynth.cli.queries import count, demand_new, impute, parse_conditions, predict
from fedsynth.cli.select import select_privately
from fedsynth.cli.tune import tune
from fedsynth.cli.vouching import certificate, key, sign, verify
from fedsynth.errors import ConfigError, FedsynthError, MachineError
from fedsynth.files import blame_machine, refused
from fedsynth.plain import print_json, print_note
from fedsynth.views import clean, wrap

if TYPE_CHECKING:
    from fedsynth.jobs.run import Outcome

_CODES = """\b
Exit codes:
  0    done
  1    an error inside fedsynth (--debug shows where)
  2    a wrong option, argument or job file
  3    data or a schema that cannot be used, or values outside the schema
  4    refused: the privacy budget, or what would weaken the guarantee
  5    too few clients gave a usable answer
  6    a release that is damaged, incomplete or does not verify
  7    refused by this machine: a disk, a permission, memory
  130  interrupted; `fedsynth run --resume DIR` continues a job
  141  nobody reads what is printed any more
"""

app = typer.Typer(
    help="Private synthetic data from tables and images that several owners may not pool.",
    epilog=_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
schema_app = typer.Typer(
    help="Draft a schema from a table, or check a table against one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(schema_app, name="schema")
app.add_typer(keys_app, name="keys")
app.command()(init)
app.command()(methods)
app.command()(plan)
app.command()(account)
app.command()(serve)
app.command()(join)
app.command()(status)
app.command()(evaluate)
app.command()(drift)
app.command()(tune)
app.command()(select_privately)
app.command()(count)
app.command()(impute)
app.command()(predict)
app.command()(verify)
app.command()(certificate)
app.command()(card)
app.command()(sign)
app.command()(key)


def main() -> None:
    """The console script."""
    # Before torch is loaded: its threads would spin while they wait, up to 16x slower on cores that
    # others use too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_pipe()
    except OSError as error:
        code = _print_error(str(refused("stdout", error)), MachineError.exit_code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; no exception escapes without --debug."""
    debug = "--debug" in arguments
    if not debug:
        # Libraries warn about their own workings, in words that nobody here can act on.
        warnings.simplefilter("ignore")
    try:
        with _clients_faults(debug):
            _command()(args=list(arguments), prog_name="fedsynth")
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):
            return _leave_pipe()
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except FedsynthError as error:
        if debug:
            raise
        return _print_error(str(error), error.exit_code)
    except (OSError, MemoryError) as error:
        if debug:
            raise
        return _print_error(str(blame_machine(error)), MachineError.exit_code)
    except Exception as error:
        if debug:
            raise
        message = (
            f"internal error ({type(error).__name__}). This is a fault of fedsynth, not yours: "
            "run the command again as `fedsynth --debug ...` for its traceback, which may show "
            "private values, and report it without them"
        )
        return _print_error(message, 1)
    return 0


@contextmanager
def _clients_faults(shown: bool) -> Iterator[None]:
    """Has errors of simulated clients, which are theirs to know, printed on stderr or nowhere."""
    log, printing = logging.getLogger("fedsynth.client"), logging.StreamHandler()
    before = log.level
    if shown:
        log.addHandler(printing)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(printing)
        log.setLevel(before)


@functools.cache
def _command() -> Any:
    """The commands, read from their functions' signatures once in a process."""
    return typer.main.get_command(app)


def _print_error(message: str, code: int) -> int:
    colour = None if os.environ.get("NO_COLOR") else "red"
    typer.secho(wrap(clean(f"Error: {message}")), fg=colour, err=True)
    return code


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


def _leave_pipe() -> int:
    """As other programs, without a word; what is still to be printed goes nowhere."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return 141


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """`run` itself looks for --debug, since it must know of it where parsing fails."""


@app.command("run")
def run_job(
    config: Annotated[
        str | None, typer.Argument(help="A job file, or the name of one that comes along: demo.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Replace a key: privacy.epsilon=1; with --resume of `sample` alone.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for the release; default runs/NAME.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Continue the interrupted job in DIR.")
    ] = None,
    moved: Annotated[
        bool,
        typer.Option(
            "--moved", help="With --resume: the folder that DIR was copied from is gone for good."
        ),
    ] = False,
    dry: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Read the tables, say what would be asked, its price and errors; ask nobody.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a job: train within the privacy budget, sample, certify, score."""
    if (config is None) == (resume is None):
        raise ConfigError("say which job to run (a file or a name), or --resume DIR: one of them")
    if resume is not None and out is not None:
        raise ConfigError("--resume continues the job in its folder: leave --out away")
    if moved and resume is None:
        raise ConfigError("--moved is said of a job that is resumed: give --resume DIR")
    if dry:
        if config is None or out is not None:
            raise ConfigError("--dry-run writes nothing: give a job, and leave --out away")
        from fedsynth.cli.planning import show_dry_run

        show_dry_run(config, changes or [], as_json=as_json)
        return
    folder = resume or out or _choose_folder(Path("runs"), Path(str(config)).stem)
    try:
        outcome = _run(config, changes or [], folder, moved=moved, quiet=quiet)
    except (FedsynthError, OSError, MemoryError) as error:
        _tell_left(folder, error)
        raise
    except KeyboardInterrupt:
        # By its name: to import it may take as long as what was interrupted.
        going_on = (
            f"Continue: fedsynth run --resume {folder}"
            if (folder / "config.yaml").exists()
            else "Nothing was asked: start it again"
        )
        print_note(f"Interrupted. {going_on}")
        _tell_left(folder)
        raise typer.Exit(130) from None
    from fedsynth.cli.terminal import outcome_json, show_outcome

    if as_json:
        print_json(outcome_json(outcome))
    else:
        show_outcome(outcome)


def _tell_left(folder: Path, error: Exception | None = None) -> None:
    """Whether to resume a job that the machine ended, and how to be rid of what is private."""
    ended = isinstance(error, MachineError | OSError | MemoryError)
    place = folder / "checkpoint"
    # Where even to look is refused, nothing was begun.
    with suppress(OSError):
        if (
            ended
            and (folder / "config.yaml").is_file()
            and not (folder / "certificate.json").exists()
        ):
            print_note(
                f"What was begun is kept. Once this is mended: fedsynth run --resume {folder}"
            )
        private = [*place.glob("*.private"), *place.glob("rows.json")]
        if private:
            print_note(
                f"{place} holds what is the owners' own while the job lasts (a hash of their rows, "
                f"perhaps private vectors): delete it if the job is to be given up (rm -r {place})"
            )
        if (folder / "ledger.jsonl").exists():
            from fedsynth.jobs.run import find_answers

            for answers in find_answers(folder):
                print_note(
                    f"{answers} holds what owners answered, for the job to go on with: delete it, "
                    f"too, if the job is to be given up (rm {answers})"
                )


def _run(
    config: str | None, changes: list[str], folder: Path, *, moved: bool, quiet: bool
) -> Outcome:
    from fedsynth.jobs.config import load_config

    # Before what takes long to import: a mistake in the job file is told at once.
    loaded = None if config is None else load_config(config, changes)

    from fedsynth.jobs import run as job
    from fedsynth.progress import Display

    with Display(quiet=quiet, lines=True) as progress:
        if loaded is None:
            return job.resume(folder, progress, progress.caution, changes=changes, moved=moved)
        return job.start(*loaded, folder, progress, progress.caution)


@app.command()
def sample(
    release: Release,
    rows: Annotated[int, typer.Option("-n", "--rows", help="How many rows.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="A new .csv, .csv.gz, .parquet or .npz file; - for CSV on stdout.",
        ),
    ],
    where: Where = None,
    seed: Seed = None,
    persons: Annotated[
        bool,
        typer.Option("--persons", help="Rows of invented persons: see docs/schemas.md."),
    ] = False,
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe", help="Of .csv: texts that a spreadsheet would compute get a ' in front."
        ),
    ] = False,
) -> None:
    """Draw more synthetic rows from a release; this costs no privacy."""
    from fedsynth.data.images import Images, write_images
    from fedsynth.data.tables import table_text, write_table
    from fedsynth.jobs.loading import load
    from fedsynth.methods.persons import tell_invented
    from fedsynth.schema import ImageSchema, Schema

    on_stdout = str(output) == "-"
    if not on_stdout:
        demand_new(output)
    synth = load(release)
    if isinstance(synth.schema, ImageSchema) and output.suffix != ".npz":
        raise ConfigError(f"{output}: images are written to a .npz file")
    sampled = synth.sample(rows, where=parse_conditions(where), seed=seed, persons=persons)
    if isinstance(sampled, Images) and isinstance(synth.schema, ImageSchema):
        write_images(sampled, output, synth.schema)
    elif not isinstance(sampled, Images) and isinstance(synth.schema, Schema):
        if on_stdout:
            # As files are, whatever letters the terminal has.
            text = table_text(sampled, synth.schema, excel_safe=excel_safe)
            sys.stdout.buffer.write(text.encode())
        else:
            write_table(sampled, output, synth.schema, excel_safe=excel_safe)
    whose = f" of {sampled[synth.schema.person].nunique():,} invented persons" if persons else ""
    print_note(f"{'stdout' if on_stdout else output}: {rows:,} synthetic rows{whose}")
    if persons:
        print_note(tell_invented(synth.schema))


@schema_app.command("draft")
def draft_schema(
    tables: Annotated[list[str], typer.Argument(help=f"For each owner {TABLE}.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new .yaml file; default stdout.")
    ] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    query: Query = None,
    as_json: Json = False,
) -> None:
    """Propose a schema from tables' rows; review it, for no epsilon covers what it tells.

    Of several owners' tables it says first how they differ.
    """
    from fedsynth.cli.drafting import draft_tables

    reader = Reader(separator, decimal, encoding, sheet, query)
    draft_tables(tables, target, output, reader, as_json=as_json)


@schema_app.command("check")
def check_schema(
    table: Annotated[
        str, typer.Argument(help=f"{OWN_TABLE.capitalize()}, or a .npz with x and y.")
    ],
    schema: Annotated[
        Path, typer.Argument(help="A schema file, or a job file: its schema, owners and limit.")
    ],
    as_json: Json = False,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    query: Query = None,
) -> None:
    """Say, column by column, what of a table its schema does not allow, before an owner joins."""
    from fedsynth.cli.checking import check_table

    reader = Reader(separator, decimal, encoding, sheet, query)
    check_table(table, schema, reader, as_json=as_json)


@app.command()
def version() -> None:
    """Print the version."""
    import fedsynth

    print(fedsynth.__version__)


def _choose_folder(parent: Path, name: str) -> Path:
    """`parent/name`, or with a number behind it where that is taken."""
    folder, number = parent / name, 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


if __name__ == "__main__":
    main()
