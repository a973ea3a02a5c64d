"""The page of what is held, in a real browser: what a person sees and does, and what it must not do."""

import json
import os
import signal

import pytest

from harness_core.base.slowness import patience
from harness_core.tests.browsing import Looked, new_pages, open_browser, serious_findings
from harness_core.tests.live.made import Staged, make_tree

pytestmark = [pytest.mark.requires("browser"), pytest.mark.real, pytest.mark.slow]

#: How long a step of the page may take on a machine with nothing else to do.
STEP_S = 30.0

VIEWS = {"system": "#/", "messages": "#/messages"}


@pytest.fixture(scope="module")
def browser():
    """One for all tests of this file."""
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A shop that is held, with its page."""
    staged = Staged(make_tree(tmp_path_factory.mktemp("live")))
    try:
        yield staged.wait_up()
    finally:
        staged.end()


class Held(Looked):
    """The page of something that is held."""

    def __init__(self, page, staged):
        super().__init__(page, own=f"http://127.0.0.1:{staged.port}/", step_s=STEP_S)
        self._address = staged.address

    def open(self, view="#/"):
        """Open it by its address, and wait until it shows the parts."""
        self.page.goto(self._address + view)
        self.page.wait_for_selector("html[data-ready]")
        self.page.wait_for_selector("#parts tr", state="attached")
        return self

    def row(self, part):
        """The row of a part."""
        return self.page.locator(f"#parts tr:has(th button:text-is('{part}'))")


@pytest.fixture
def look(browser, shop):
    """Open the page at a width, in a scheme of colours."""
    with new_pages(browser) as opened:
        yield lambda *, view="#/", **size: Held(opened(**size), shop).open(view)


def send(page, title):
    """Send one of the offers, and wait for its end."""
    before = page.locator(".sent-row").count()
    page.click(f".offer:has-text('{title}')")
    page.wait_for_selector(f".sent-row >> nth={before}")
    first = "#sent > li:first-child .sent-row[aria-current=true] .word"
    page.wait_for_selector(f"{first}:not(:text('under way'))")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_every_view_opens_without_a_complaint(look, scheme, width, evidence):
    """No error in the console, nothing from elsewhere, no serious finding of axe, no wider than the screen."""
    looked = look(scheme=scheme, width=width)
    serious, wide = {}, {}
    for name, view in VIEWS.items():
        looked.page.goto(looked.page.url.partition("#")[0] + view)
        if name == "messages":
            send(looked.page, "A rope")
            looked.page.wait_for_selector(".graph svg")
        looked.page.wait_for_selector(f"#view-{name}.on")
        evidence.keep(f"{name}-{scheme}-{width}.png", looked.page.screenshot(full_page=True))
        wide[name] = looked.page.evaluate("Math.max(0, document.body.scrollWidth - innerWidth)")
        serious[name] = serious_findings(looked.page)

    assert [] == looked.complaints
    assert [] == looked.asked
    assert {name: [] for name in VIEWS} == serious
    assert dict.fromkeys(VIEWS, 0) == wide


def test_the_token_leaves_the_address_and_a_reload_needs_no_other(look, shop):
    """Neither the bar nor the history's current entry shows it; the tab has it until it is closed."""
    looked = look()

    assert f"http://127.0.0.1:{shop.port}/#/" == looked.page.url
    looked.page.reload()
    looked.page.wait_for_selector("#parts tr")
    assert "token" not in looked.page.url
    assert [] == looked.page.context.cookies()


