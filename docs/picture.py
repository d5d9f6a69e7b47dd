"""The picture of a report in the README: `make picture` runs the demo, evaluates it, and looks.

Its rows are public, so the report may be shown. Needs chromium, as the report's browser tests do.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from fedsynth.cli.app import run

PICTURE = Path(__file__).with_name("report.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        release, report = Path(place, "demo"), Path(place, "report")
        for command in (
            ["run", "demo", "--out", str(release)],
            ["evaluate", str(release), "--public", "--out", str(report)],
        ):
            if code := run(command):
                raise SystemExit(code)
        with sync_playwright() as started:
            found = shutil.which("chromium") or shutil.which("google-chrome")
            browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1100, "height": 900})
            page.goto((report / "report.html").as_uri())
            top = page.locator("#summary").bounding_box()["y"]
            height = page.locator("#summary .two").bounding_box()["y"] - top
            clip = {"x": 0, "y": top, "width": 1100, "height": height}
            page.screenshot(path=PICTURE, clip=clip)
            browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
