"""`fedsynth verify`, `certificate`, `sign` and `key`: is a release what it says, and whose?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.cli.options import Json, Release
from fedsynth.errors import ReleaseError
from fedsynth.plain import print_json, print_note


def verify(
    release: Release,
    head: Annotated[
        str | None, typer.Option(help="The ledger's head as it was published: must be the same.")
    ] = None,
    trust: Annotated[
        Path | None,
        typer.Option(help="Public keys, a .pem file or a folder: one of them must have signed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute a certificate from its ledger with a second accountant, and check all files."""
    from fedsynth.privacy.verify.verification import verify as verify_release

    checks = verify_release(release, head=head, trust=trust)
    failed = [check.name for check in checks if not check.passed]
    if as_json:
        print_json({"verified": not failed, "checks": [asdict(check) for check in checks]})
    else:
        from fedsynth.cli.terminal import on_stdout

        on_stdout().print(checks)
    if failed:
        raise ReleaseError(f"{release} does not verify: {', '.join(failed)}")


def certificate(
    release: Release,
    pdf: Annotated[
        Path | None,
        typer.Option(help="A new .pdf file of the same page; takes pip install 'fedsynth[pdf]'."),
    ] = None,
) -> None:
    """Write certificate.html anew: a certificate as a page for who answers for the release."""
    from fedsynth.privacy.trail.page import write_page

    if pdf is not None:
        from fedsynth.cards.pdf import demand_pdf, write_pdf

        demand_pdf(pdf)
    page = write_page(release)
    print_note(page)
    if pdf is not None:
        write_pdf(page.read_text(encoding="utf-8"), pdf)
        print_note(pdf)


def sign(
    release: Release,
    key: Annotated[Path, typer.Option(help="Your private key: `fedsynth key NAME` makes one.")],
    name: Annotated[
        str | None, typer.Option(help="That you go by; default the key file's name.")
    ] = None,
) -> None:
    """Vouch for a release, as one of its owners or as the server, after verifying it."""
    from fedsynth.privacy.trail.certificate import Certificate
    from fedsynth.privacy.trail.page import write_page
    from fedsynth.privacy.trail.signatures import sign as sign_head
    from fedsynth.privacy.verify.verification import require

    require(release)
    content = Certificate.load(release).content
    if content["format"] == 1:
        raise ReleaseError(
            f"{release}: an earlier fedsynth wrote this release, and its ledger does not say of "
            "which files it is: a signature would vouch for any"
        )
    made = sign_head(release, content["ledger"]["head"], key, name or key.stem)
    # Which says who signed.
    write_page(release)
    print_note(f"{release}: signed by {made.name} (key {made.key})")


def key(
    path: Annotated[Path, typer.Argument(metavar="NAME", help="Of the new files, with no ending.")],
) -> None:
    """Make a pair of keys: NAME.key to sign with, for you alone, and NAME.pub for everybody."""
    from fedsynth.privacy.trail.signatures import make_key

    for made in make_key(path):
        print_note(made)