def test_without_its_token_it_shows_nothing(browser, shop):
    """A tab that never had it says how to get in, and nothing of what is held."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{shop.port}/")

    assert "needs its token" in page.inner_text("main")
    assert "shop" not in page.content()
    context.close()


def test_a_part_is_taken_away_and_given_back(look):
    """By its buttons: the state, the sentence on top and the count of restarts follow."""
    looked = look()
    row = looked.row("orders")
    before = int(row.locator("td[data-title=restarts]").inner_text())
    row.locator("button:text-is('kill')").click()
    looked.page.wait_for_selector("#verdict:has-text('4 of 5 parts run')")
    row.locator("button:text-is('start')").click()
    looked.page.wait_for_selector("#verdict:has-text('All 5 parts run')")

    assert before + 1 == int(row.locator("td[data-title=restarts]").inner_text())
    assert [] == looked.complaints


def test_a_pause_is_shown_and_ended(look):
    """What hangs is no part that runs."""
    looked = look()
    row = looked.row("stock")
    row.locator("button:text-is('pause')").click()
    row.locator("td:text-is('paused')").wait_for()
    row.locator("button:text-is('resume')").click()
    row.locator("td:text-is('running')").wait_for()

    assert [] == looked.complaints


def test_a_death_is_shown_with_its_reason(look, shop):
    """At the part, and in the sentence on top."""
    looked = look()
    os.kill(shop.parts()["stock"]["pid"], signal.SIGKILL)
    looked.page.wait_for_selector("#verdict:has-text('stock died')")

    assert "SIGKILL" in looked.row("stock").inner_text()
    looked.row("stock").locator("button:text-is('start')").click()
    looked.page.wait_for_selector("#verdict:has-text('All 5 parts run')")


def test_a_message_is_watched_on_its_way(look):
    """Sent by a click; its way as a graph, its logs and spans on one clock, each with all of it."""
    looked = look(view="#/messages")
    page = looked.page
    send(page, "A pound of tea")

    assert "arrived" == page.inner_text(".sent-row[aria-current=true] .word")
    assert 3 == page.locator(".graph .held path").count()
    page.wait_for_selector("#travel .e-row:has-text('order at stock')")
    page.click("#travel .e-row:has-text('order at stock')")
    page.wait_for_selector("#travel .one dd:text-is('spans.jsonl')")
    assert [] == looked.complaints


def test_where_a_message_is_stuck_is_marked(look):
    """With a part away, the link to it is the one that broke."""
    looked = look()
    looked.row("stock").locator("button:text-is('stop')").click()
    looked.row("stock").locator("td:text-is('stopped')").wait_for()
    looked.page.goto(looked.page.url.partition("#")[0] + "#/messages")
    send(looked.page, "A rope")

    assert "broken" == looked.page.inner_text(".sent-row[aria-current=true] .word")
    assert "orders → stock (order)" in looked.page.inner_text(".links li:has(.broken)")
    looked.page.goto(looked.page.url.partition("#")[0] + "#/")
    looked.row("stock").locator("button:text-is('start')").click()
    looked.page.wait_for_selector("#verdict:has-text('All 5 parts run')")


def test_hostile_text_is_text(look):
    """Markup and script in a log, a message and a span are shown as they stand there, and do nothing."""
    looked = look(view="#/messages")
    send(looked.page, "Something odd")
    assert "<img src=x" in looked.page.inner_text("#sent")
    looked.page.goto(looked.page.url.partition("#")[0] + "#/")
    looked.page.fill("#words", "onerror")
    row = looked.page.locator("#activity .e-row").first
    row.wait_for()
    row.click()
    looked.page.wait_for_selector("#one dl")

    assert "<script>hit=2</script>" in row.inner_text()
    assert looked.page.evaluate("window.hit === undefined")
    assert 0 == looked.page.locator("img, iframe, main script").count()
    assert [] == looked.complaints


def test_what_happens_is_filtered_and_held_still(look):
    """By kind, part and text; a line that is looked at stays where it is."""
    looked = look()
    page = looked.page
    page.fill("#words", "opens")
    page.wait_for_selector("#activity .e-row >> nth=2")
    page.click("#parts th button:text-is('front')")
    page.wait_for_function("document.querySelectorAll('#activity .e-row').length === 1")
    page.click("#kinds button[data-what=log]")
    page.wait_for_function("document.querySelectorAll('#activity .e-row').length === 0")
    page.click("#kinds button[data-what=log]")
    page.click("#activity .e-row")

    page.wait_for_selector("#one dd:text-is('front.log')")
    assert "false" == page.get_attribute("#follow", "aria-pressed")


def test_the_keyboard_suffices(look):
    """To the messages, one of them sent, back, and a part stopped and started."""
    looked = look()
    page = looked.page
    page.keyboard.press("m")
    page.wait_for_selector("#view-messages.on")
    page.locator(".offer:has-text('A rope')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".sent-row")
    page.keyboard.press("s")
    page.wait_for_selector("#view-system.on")
    looked.row("front").locator("button:text-is('stop')").focus()
    page.keyboard.press("Enter")
    looked.row("front").locator("button:text-is('start')").wait_for()

    assert "start" == page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("#verdict:has-text('All 5 parts run')")


def test_the_end_is_shown(browser, tmp_path):
    """A page that stays open says that nothing is there any more, and offers nothing as if it were."""
    staged = Staged(make_tree(tmp_path)).wait_up()
    context = browser.new_context()
    try:
        looked = Held(context.new_page(), staged).open()

        assert 0 == staged.end(), staged.said()
        looked.page.wait_for_selector("#verdict:has-text('It has ended')")
    finally:
        staged.end()
        context.close()
    assert [] == staged.left()


def test_a_budget_is_shown_where_a_provider_is_paid(browser, shop, evidence):
    """How much of it is spent, as text and as a bar; with rehearsed models there is none."""
    sums = {"calls": 12, "input_tokens": 9000, "output_tokens": 800, "usd": 1.4}
    totals = {"mode": "live", "budget_usd": 2.0, "spent_usd": 1.5, "overall": sums}
    told = f"event: parts\ndata: []\n\nevent: spent\ndata: {json.dumps(totals)}\n\n"
    context = browser.new_context(viewport={"width": 1280, "height": 700})
    page = context.new_page()
    page.set_default_timeout(patience(STEP_S) * 1000)
    page.route(
        "**/events*", lambda route: route.fulfill(body=told, content_type="text/event-stream")
    )
    page.goto(shop.address)
    page.wait_for_selector("#budget-text:has-text('$1.5000 of the budget of $2.00 spent')")
    evidence.keep("budget.png", page.screenshot())

    assert "75.00" == page.get_attribute("#budget-spent", "width")
    assert "9,800" in page.inner_text("#facts")
    context.close()
