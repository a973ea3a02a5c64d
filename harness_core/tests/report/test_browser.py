"""The page of a report, in a real browser: what a person sees of it, and what it must not do."""

import json
import re
import time
from pathlib import Path

import pytest

from harness_core.base.evidence import Frame, Link, Message, Moment
from harness_core.base.slowness import patience
from harness_core.front.outcomes import Word
from harness_core.front.report import build_report
from harness_core.front.report.page import render_page
from harness_core.tests.browsing import Looked, new_pages, open_browser, serious_findings
from harness_core.tests.report.made import (
    AT,
    HOSTILE,
    Made,
    run_of_everything,
    span,
    stamp,
    tell,
)

pytestmark = [pytest.mark.requires("browser"), pytest.mark.real]

#: How long a step of the page may take on a machine with nothing else to do.
STEP_S = 10.0

WIDTHS = (1280, 320)


@pytest.fixture(scope="module")
def browser():
    """One for all tests of this file."""
    with open_browser() as found:
        yield found


class Reported(Looked):
    """The page of a report."""

    def __init__(self, page, path):
        super().__init__(page, own=path.as_uri(), step_s=STEP_S)
        self._address = path.as_uri()

    def open(self, address="#/"):
        """Open it, or another address of it, and wait until it is there."""
        self.page.goto(self._address + address)
        self.page.wait_for_selector("html[data-ready]")
        return self


