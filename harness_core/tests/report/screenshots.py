"""The pictures of the README, made again: ``nox -s screenshots``."""

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from harness_core.assurance.gates import find_browser
from harness_core.front.report import build_report
from harness_core.front.report.page import render_page
from harness_core.tests.report.made import run_of_everything

ROOT = Path(__file__).parents[3]

#: Name of a picture → what a test of the made run shows, or nothing for all of them; its size.
PICTURES = {"overview": ("", 900), "failure": ("journey", 1200)}


def main(folder):
    """Write the pictures into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        evidence = Path(scratch) / ".evidence"
        ids = run_of_everything(evidence)
        report = build_report([evidence], root=ROOT)
        path = evidence / "report.html"
        path.write_text(render_page(report, at=path))
        order = [test.id for test in report.tests]
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=options)
            for name, (shows, height) in PICTURES.items():
                context = browser.new_context(
                    viewport={"width": 1200, "height": height}, color_scheme="light"
                )
                page = context.new_page()
                address = f"#/test/{order.index(ids[shows])}" if shows else "#/"
                page.goto(path.as_uri() + address)
                page.wait_for_selector("html[data-ready]")
                if shows:
                    page.click(".e-row:has-text('session general')")
                    page.evaluate("scrollTo(0, document.querySelector('.sentence').offsetTop - 60)")
                page.screenshot(path=folder / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
