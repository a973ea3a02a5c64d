"""A Markdown file as its level-2 sections and what stands in each: prose, lists, tables.

CommonMark with tables, by markdown-it. A heading is of the document when it stands in nothing else: in a
list or a quote it is part of that, in a code fence or an HTML comment it is none. ``Title`` with a line
of ``---`` below is a heading of level 2 as ``## Title`` is; ``<h2>`` is HTML, which is not looked into.

Blocks are parsed alone, and the inside of a line only where a reader needs it: the parser's time for the
latter grows with the square of some texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from markdown_it import MarkdownIt
from markdown_it.token import Token

#: The longest heading, list entry or cell whose inside is parsed; the rest of one that is longer is text.
INLINE_CHARS = 2_000

#: Without one of these a text on one line is shown as it is written.
_MARKUP = frozenset("\\`*_[]<>&!\n")

_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_INLINE = MarkdownIt("commonmark")


class BlockKind(StrEnum):
    PROSE = "prose"
    BULLETS = "list"
    NUMBERED = "numbered list"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry of a list, or a row of a table below its header.

    Attributes:
        line: of the file, from 1.
        name: its first code span; else the text before a colon, or the first cell.
        fields: what is written as ``key: value`` (parted by ``;`` or on lines or entries of their own), or
            the cells by the header's names; keys in lower case.
        texts: all that is written in it, piece by piece.
    """

    line: int
    name: str
    fields: dict[str, str]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a section that says something; ``rows`` of lists and tables that are not empty."""

    kind: BlockKind
    line: int
    rows: tuple[Row, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """From one level-2 heading to the next.

    Attributes:
        title: the heading's text as it is shown, or its source where it has markup in it.
    """

    title: str
    line: int
    blocks: tuple[Block, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Of all its lists and tables, in order."""
        return tuple(row for block in self.blocks for row in block.rows)


def sections_of(text: str) -> list[Section]:
    """The level-2 sections of a document; what stands before the first is in none."""
    tokens = _BLOCKS.parse(text)
    tops = list(_tops(tokens))
    starts = [
        index
        for index, top in enumerate(tops)
        if top[0].type == "heading_open" and top[0].tag == "h2"
    ]
    sections = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(tops)
        heading = tops[start]
        blocks = [block for top in tops[start + 1 : end] for block in _blocks(top)]
        title = _title(heading[1].content)
        sections.append(Section(title=title, line=_line(heading[0]), blocks=tuple(blocks)))
    return sections


def _tops(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The blocks of the document's own level, each with all that is in it."""
    gathered: list[Token] = []
    for token in tokens:
        gathered.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield gathered
            gathered = []


def _blocks(top: list[Token]) -> Iterator[Block]:
    kind, line = top[0].type, _line(top[0])
    if kind == "paragraph_open" and (text := top[1].content.strip()):
        yield Block(kind=BlockKind.PROSE, line=line, text=text)
    elif kind in ("bullet_list_open", "ordered_list_open"):
        rows = tuple(row for item in _items(top) if (row := _entry(item)))
        numbered = kind == "ordered_list_open"
        if rows:
            yield Block(
                kind=BlockKind.NUMBERED if numbered else BlockKind.BULLETS, line=line, rows=rows
            )
    elif kind == "table_open":
        header, *body = _cells(top)
        rows = tuple(row for cells in body if (row := _table_row(header, cells)))
        if rows:
            yield Block(kind=BlockKind.TABLE, line=line, rows=rows)


def _items(top: list[Token]) -> Iterator[list[Token]]:
    """The entries of a list, each with all that is in it."""
    gathered: list[Token] = []
    for token in top[1:-1]:
        gathered.append(token)
        if token.type == "list_item_close" and token.level == 1:
            yield gathered
            gathered = []


def _entry(item: list[Token]) -> Row | None:
    """An entry of a list; none if nothing is written in it."""
    inlines = [token for token in item if token.type == "inline" and token.content.strip()]
    code = [token for token in item if token.type in ("fence", "code_block")]
    if not inlines:
        text = next((token.content.strip() for token in code if token.content.strip()), "")
        return Row(line=_line(item[0]), name=text, fields={}, texts=(text,)) if text else None
    name, rest = _split_name(inlines[0].content)
    pieces = [
        piece for text in (rest, *(each.content for each in inlines[1:])) for piece in _pieces(text)
    ]
    fields: dict[str, str] = {}
    for piece in pieces:
        key, colon, value = piece.partition(":")
        if colon and key.strip():
            fields.setdefault(_plain(key).lower(), _plain(value))
    texts = tuple(_plain(each) for each in (name, *pieces))
    return Row(line=_line(item[0]), name=name, fields=fields, texts=texts)


def _split_name(content: str) -> tuple[str, str]:
    """The name of an entry, and what follows it."""
    code = _first_code(content)
    if code is not None:
        _, _, rest = content[content.index("`") :].partition(code)
        return code, rest.lstrip("`").lstrip(" :,;-–—")
    first = _pieces(content)[0]
    before, colon, _ = first.partition(":")
    if colon and before.strip():
        return _plain(before), content.partition(":")[2]
    return _plain(first), content.partition(first)[2]


def _pieces(text: str) -> list[str]:
    """The parts of a text that stand by themselves."""
    return [
        piece.strip() for line in text.split("\n") for piece in line.split(";") if piece.strip()
    ]


def _cells(top: list[Token]) -> list[list[Token]]:
    """The cells of a table, row by row."""
    rows: list[list[Token]] = []
    for token in top:
        if token.type == "tr_open":
            rows.append([])
            line = token
        elif token.type == "inline":
            token.map = token.map or line.map
            rows[-1].append(token)
    return rows


def _table_row(header: list[Token], cells: list[Token]) -> Row | None:
    """A row of a table; none if all its cells are empty."""
    texts = tuple(_plain(each.content) for each in cells)
    if not any(texts):
        return None
    names = [_plain(each.content).lower() for each in header]
    code = _first_code(cells[0].content)
    return Row(
        line=_line(cells[0]),
        name=code if code is not None else texts[0],
        fields=dict(zip(names, texts, strict=False)),
        texts=texts,
    )


def _inside(content: str) -> list[Token]:
    """What a line is made of."""
    tokens = _INLINE.parseInline(content[:INLINE_CHARS])
    return tokens[0].children or []


def _title(content: str) -> str:
    """A heading's text; its source if there is more in it than text."""
    if _MARKUP.isdisjoint(content):
        return content
    tokens = _inside(content)
    if len(content) > INLINE_CHARS or any(token.type != "text" for token in tokens):
        return content
    return "".join(token.content for token in tokens)


def _first_code(content: str) -> str | None:
    """The first code span of a text."""
    if "`" not in content:
        return None
    return next((each.content for each in _inside(content) if each.type == "code_inline"), None)


def _plain(content: str) -> str:
    """A text without its markup."""
    if _MARKUP.isdisjoint(content):
        return content.strip()
    kept = (each.content if each.content else " " for each in _inside(content) if each.nesting == 0)
    return "".join(kept).strip() + content[INLINE_CHARS:]


def _line(token: Token) -> int:
    return (token.map[0] if token.map else 0) + 1
