"""The pictures of the README and the pages, made again: ``nox -s screenshots``."""

import sys
import tempfile
from pathlib import Path

from harness_core.front.report import build_report
from harness_core.front.report.page import render_page
from harness_core.tests.browsing import open_browser
from harness_core.tests.live.looking import post
from harness_core.tests.live.made import Staged, make_tree
from harness_core.tests.report.made import run_of_everything

ROOT = Path(__file__).parents[3]

#: Name of a picture → what a test of the made run shows, or nothing for all of them; its size.
PICTURES = {"overview": ("", 900), "failure": ("journey", 1200)}


def main(folder):
    """Write the pictures into a folder."""
    with open_browser() as browser:
        of_a_run(browser, folder)
        of_what_is_held(browser, folder)


def opened(browser, height):
    """An empty page."""
    size = {"width": 1200, "height": height}
    return browser.new_context(viewport=size, color_scheme="light").new_page()


def of_what_is_held(browser, folder):
    """The page of a shop in which orders are sent, and a part was away for a while."""
    with tempfile.TemporaryDirectory() as scratch:
        staged = Staged(make_tree(Path(scratch)))
        try:
            staged.wait_up()
            page = opened(browser, 860)
            page.goto(staged.address)
            page.wait_for_selector("#parts tr")
            for offer in ("tea", "rope"):
                post(staged, "/send", offer=offer)
            page.wait_for_selector("#kinds button:has-text('span 6')")
            for verb in ("kill", "start"):
                post(staged, "/act", part="orders", verb=verb)
            post(staged, "/send", offer="tea")
            page.wait_for_selector("#kinds button:has-text('span 9')")
            post(staged, "/act", part="stock", verb="pause")
            page.wait_for_selector("#parts td:text-is('paused')")
            page.click("#activity .e-row:has-text('order at front')")
            page.wait_for_selector("#one dl")
            page.screenshot(path=folder / "live.png")
        finally:
            staged.end()


def of_a_run(browser, folder):
    """Views of a report."""
    with tempfile.TemporaryDirectory() as scratch:
        evidence = Path(scratch) / ".evidence"
        ids = run_of_everything(evidence)
        report = build_report([evidence], root=ROOT)
        path = evidence / "report.html"
        path.write_text(render_page(report, at=path))
        order = [test.id for test in report.tests]
        for name, (shows, height) in PICTURES.items():
            page = opened(browser, height)
            address = f"#/test/{order.index(ids[shows])}" if shows else "#/"
            page.goto(path.as_uri() + address)
            page.wait_for_selector("html[data-ready]")
            if shows:
                page.click(".e-row:has-text('session general')")
                page.evaluate("scrollTo(0, document.querySelector('.sentence').offsetTop - 60)")
            page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
