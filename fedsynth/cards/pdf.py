"""A page as a .pdf file, by WeasyPrint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedsynth.durable import write_whole
from fedsynth.errors import ConfigError


def demand_pdf(file: Path) -> None:
    """Raises ConfigError for a file that no page can be written to, and without WeasyPrint."""
    if file.suffix != ".pdf":
        raise ConfigError(f"{file}: name a new .pdf file")
    if file.exists():
        raise ConfigError(f"{file} exists already: name a new file")
    _weasyprint(file)


def write_pdf(page: str, file: Path) -> None:
    """Write a page that loads nothing as it prints.

    Raises:
        ConfigError: as `demand_pdf`.
        MachineError: the file cannot be written.
    """
    demand_pdf(file)
    write_whole(file, _weasyprint(file).HTML(string=page, url_fetcher=_refuse).write_pdf())


def _refuse(url: str, *_: object, **__: object) -> None:
    raise ValueError(f"a page that loads {url}")


def _weasyprint(file: Path) -> Any:
    try:
        import weasyprint
    except ImportError:
        raise ConfigError(
            f"{file}: a .pdf takes WeasyPrint: pip install 'fedsynth[pdf]'; or open "
            "certificate.html in a browser and print it"
        ) from None
    except OSError:
        raise ConfigError(
            f"{file}: WeasyPrint does not find the library Pango, which it takes from the system "
            "(Debian: apt install libpango-1.0-0 libpangoft2-1.0-0; macOS: brew install pango); or "
            "open certificate.html in a browser and print it"
        ) from None
    return weasyprint
