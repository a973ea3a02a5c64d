"""A real browser for the tests of pages, and what none of our pages may do in it."""

import os
from contextlib import contextmanager

from harness_core.assurance.gates import find_browser
from harness_core.base.slowness import patience

#: Addresses that lead nowhere.
INLINE = ("data:", "blob:")


@contextmanager
def open_browser():
    """Debian's chromium, or Google's."""
    from playwright.sync_api import sync_playwright

    # Root has no sandbox of its own there, and nothing but our own page is opened.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=options)
        yield browser
        browser.close()


class Looked:
    """A page that is looked at, all that it complained of, and all that it asked for elsewhere.

    Args:
        page: Playwright's.
        own: beginning of the addresses that are the page's own.
        step_s: how long a step of it may take on a machine with nothing else to do.

    Attributes:
        page: the same.
        complaints: errors and warnings of the console and of scripts.
        asked: other addresses that it asked for.
    """

    def __init__(self, page, *, own, step_s):
        self.page = page
        self.complaints, self.asked = [], []
        self._own = (own, *INLINE)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._requested(request.url))
        page.set_default_timeout(patience(step_s) * 1000)

    def _said(self, message):
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _requested(self, url):
        if not url.startswith(self._own):
            self.asked.append(url)


@contextmanager
def new_pages(browser):
    """A function that opens an empty page at a width, in a scheme of colours; all are closed at the end."""
    contexts = []

    def opened(*, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()


def serious_findings(page):
    """What axe finds on a page that is serious or worse: each rule, with the first elements that break it."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (rule["id"], [node["html"][:160] for node in rule["nodes"][:3]])
        for rule in Axe().run(page).response["violations"]
        if rule["impact"] in {"serious", "critical"}
    ]