@pytest.fixture
def look(browser):
    """Open a page at a width, in a scheme of colours."""
    with new_pages(browser) as opened:
        yield lambda path, *, address="#/", **size: Reported(opened(**size), path).open(address)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A page with something for each view, and the ids of its tests."""
    folder = tmp_path_factory.mktemp("report") / ".evidence"
    ids = run_of_everything(folder)
    # The ledgers of this tree: some of their requirements have a case in the report.
    report = build_report([folder], root=Path(__file__).parents[3])
    path = folder / "report.html"
    path.write_text(render_page(report, at=path))
    keys = {name: [test.id for test in report.tests].index(each) for name, each in ids.items()}
    return path, keys


def views(keys):
    """Name of each view → its address."""
    return {
        "overview": "#/",
        "tests": "#/tests",
        "requirements": "#/requirements",
        "trends": "#/trends",
        "curves": "#/curves",
        **{name: f"#/test/{key}" for name, key in keys.items()},
    }


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_opens_without_a_complaint(everything, look, scheme, evidence):
    """No error in the console, nothing asked of any network, and no axe rule broken that is serious."""
    path, keys = everything
    looked = look(path, scheme=scheme)
    serious = {}
    for name, address in views(keys).items():
        looked.open(address)
        evidence.keep(f"{name}-{scheme}.png", looked.page.screenshot(full_page=True))
        serious[name] = serious_findings(looked.page)

    assert [] == looked.complaints
    assert [] == looked.asked
    assert {name: [] for name in views(keys)} == serious


def test_a_narrow_screen_shows_all_of_it(everything, look, evidence):
    """At 320 pixels no view is wider than the screen."""
    path, keys = everything
    looked = look(path, width=320)
    wide = {}
    for name, address in views(keys).items():
        looked.open(address)
        evidence.keep(f"{name}-narrow.png", looked.page.screenshot(full_page=True))
        beyond = "Math.max(0, document.scrollingElement.scrollWidth - innerWidth)"
        wide[name] = looked.page.evaluate(beyond)

    assert dict.fromkeys(wide, 0) == wide


def test_the_broken_link_is_three_clicks_away_at_most(everything, look):
    """From the first view, by the cause, to the graph with the link that broke, and what was seen of it."""
    path, _ = everything
    page = look(path).page

    page.click(".causes li:has-text('expected health') a")

    assert 2 == page.locator(".graph .broken path").count(), "the link, and the mark on it"
    told = page.locator(".links li:has(.broken)").inner_text()
    assert "switchboard → general (routing)" in told
    assert "expected" == page.locator(".beside h3").first.inner_text()
    assert "health" == page.locator(".beside pre").first.inner_text()


def test_the_keyboard_suffices(everything, look):
    """From the first view to a failure, into its timeline, to one event, and on to the next test."""
    path, _ = everything
    page = look(path).page

    def focused():
        return page.evaluate("document.activeElement.closest('.causes, .time') !== null")

    for _ in range(40):
        if focused():
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("canvas")
    page.locator("canvas").focus()
    before = page.locator(".time-tools > .dim").inner_text()
    for _ in range(6):
        page.keyboard.press("+")
    assert before != page.locator(".time-tools > .dim").inner_text(), "fewer events are in sight"
    page.keyboard.press("0")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "evidence" in page.locator(".one dl").inner_text()
    first = page.url
    page.keyboard.press("j")
    page.wait_for_function("before => location.href !== before", arg=first)
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.id === 'tests-search'")
    page.keyboard.type("row-7")
    page.wait_for_function("document.getElementById('tests-count').textContent.startsWith('1 of')")


def test_a_timeline_is_filtered_by_message_and_kind(everything, look):
    """What belongs to the message alone, of the kinds that are wanted, with the words that are sought."""
    path, keys = everything
    page = look(path, address=f"#/test/{keys['journey']}").page

    def count():
        return int(re.match(r"\d+", page.locator(".time-tools > .dim").inner_text())[0])

    of_message = count()
    page.select_option(".time-tools select", "-1")
    page.click(".time-tools button[aria-label='show all']")
    whole = count()
    page.click(".time-tools .chips button:has-text('span')")
    without_spans = count()

    assert of_message < whole
    assert 6 == whole - without_spans
    page.fill(".time-tools input", "no such collection")
    page.wait_for_function("document.querySelector('.e-row .err') !== null")
    assert 1 == count()


def test_evidence_can_be_taken_along(everything, look, tmp_path):
    """All files of a failure come out of the page as one archive."""
    import zipfile

    path, keys = everything
    page = look(path, address=f"#/test/{keys['journey']}").page

    with page.expect_download() as waiting:
        page.click("button:has-text('download all')")
    taken = tmp_path / "evidence.zip"
    waiting.value.save_as(taken)

    names = zipfile.ZipFile(taken).namelist()
    assert any(name.endswith("during/spans.jsonl") for name in names)
    assert any(name.endswith("story.jsonl") for name in names)


@pytest.fixture
def hostile(tmp_path):
    """A page of a product that wants to be more than text, in every place that it can write to."""
    made = Made(tmp_path / ".evidence")
    for number, text in enumerate(HOSTILE):
        test = f"suites/demo/test_it.py::test_it[{number}-{text}]"
        said = f"{text}: expected {text}, found {text}\n{text}"
        kept = made.test(test, Word.FAILED, said=said, deaths=(text,), rerun=text)
        kept.append("during/shop.log", f"{stamp(made.at - 0.5)} error {text}")
        kept.append_json("during/spans.jsonl", span(text, text, made.at - 0.6, 0.1, trace=text))
        link = {"message": text, "source": text, "said": text}
        tell(
            kept,
            Message(id=text, text=text, names=(text,)),
            Link(**link, target=f"{text} 2", label=text, state="broken"),
            Moment(at=made.at - 0.4, lane=text, what=text, text=text, data={text: text}),
            Frame(connection=text, sender="product", after_s=0.1, text=text),
        )
        kept.write_text(f"{number}.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{text}</svg>")
        made.test(f"suites/demo/test_it.py::test_skip_{number}", Word.NOT_RUN, said=text)
    made.session("demo", machine=HOSTILE[0], under_way=HOSTILE[1], finished=False)
    report = build_report([made.folder], root=tmp_path)
    path = made.folder / "report.html"
    path.write_text(render_page(report, at=path), errors="replace")
    return path


def test_a_hostile_product_is_only_text(hostile, look):
    """Whatever a product writes is shown as it is, and nothing of it runs, loads or links anywhere."""
    looked = look(hostile)
    for address in ("#/", "#/tests", "#/trends", *(f"#/test/{key}" for key in range(len(HOSTILE)))):
        looked.open(address)
        for details in looked.page.locator("details:not([open])").all():
            if details.is_visible():
                details.click(position={"x": 4, "y": 4})

        assert looked.page.evaluate("window.hacked") is None
        odd = looked.page.evaluate(
            "[...document.querySelectorAll('a[href], img, script, iframe, object')].map(e =>"
            " e.getAttribute('href') || e.getAttribute('src') || '').filter(u => u &&"
            " !/^(#|\\.{1,2}\\/|data:(image|video)\\/)/.test(u))"
        )
        assert [] == odd

    assert HOSTILE[-2] in looked.open("#/test/5").page.locator(".sentence").inner_text()
    blamed = [each for each in looked.complaints if "violates the following" in each]
    assert [] == blamed, "the policy had nothing to stop"
    assert [] == looked.asked


def test_a_page_without_script_shows_the_first_view(everything, browser):
    """Outcomes and causes are in the page itself."""
    path, _ = everything
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())

    assert "3 of 46 tests failed" in page.locator("h1").first.inner_text()
    assert page.locator(".causes").first.is_visible()
    context.close()


@pytest.mark.slow
def test_ten_thousand_tests_and_two_hundred_thousand_events(tmp_path, look, evidence):
    """They open within 3 s on a machine with nothing else to do, and only what is in sight has elements."""
    made = Made(tmp_path / ".evidence")
    for number in range(10_000):
        # One has a quarter of all events to itself.
        seconds = 50.0 if number == 3 else 0.02
        word = Word.FAILED if number % 500 == 3 else Word.PASSED
        said = f"row {number}: expected 1, found {number}" if word is Word.FAILED else ""
        made.test(f"suites/demo/test_many.py::test_row[{number}]", word, said=said, seconds=seconds)
    run = made.evidence.child("_run")
    lines = (f"{stamp(AT + number / 600)} info line {number}" for number in range(150_000))
    run.write_text("shop.log", "\n".join(lines))
    spans = (json.dumps(span("the-shop", f"sell {n}", AT + n / 200, 0.004)) for n in range(50_000))
    run.write_text("spans.jsonl", "\n".join(spans))
    made.session("demo")
    began = time.monotonic()
    report = build_report([made.folder], root=tmp_path)
    path = made.folder / "report.html"
    path.write_text(render_page(report, at=path))
    made_s = time.monotonic() - began
    counts = sorted(len(detail.events) for detail in report.details.values())

    page = look(path).page
    opened_ms = int(page.locator("html").get_attribute("data-ready"))
    page.goto(path.as_uri() + "#/tests")
    tests_ms = page.evaluate(SCROLL, ["tests-list", 30])
    rows = page.locator(".t-row").count()
    began = time.monotonic()
    page.goto(path.as_uri() + "#/test/0")
    page.wait_for_selector(".e-row")
    timeline_ms = (time.monotonic() - began) * 1000
    page.evaluate("document.querySelector('.events').id = 'events'")
    events_ms = page.evaluate(SCROLL, ["events", 23])
    zoom_ms = page.evaluate(ZOOM)
    times = {
        "made, s": made_s,
        "opened_ms": opened_ms,
        "timeline_ms": timeline_ms,
        "scroll of tests, ms": tests_ms,
        "scroll of events, ms": events_ms,
        "zoom of the timeline, ms": zoom_ms,
        "events": sum(counts),
        "of one test": counts[-1],
        "page, bytes": path.stat().st_size,
    }
    evidence.write_json("times.json", times)

    assert 200_000 <= sum(counts)
    assert 40_000 <= counts[-1]
    assert rows < 80
    assert page.locator(".e-row").count() < 80
    assert opened_ms < patience(3.0) * 1000, times
    assert timeline_ms < patience(3.0) * 1000, times
    assert max(tests_ms, events_ms, zoom_ms) < patience(0.1) * 1000, times


#: The median of steps through a whole list, each until it is painted.
SCROLL = """async ([id, height]) => {
    const box = document.getElementById(id);
    const frames = [];
    for (let step = 0; step < 40; step++) {
        const began = performance.now();
        box.scrollTop = (step * 7919 * height) % box.scrollHeight;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        frames.push(performance.now() - began);
    }
    return frames.sort((a, b) => a - b)[20];
}"""

#: The median of steps into a timeline and out again.
ZOOM = """async () => {
    const canvas = document.querySelector("canvas");
    const frames = [];
    for (const key of "++++++------++++------") {
        const began = performance.now();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        frames.push(performance.now() - began);
    }
    return frames.sort((a, b) => a - b)[11];
}"""
