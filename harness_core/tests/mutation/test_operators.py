"""Each operator, in a table: a line of a product, and the lines that it may become."""

import pytest

from harness_core.assurance.mutation.operators import OPERATORS, walk

#: operator, the body of a function, what its changed places are replaced by.
ROWS = [
    ("limit-off-by-one", "return a < b", ["<="]),
    ("limit-off-by-one", "return a >= b", [">"]),
    ("comparison", "return a == b", ["!="]),
    ("comparison", "return a not in b", ["in"]),
    ("comparison", "return a < b", [">="]),
    ("arithmetic", "return a + b", ["-"]),
    ("arithmetic", 'return a + "x"', [""]),
    ("arithmetic", "a += 1", ["-="]),
    ("boolean", "return a and b", ["or", "a", "b"]),
    ("boolean", "return not a", ["a"]),
    ("condition-negated", "if a:\n  pass", ["(not (a))"]),
    ("constant", "a = 3", ["4"]),
    ("constant", "a = 0.5", ["5.0"]),
    ("constant", "a = True", ["False"]),
    ("arguments-swapped", "f(a, b)", ["b, a"]),
    ("arguments-swapped", "isinstance(a, b)", []),
    ("keyword-dropped", "f(a, x=1)", [""]),
    ("keyword-dropped", "needy(need=1, other=2)", [""]),
    ("normalisation", "return a.b().strip()", [""]),
    ("any-all", "return any(a)", ["all"]),
    ("slice", "return a[:b]", ["(b) + 1"]),
    ("statement-removed", "f()", ["pass"]),
    ("statement-removed", "self.a = 1", ["pass"]),
    ("statement-removed", "a = 1", []),
    ("commit-left-out", "db.commit()", ["pass"]),
    ("check-left-out", "raise ValueError", ["pass"]),
    ("return-value", "return (a)", [" None"]),
    ("return-value", "return None", []),
    ("order-swapped", "await f()\n g()", ["g()\n await f()"]),
    ("error-swallowed", "try:\n  f()\n except E:\n  g()", ["pass"]),
    ("error-swallowed", "try:\n  f()\n except E:\n  pass", []),
    ("handler-narrowed", "try:\n  f()\n except E:\n  g()", ["()"]),
    ("handler-narrowed", "try:\n  f()\n except (A, B):\n  g()", ["B,", "A,"]),
    ("finally-skipped", "try:\n  f()\n finally:\n  g()", ["pass"]),
    ("lock-narrowed", "with self.lock:\n  f()", ["with self.lock: pass\n if True:"]),
    ("lock-narrowed", "with open(a):\n  f()", []),
    ("transaction-left-out", "with db.transaction():\n  f()", ["if True:"]),
    ("retry-doubled", "for attempt in range(n):\n  f()", ["(n) * 2"]),
    ("retry-doubled", "retries = 3", ["6"]),
    ("timeout-removed", "with move_on_after(a):\n  f()", ['float("inf")']),
    ("deadline-removed", "with fail_after(a):\n  f()", ["if True:"]),
    ("timeout-removed", "f(timeout=a)", ["None"]),
    ("timezone-dropped", "return datetime.now(UTC)", [""]),
    ("timezone-dropped", "return a.astimezone(b)", [""]),
    ("sort-reversed", "return sorted(a)", [", reverse=True"]),
    ("sort-reversed", "a.sort(key=b, reverse=True)", [""]),
    ("environment-lost", 'return os.environ["A"]', ["_LOST"]),
    ("environment-lost", 'return os.environ.get("A")', ["_LOST"]),
    ("key-misspelt", 'return a["b"]', ["_x"]),
    ("key-misspelt", 'return a.get("b", c)', ["_x"]),
    ("key-misspelt", 'return {"b": c}', ["_x"]),
    ("text-emptied", 'f("b")', [""]),
    ("text-emptied", 'raise E("b")', []),
    ("part-left-out", 'return f"{a} of {b}"', ["", ""]),
    (
        "sql",
        'f("SELECT a FROM t WHERE b = ? ORDER BY c DESC LIMIT 10")',
        ["WHERE (b = ? OR TRUE) ", " ", "ASC", "LIMIT 10 + 1", ""],
    ),
    ("sql", 'f("SELECT a FROM t ORDER BY c")', ["", "ORDER BY c DESC"]),
    ("sql", 'f("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING")', [""]),
    ("sql", 'f("SELECT a FROM t FOR UPDATE SKIP LOCKED")', ["", ""]),
]


def changes(source, operator="", **more):
    """What an operator makes of a source."""
    found = walk(source.encode(), required={"needy": frozenset({"need"})}, **more)
    return [each for each in found if not operator or each.operator == operator]


@pytest.mark.parametrize(
    ("operator", "body", "expected"), ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS]
)
def test_an_operator_changes_what_it_is_for(operator, body, expected):
    """Each place becomes what the table says, and what comes out is Python."""
    source = f"async def function(a, b):\n {body}\n"

    found = changes(source, operator)

    assert expected == [each.change.text for each in found]
    for each in found:
        change = each.change
        damaged = source.encode()[: change.start] + change.text.encode()
        compile(damaged + source.encode()[change.end :], "damaged", "exec")


def test_every_operator_is_in_the_table():
    """None is without a row."""
    names = {name for entries in OPERATORS.values() for name, _ in entries}

    assert names == {row[0] for row in ROWS} | {"default-changed"}


def test_a_default_matters_where_its_function_runs():
    """Its line is that of the signature, which runs on import; the tests are those of the body."""
    (found,) = changes("def f(a=1):\n\n    b\n    c\n", "default-changed")

    assert (1, 3, 4, False) == (found.line, found.first, found.last, found.at_import)


@pytest.mark.parametrize(
    "source",
    [
        '"""text"""',
        'def f():\n    """text"""',
        "import a",
        "__all__ = ['a']",
        "def f(a: b[1]) -> c[2]: ...",
        "@cache(maxsize=1)\ndef f(): ...",
        'if TYPE_CHECKING:\n    a = b["c"]',
        'if __name__ == "__main__":\n    main(1)',
        'def f():\n    log.info("a", b=1)\n    self._logger.error("a")',
        'def f():\n    if faults.on("a"):\n        g(1)',
        'def f():\n    h = [1] if faults.on("a") else []',
        'def f():\n    if not faults.on("a"):\n        pass\n    else:\n        g(1)',
        'def f():\n    if b and faults.on("a"):\n        g(1)',
        "def f():\n    faults.active()",
        'def f():\n    a = sorted(n for n in faults.active() if n.startswith("b"))',
    ],
)
def test_what_no_test_could_notice_is_left_alone(source):
    """Docstrings, annotations, logs, and what runs under a planted fault alone."""
    found = changes(source, switches={"faults"})

    assert found == []


def test_what_runs_without_a_fault_is_changed():
    """The branch of a switch that the product takes is as good as any other code."""
    source = 'def f():\n    if faults.on("a"):\n        bad()\n    else:\n        good()\n'

    assert ["good() left out"] == [
        each.change.what for each in changes(source, switches={"faults"})
    ]


def test_texts_are_counted_in_bytes():
    """A file with letters of several bytes is changed where it should be."""
    source = 'def f(a):\n    g("é", "日本", a < 1)\n'

    (found,) = changes(source, "limit-off-by-one")

    assert source.encode()[found.change.start : found.change.end] == b"<"
