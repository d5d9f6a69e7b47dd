"""`fedsynth serve`, `join` and `keys`: owners on their own machines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsynth.cli.options import Json, Quiet
from fedsynth.errors import ConfigError
from fedsynth.files import refused
from fedsynth.plain import print_json, print_note, spell_infinite

if TYPE_CHECKING:
    from fedsynth.jobs.run import Outcome

INSECURE = (
    "NOT ENCRYPTED: anybody on this machine may be any owner, or the server. For a trial on "
    "invented rows alone; the certificate is void"
)

Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Without keys, on this machine alone; promises nothing."),
]
Log = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Append what happens, one JSON object a line.")
]

keys_app = typer.Typer(
    help="Keys and certificates, by which server and owners know each other.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def serve(
    config: Annotated[str | None, typer.Argument(help="A job file that names its owners.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key, as of `run`."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the release.")] = None,
    keys: Annotated[Path | None, typer.Option(help="The folder of the server's keys.")] = None,
    insecure: Insecure = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Continue the interrupted job in DIR.")
    ] = None,
    moved: Annotated[bool, typer.Option("--moved", help="With --resume: as of `run`.")] = False,
    log: Log = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a job whose owners join from their own machines; their rows stay there."""
    if (config is None) == (resume is None):
        raise ConfigError("say which job to serve (a file), or --resume DIR: one of them")
    if (out is None) == (resume is None):
        raise ConfigError("a new job needs --out DIR; --resume continues one in its folder")
    if moved and resume is None:
        raise ConfigError("--moved is said of a job that is resumed: give --resume DIR")
    if (keys is None) != insecure:
        raise ConfigError(
            "say --keys DIR, with the server's keys (`fedsynth keys trial` makes some), or "
            "--insecure, for a trial on one machine"
        )
    folder = resume or out
    assert folder is not None
    if insecure:
        print_note(INSECURE)
    try:
        with logged(log):
            outcome = _serve(config, changes or [], folder, keys, moved=moved, quiet=quiet)
    except KeyboardInterrupt:
        begun = (folder / "config.yaml").exists()
        way = f"fedsynth serve --resume {folder}"
        print_note(f"Interrupted. {f'Continue: {way}' if begun else 'Nothing was asked'}")
        raise typer.Exit(130) from None
    from fedsynth.cli.terminal import outcome_json, show_outcome

    if as_json:
        print_json(outcome_json(outcome))
    else:
        show_outcome(outcome)


def _serve(
    config: str | None,
    changes: list[str],
    folder: Path,
    keys: Path | None,
    *,
    moved: bool,
    quiet: bool,
) -> Outcome:
    from fedsynth.jobs.config import load_config

    # Before what takes long to import: a mistake in the job file is told at once.
    loaded = None if config is None else load_config(config, changes)
    from fedsynth.jobs import serving
    from fedsynth.progress import Display

    carry = serving.by_streams(keys, print_note)
    with Display(quiet=quiet, lines=True) as progress:
        caution = progress.caution
        if loaded is None:
            return serving.go_on(folder, carry, progress, caution, changes=changes, moved=moved)
        return serving.serve(*loaded, folder, carry, progress, caution)


def join(
    site: Annotated[Path, typer.Argument(help="This owner's site file.")],
    insecure: Insecure = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything, and dial nobody.")
    ] = False,
    dial: Annotated[
        bool, typer.Option("--dial", help="With --check: and ask the server whether it may join.")
    ] = False,
    stay: Annotated[
        bool, typer.Option("--stay", help="Take part in job after job, until it is stopped.")
    ] = False,
    log: Log = None,
) -> None:
    """Take part in a job as an owner: dial its server, answer what the rules allow."""
    from fedsynth.jobs.joining import join as join_job
    from fedsynth.jobs.joining import keys_of, load_site, open_site
    from fedsynth.progress import Display

    if dial and not check:
        raise ConfigError("--dial goes with --check; without either, `join` dials and takes part")
    if insecure:
        print_note(INSECURE)
    caution = Display(quiet=True).caution
    with logged(log):
        if check:
            file = load_site(site)
            keys = None
            if file.server is None:
                print_note(f"{site}: no `server`: it dials nobody, and is for Flower's messages")
            else:
                keys = keys_of(file, site.parent, insecure=insecure)
            with open_site(file, site.parent, caution, insecure=insecure):
                print_note(f"{site}: rows, schema, account and keys are in order; nobody was asked")
                lacks = file.missing
                if lacks is not None:
                    print_note(f"Jobs under distributed trust would be refused for want of {lacks}")
                print_note(f"It joins {file.rules.words}")
            if dial and file.server is None:
                raise ConfigError(f"{site}: `server` is needed: HOST:PORT of the server to dial")
            if dial and file.server is not None:
                from fedsynth.federation.runtimes.stream import ask_whether

                print_note(ask_whether(file.name, file.server, keys))
            return
        try:
            finished = join_job(site, caution, print_note, insecure=insecure, stay=stay)
        except KeyboardInterrupt:
            print_note("Interrupted. What is paid for is kept: join again to go on")
            raise typer.Exit(130) from None
    print_note(f"finished: {', '.join(finished)}")


