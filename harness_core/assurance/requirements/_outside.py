"""Tests from outside: the rules for a suite whose tests prove requirements of a running system.

Held for every suite with a ledger, for each of its files but those whose tests are all ``aside``,
besides what ``_blackbox.py`` holds for all suites:

1. The target runs: no client that calls an application in this process.
2. Traffic goes by the system's boundary (HTTP, its socket, its command line): no driver of a
   database, a queue or a store, no process of one's own. Reading rows, objects and logs through the
   suite's handle is looking; SQL that writes is not.
3. Files are made through the system's API: nothing is written, moved or removed here.
4. Nothing is patched (``_blackbox.py``) and no client is a fake.
5. Assertions are on what can be seen from outside: no import of the system (``_blackbox.py``).
6. Where a requirement names what must be refused or fail, one of its tests sees that
   (``_fail_path.py``).
7. What stands in for a third party is named in the docstring of the test that uses it, or its file.
8. The system's schemas may be imported, its logic not (``may_import`` of the suite).

A ledger lifts one of these for its whole suite in ``[ledger.allowed]``, with the reason: of a
system that is configured by files, tests write files.

Source: the integration execution contract.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from harness_core.assurance.requirements._coverage import Covering
from harness_core.assurance.requirements._problem import (
    Finding,
    Problem,
    SourceFile,
    below,
    dotted,
)
from harness_core.assurance.requirements._requirements import Ledger

#: Ways into a system that are not its HTTP API.
_DRIVERS: Final = frozenset(
    {
        *("aioboto3", "aiobotocore", "aiopg", "asyncpg", "boto3", "botocore", "docker", "minio"),
        *("multiprocessing", "psycopg", "psycopg2", "pymysql", "redis", "socket", "sqlalchemy"),
        *("sqlite3", "subprocess", "temporalio"),
    }
)
_DRIVER_CALLS: Final = frozenset({"os.popen", "os.posix_spawn", "os.spawnv", "os.system"})

#: Stand-ins for a client or a server of the system itself.
_FAKES: Final = (
    *("aioresponses", "fakeredis", "freezegun", "httpretty", "httpx.ASGITransport"),
    *("httpx.MockTransport", "httpx.WSGITransport", "moto", "pytest_httpx", "requests_mock"),
    *("respx", "responses", "temporalio.testing", "time_machine", "vcr"),
)
#: An application in the test's own process.
_IN_PROCESS: Final = (
    *("asgi_lifespan", "fastapi.testclient", "flask", "starlette.testclient"),
    *("fastapi.FastAPI", "starlette.applications", "uvicorn"),
)

_WRITING_METHODS: Final = frozenset(
    {
        *("chmod", "hardlink_to", "lchmod", "mkdir", "rename", "replace", "rmdir", "symlink_to"),
        *("touch", "unlink", "write_bytes", "write_text"),
    }
)
#: Of those, what other things than paths have too: only with a name that says path.
_AMBIGUOUS: Final = frozenset({"replace"})
_WRITING_CALLS: Final = frozenset(
    f"os.{name}"
    for name in (
        *("chmod", "chown", "link", "makedirs", "mkdir", "open", "remove", "removedirs", "rename"),
        *("replace", "rmdir", "symlink", "truncate", "unlink", "utime", "write"),
    )
)
_WRITING_MODULES: Final = ("shutil", "tempfile")
_WRITING_MODE: Final = frozenset("wax+")

_WRITING_SQL: Final = (
    *("alter", "call", "copy", "create", "delete", "do", "drop", "grant", "insert", "lock"),
    *("merge", "notify", "revoke", "truncate", "update"),
)
_SQL_METHODS: Final = frozenset({"execute", "one", "rows"})

_STANDS_IN: Final = "stand-in"


def check_outside(file: SourceFile, ledger: Ledger) -> Iterator[Problem]:
    """Rules 1 to 4 for one file of a suite."""
    found = [*_imports(file, ledger), *(each for call in file.calls for each in _call(*call))]
    yield from file.report(finding for finding in found if finding[1] not in ledger.allowed)


def _imports(file: SourceFile, ledger: Ledger) -> Iterator[Finding]:
    for node, module in file.imports:
        if below(module, *_FAKES):
            yield node, "fake-client", "a fake proves nothing of the system; ask the real one"
        elif below(module, *_IN_PROCESS):
            yield node, "in-process", "the system runs in processes of its own; ask it there"
        elif below(module, *_DRIVERS) and not below(module, *ledger.observers):
            advice = (
                f"{module.partition('.')[0]} goes past the system's boundary: act through it, look "
                f"through the suite's handle (observers in {ledger.path.name} lists what else may be "
                "looked with)"
            )
            yield node, "driver", advice
        elif below(module, *_WRITING_MODULES):
            yield _written(node, module)


def _call(node: ast.Call, name: str) -> Iterator[Finding]:
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in _DRIVER_CALLS:
        advice = f"{name} starts a process of one's own; act through the system's boundary"
        yield node, "driver", advice
    if name in _WRITING_CALLS:
        yield _written(node, name)
    elif "open" in (name, method) and _opens_for_writing(node, method=bool(method)):
        yield _written(node, "open for writing")
    elif method in _WRITING_METHODS and not _harmless(node, method):
        yield _written(node, f".{method}()")
    if method in _SQL_METHODS and (verb := _writing_verb(node)):
        yield node, "writes-rows", f"{verb!r} goes past the system's API; rows are for looking"


def _written(node: ast.AST, what: str) -> Finding:
    advice = f"{what}: have the system make, change and remove files through its API"
    return node, "local-write", advice


def _opens_for_writing(node: ast.Call, *, method: bool) -> bool:
    """``open(path, "w")``, ``path.open("w")``; a mode that is not written out counts as writing."""
    position = 0 if method else 1
    modes: list[ast.expr] = [each.value for each in node.keywords if each.arg == "mode"]
    modes += node.args[position : position + 1]
    if not modes:
        return False
    mode = modes[0]
    if not isinstance(mode, ast.Constant):
        return not method  # other things than files are opened by methods of that name
    return isinstance(mode.value, str) and bool(_WRITING_MODE & set(mode.value))


def _harmless(node: ast.Call, method: str) -> bool:
    """Evidence is the harness's own; ``text.replace(a, b)`` has two arguments, a path's has one."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node
    root = dotted(owner).partition(".")[0]
    return root == "evidence" or (method in _AMBIGUOUS and len(node.args) != 1)


