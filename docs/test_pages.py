"""The pages hold together: links and anchors lead somewhere, no code hides, the site needs nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "docs"
TREE = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
#: Products write as they like, and decisions stay as they were taken.
PAGES = [
    page
    for page in TREE
    if not re.search(r"/(reference-system|foreign|decisions)/|^roster/", page)
    and (ROOT / page).exists()
]

MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(page):
    """All of a page, those inside paragraphs and cells too."""
    for token in MARKDOWN.parse((ROOT / page).read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def anchors(page):
    """What a link to a page may end with, as a forge makes it of headings."""
    parsed = MARKDOWN.parse((ROOT / page).read_text(encoding="utf-8"))
    for number, token in enumerate(parsed):
        if token.type == "heading_open":
            words = "".join(
                each.content
                for each in parsed[number + 1].children
                if each.type in {"text", "code_inline"}
            )
            yield re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """To a file of this tree, and to a heading of it."""
    targets = [token.attrs["href"] for token in tokens(page) if token.type == "link_open"]
    wrong = []
    for target in targets:
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(target)

    assert [] == wrong


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_code_is_fenced(page):
    """An indented one says no language, and nothing runs it."""
    hidden = [token.map[0] + 1 for token in tokens(page) if token.type == "code_block"]

    assert [] == hidden, f"expected fences, found indented code in lines {hidden} of {page}"


def test_every_example_is_a_chapter():
    """The site shows its README, and its code as it is."""
    examples = {path.parent.name for path in ROOT.glob("examples/*/README.md")}
    chapters = {path.stem for path in (ROOT / "docs" / "examples").glob("*.md")}

    assert examples == chapters, f"docs/examples/ has a page for each of {sorted(examples)}"


@pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built")
def test_the_site_needs_nothing_from_elsewhere():
    """No script, style, font or picture of another host: it is read offline."""
    loading = re.compile(
        r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|"""
        r"""<link[^>]+rel=["']?(?:stylesheet|preload|icon)[^>]+href=["']?(?:https?:)?//|"""
        r"""url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//"""
    )
    files = [path for kind in ("*.html", "*.css") for path in SITE.rglob(kind)]
    found = {
        str(path.relative_to(SITE)): loading.findall(path.read_text(encoding="utf-8"))
        for path in files
    }

    assert len(files) > 20
    assert {} == {name: hits for name, hits in found.items() if hits}
    assert (SITE / "searchindex.js").is_file(), "expected the index of the search in the folder"