def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a job.")],
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of `serve --log`: who is there, too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how far a job is, which another process may be at work on. Changes nothing."""
    from fedsynth.cli.terminal import on_stdout
    from fedsynth.jobs.status import status_of
    from fedsynth.views import Grid, Said, spell_bytes

    found = status_of(folder, log)
    if as_json:
        print_json(spell_infinite(asdict(found)))
        return
    names = dict.fromkeys([*found.planned, *found.asked])
    rows = [
        (name, *(f"{one.get(name, 0):,}" for one in (found.asked, found.planned))) for name in names
    ]
    console, state = on_stdout(), "finished" if found.finished else "not finished"
    spent = f"epsilon {found.epsilon:.4g} of {found.of:g}" if found.of else "nobody was asked yet"
    if rows:
        console.print(Grid(("question", "asked", "planned"), rows, figures=(1, 2), most=len(rows)))
    console.print(Said(f"{state}; {spent}"))
    for name, there in found.owners.items():
        console.print(Said(f"{name}: {'there' if there else 'away'}"))
    if found.seconds is not None:
        size = spell_bytes(found.bytes or 0)
        console.print(Said(f"last round {found.seconds:.3g} s; {size} so far"))


@keys_app.command("trial")
def keys_trial(
    owners: Annotated[list[str], typer.Argument(help="The owners' names.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder.")] = Path("keys"),
    host: Annotated[str, typer.Option(help="Name or address that sites dial.")] = "localhost",
) -> None:
    """Make keys for a server and owners, and an authority, for a trial of 30 days."""
    from fedsynth.federation.keys import make_trial

    for made in make_trial(output, owners, host):
        print_note(made)


@keys_app.command("site")
def keys_site(
    name: Annotated[str, typer.Argument(help="That the certificate is to say.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the keys.")],
    host: Annotated[
        str | None, typer.Option(help="Of the server alone: name or address that sites dial.")
    ] = None,
) -> None:
    """Make a private key, which stays here, and a request for the authority to sign."""
    from fedsynth.federation.keys import AUTHORITY, CERTIFICATE, fingerprint, make_request

    request = make_request(output, name, host)
    print_note(
        f"{request}: have it signed, and put what comes back beside it as {CERTIFICATE}, and the "
        f"authority's own certificate as {AUTHORITY}. Read out: {fingerprint(request)}"
    )


@keys_app.command("fingerprint")
def keys_fingerprint(
    file: Annotated[Path, typer.Argument(help="A certificate or a request.")],
) -> None:
    """Print what is read out over a telephone, so that nobody takes another's place."""
    from fedsynth.federation.keys import fingerprint

    print(fingerprint(file))


@contextmanager
def logged(path: Path | None) -> Iterator[None]:
    """Says on stderr who joins and leaves, and what went wrong at this site; all events of a
    server or a site, as JSON, in a file."""
    handlers: list[tuple[str, logging.Handler]] = [
        ("fedsynth.hub", _Notes()),
        ("fedsynth.client", _Own()),
    ]
    if path is not None:
        try:
            handlers += [(name, _Lines(path)) for name in ("fedsynth.hub", "fedsynth.site")]
        except OSError as error:
            raise refused(path, error) from None
    with ExitStack() as closing:
        for name, handler in handlers:
            log = logging.getLogger(name)
            closing.callback(handler.close)
            closing.callback(log.removeHandler, handler)
            closing.callback(log.setLevel, log.level)
            closing.callback(setattr, log, "propagate", log.propagate)
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            log.propagate = False
        yield


class _Own(logging.Handler):
    """Prints an owner's own faults, which are told at its site alone."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        more = "" if error is None else f": {type(error).__name__}: {error}"
        print_note(f"{record.getMessage()}{more}")


class _Notes(logging.Handler):
    """Prints what somebody who waits wants to know."""

    def emit(self, record: logging.LogRecord) -> None:
        told = record.args
        if isinstance(told, dict) and told["event"] in ("joined", "left", "refuse", "fail", "late"):
            more = f" ({told['code']})" if "code" in told else ""
            print_note(f"{told.get('owner', '')}: {told['event']}{more}")
        elif not isinstance(told, dict) and record.levelno >= logging.WARNING:
            print_note(record.getMessage())


class _Lines(logging.FileHandler):
    """One JSON object an event."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(logging.Formatter())

    def format(self, record: logging.LogRecord) -> str:
        told = record.args if isinstance(record.args, dict) else {"event": record.getMessage()}
        return json.dumps({"time": round(record.created, 3), **told})