def _writing_verb(node: ast.Call) -> str:
    """The SQL verb of a literal statement that writes, in words of the statement; empty for none."""
    match node.args[:1]:
        case [
            ast.Constant(value=str(text))
            | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_])
        ]:
            words = [word.strip("(;") for word in text.lower().split()]
        case _:
            return ""
    if words and words[0] in _WRITING_SQL:
        return words[0]
    return "with" if words[:1] == ["with"] and {"insert", "update", "delete"} & set(words) else ""


def check_stand_ins(test: Covering, ledger: Ledger) -> Iterator[Problem]:
    """Rule 7: a test that uses a stand-in names it in its docstring, or its file does."""
    arguments = {each.arg for each in (*test.function.args.args, *test.function.args.kwonlyargs)}
    methods = {node.attr for node in ast.walk(test.function) if isinstance(node, ast.Attribute)}
    documented = [ast.get_docstring(node) or "" for node in (test.function, test.file.tree)]
    text = " ".join(" ".join(documented).lower().split())
    for name, third_party in ledger.stand_ins.items():
        if name in arguments | methods and not (_STANDS_IN in text and third_party.lower() in text):
            advice = (
                f"{name} stands in for {third_party}: say so in the docstring ({_STANDS_IN!r} and "
                f"{third_party!r}), and why it must"
            )
            yield from test.report("stand-in", advice)
