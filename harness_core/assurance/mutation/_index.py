"""All mutants of a product, built once: ids that stay, and the change of one file that each one is."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import libcst
import msgspec

from harness_core.assurance.agent import Damage
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation.operators import Found, required_of, walk
from harness_core.base.errors import BadInput

#: What an index was made by; another number makes it anew.
_VERSION: Final = 1

_ID_DIGITS: Final = 10
_CONTEXT_LINES: Final = 2


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the product.

    Attributes:
        id: the same as long as its function has the same changes of this operator before it.
        file: as :class:`Product` names it.
        function: the qualified name of the function around it.
        operator: the name of the operator.
        what: what is wrong then, in a few words.
        line: where it is, from 1.
        first, last: the lines of which one must run for it to matter.
        at_import: they run when the module is imported.
        start, end: the piece that is replaced, in bytes.
        text: what takes its place.
        diff_hash: of what is replaced by what.
        sha256: of the file.
    """

    id: str
    file: str
    function: str
    operator: str
    what: str
    line: int
    first: int
    last: int
    at_import: bool
    start: int
    end: int
    text: str
    diff_hash: str
    sha256: str

    def damage(self, product: Product) -> Damage:
        """What the agent is asked for."""
        return Damage(
            id=self.id,
            path=str(product.files[self.file]),
            sha256=self.sha256,
            start=self.start,
            end=self.end,
            text=self.text,
        )

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, product: Product) -> str:
        """The change as a unified diff."""
        source = product.files[self.file].read_bytes()
        before = source.decode().splitlines(keepends=True)
        after = self.apply(source).decode().splitlines(keepends=True)
        names = (f"a/{self.file}", f"b/{self.file}")
        return "".join(difflib.unified_diff(before, after, *names, n=_CONTEXT_LINES))


class _Stored(msgspec.Struct, kw_only=True):
    version: int
    fingerprint: str
    mutants: tuple[Mutant, ...]


def load_index(
    product: Product, path: Path, *, say: Callable[[str], None] = lambda _line: None
) -> tuple[Mutant, ...]:
    """The mutants of a product as it is now; from the file when that is of the same code.

    Raises:
        BadInput: a file of the product cannot be parsed.
    """
    fingerprint = product.fingerprint
    if path.exists():
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
        except msgspec.DecodeError:
            pass  # made by another version
        else:
            if stored.version == _VERSION and stored.fingerprint == fingerprint:
                return stored.mutants
    say(f"finding what can be changed in {len(product.files)} files")
    mutants = tuple(build_index(product))
    new = _Stored(version=_VERSION, fingerprint=fingerprint, mutants=mutants)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(new))
    return mutants


def build_index(product: Product) -> Sequence[Mutant]:
    """Every mutant of a product, file by file.

    Raises:
        BadInput: a file cannot be parsed.
    """
    sources = {name: path.read_bytes() for name, path in product.files.items()}
    switches = product.switches()
    required: dict[str, frozenset[str]] = {}
    for name, source in sources.items():
        try:
            own = required_of([source])
        except (libcst.ParserSyntaxError, UnicodeDecodeError) as error:
            raise BadInput(
                product.files[name], found=str(error), expected="Python that libcst can parse"
            ) from error
        for function, needed in own.items():
            required[function] = required.get(function, frozenset()) | needed
    mutants = []
    for name, source in sources.items():
        if product.files[name].stem in switches:
            continue
        sha256 = hashlib.sha256(source).hexdigest()
        for found in walk(source, switches=switches, required=required):
            mutants.append(_mutant(name, source, sha256, found))  # noqa: PERF401 - two levels
    return mutants


def _mutant(name: str, source: bytes, sha256: str, found: Found) -> Mutant:
    change = found.change
    place = json.dumps([name, found.function, found.operator, found.occurrence])
    replaced = source[change.start : change.end].decode()
    return Mutant(
        id=hashlib.sha256(place.encode()).hexdigest()[:_ID_DIGITS],
        file=name,
        function=found.function,
        operator=found.operator,
        what=change.what,
        line=found.line,
        first=found.first,
        last=found.last,
        at_import=found.at_import,
        start=change.start,
        end=change.end,
        text=change.text,
        diff_hash=hashlib.sha256(json.dumps([replaced, change.text]).encode()).hexdigest()[:12],
        sha256=sha256,
    )
