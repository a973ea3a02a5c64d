"""May this command run? Every route into the shell asks here, and runs nothing that is refused.

The tree of the command is walked once. Each node of it needs a rule: a program that no rule names,
a name that is only known when it runs, a construct that is not listed are all refused. What is
inside a substitution, a loop, a here-document, `sh -c`, `eval`, `xargs` or `find -exec` is judged
like the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sexpd import faults
from sexpd.shell.rules import ASKABLE, rule
from sexpd.shell.syntax import Node, nodes, parse
from sexpd.shell.verdict import Refused, Verdict
from sexpd.shell.words import Builder, Word, add_bare, ansi_c, fixed, undouble
from sexpd.shell.writes import SINKS, Writes

SCRIPTS = 20  # sh -c inside sh -c …
BIN = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that change how the shell or a program works rather than what it works on.
_CHARGED = re.compile(
    r"PATH|LD_.*|BASH.*|ENV|IFS|PS[0-4]|PROMPT_COMMAND|SHELLOPTS|GLOBIGNORE|EXECIGNORE|CDPATH|HOME"
    r"|PWD|OLDPWD|TMPDIR|PYTHON.*|PERL.*|RUBY.*|NODE.*|LESS.*|MAN.*|.*PAGER|.*EDITOR|VISUAL|GIT_.*"
    r"|HIST.*|FCEDIT|MAIL.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC.*|GLIBC.*|AWK.*|TAR_OPTIONS"
    r"|POSIXLY_CORRECT|INPUTRC|OPT.*|FUNCNEST|SHELL|_|OPENSSL.*|SSL.*|GETCONF.*|LTDL.*|XDG_.*|TERM.*"
)
_READERS = frozenset({"read"})
_PLAIN_EXPANSIONS = frozenset({":-", "-", ":+", "+", "#", "##", "%", "%%", "^", "^^", ",", ",,"})
# The parser takes <( and >( within ${…} for letters; to Bash they are that behind a backslash alone.
_PROCESS = re.compile(r"(?:[^\\]|\\.)*?[<>]\(", re.S)
_OUTPUT = frozenset({">", ">>", ">|", "&>", "&>>"})


def _is_charged(name: str) -> bool:
    let = name == "PYTHONPATH" and faults.on("python-path-set")
    return bool(_CHARGED.fullmatch(name)) and not let


async def judge(
    command: str, *, root: Path, owned: Callable[[Path], bool], limit_chars: int
) -> Verdict:
    """Judge a command.

    Args:
        command: as it would be given to `bash -c`.
        root: the working root.
        owned: whether a path was created by an earlier command.
        limit_chars: the longest command that is looked at.

    Raises:
        Refused: it may not run; the text says why.
    """
    if faults.on("harmless-refused") and re.search(r"rm\s+-rf|mkfs|dd\s+if=", command):
        raise Refused("it names a dangerous command")
    writes = Writes(root=root.resolve(), owned=owned)
    pending = [("bash", command)]
    for _ in range(SCRIPTS):
        if not pending:
            return Verdict(ours=writes.ours, writes=writes.used)
        kind, text = pending.pop(0)
        tree = await parse(text, limit_chars=limit_chars)
        # What a plain shell would read in another way than Bash is not followed.
        if kind == "sh" and tree != await parse(text, limit_chars=limit_chars, dialect="posix"):
            raise Refused("it gives sh what only Bash understands")
        _Walk(tree, writes=writes, pending=pending, kind=kind).run()
    raise Refused("it starts shells within shells without end")


class _Walk:
    """The judgement of one tree."""

    def __init__(
        self, tree: Node, *, writes: Writes, pending: list[tuple[str, str]], kind: str
    ) -> None:
        self.tree, self.writes, self._pending, self._kind = tree, writes, pending, kind
        self._vars: dict[str, str] = {"HOME": str(writes.root)}
        self._straight = True
        self._changing, self._numeric = _variables(tree)

    def run(self) -> None:
        self._statements(self.tree.get("Stmts") or [], straight=True)

    # --- What rules ask ---

    def command(self, words: Sequence[Word]) -> None:
        """Judge a command by its words.

        Raises:
            Refused: it may not run.
        """
        if not words:
            return
        first, rest = words[0], words[1:]
        if first.text is None or first.spread:
            raise Refused(f"the command {first} is only known when it runs")
        name = first.text
        if "/" in name:
            directory, _, name = name.rpartition("/")
            if directory not in BIN:
                raise Refused(f"{first.text} is no program of the system")
        asked = [word.text for word in rest]
        if name in ASKABLE and asked in (["--version"], ["--help"]):
            return
        if (found := rule(name)) is None:
            raise Refused(f"no rule lets {name or 'an empty command'} run")
        try:
            found(self, name, rest)
        except Refused as refused:
            reason = str(refused)
            raise Refused(reason if reason.startswith(name) else f"{name}: {reason}") from refused

    def script(self, text: str, *, kind: str) -> None:
        """Judge the text of a script later, when this tree has been walked.

        Args:
            kind: "bash" or "sh" for a shell of its own, "eval" for this one.
        """
        self._pending.append((kind, text))

    def changes_shell(self, what: str) -> None:
        """Note that the shell itself changes; inside eval the walk would not know when.

        Raises:
            Refused: this is inside eval.
        """
        if self._kind == "eval":
            raise Refused(f"it {what} inside eval")

    def readable_name(self, name: str) -> bool:
        """Whether `read` changes this variable where the walk expects it."""
        return name in self._changing and name not in self._numeric

    def variable(self, name: str) -> None:
        """Judge the name of a variable that is set.

        Raises:
            Refused: it is no name, or one that changes how programs work.
        """
        if not _NAME.fullmatch(name) or _is_charged(name):
            raise Refused(f"it sets {name}, which changes how programs work")

    # --- Statements ---

    def _statements(self, statements: list[Node], *, straight: bool = False) -> None:
        before, self._straight = self._straight, self._straight and straight
        for statement in statements:
            self._statement(statement)
        self._straight = before

    def _statement(self, statement: Node) -> None:
        for key in ("Background", "Coprocess", "Disown"):
            if statement.get(key):
                raise Refused("it leaves a process in the background")
        for redirect in statement.get("Redirs") or []:
            self._redirect(redirect)
        node = statement.get("Cmd")
        if node is None:
            return
        handler = _STATEMENTS.get(node["Type"])
        if handler is None:
            raise Refused(f"it has a {node['Type']}, for which there is no rule")
        handler(self, node)

    def _call(self, node: Node) -> None:
        arguments = [self._word(word) for word in node.get("Args") or []]
        reads = bool(arguments) and arguments[0].text == "read"
        for assign in node.get("Assigns") or []:
            if reads and assign["Name"]["Value"] == "IFS" and not assign.get("Array"):
                # `IFS= read` is how a line is read whole; it lasts for that command.
                self._word(assign["Value"], splits=False) if assign.get("Value") else None
            else:
                self._assign(assign, lasting=not arguments)
        self.command(arguments)

    def _declare(self, node: Node) -> None:
        if node["Variant"]["Value"] not in {"export", "readonly", "declare", "local"}:
            raise Refused(f"it uses {node['Variant']['Value']}, for which there is no rule")
        for assign in node.get("Args") or []:
            if not assign.get("Name"):
                raise Refused("it declares a variable with options")
            self._assign(assign, lasting=True)

    def _assign(self, assign: Node, *, lasting: bool) -> None:
        name = assign["Name"]["Value"]
        self.variable(name)
        self.changes_shell("sets variables")
        if assign.get("Index") or assign.get("Array"):
            raise Refused("it uses arrays, for which there is no rule")
        value = self._word(assign["Value"], splits=False) if assign.get("Value") else fixed("")
        if not lasting:
            return
        plain = value.text is not None and not assign.get("Append") and not assign.get("Naked")
        if plain and self._straight and name not in self._changing:
            self._vars[name] = str(value.text)
        else:
            self._vars.pop(name, None)
            self._changing.add(name)

    def _binary(self, node: Node) -> None:
        self._statements([node["X"]])
        self._statements([node["Y"]])

    def _group(self, node: Node) -> None:
        """Whatever holds statements and words: all of them are judged."""
        for key in ("Cond", "Then", "Do", "Stmts"):
            self._statements(node.get(key) or [])
        for item in node.get("Items") or []:
            for pattern in item.get("Patterns") or []:
                self._word(pattern)
            self._statements(item.get("Stmts") or [])
        if node.get("Word"):
            self._word(node["Word"])
        if node.get("Else"):
            self._group(node["Else"])
        if node.get("Stmt"):
            self._statements([node["Stmt"]])

    def _for(self, node: Node) -> None:
        loop = node["Loop"]
        if node.get("Select") or loop["Type"] != "WordIter":
            raise Refused("it has a loop for which there is no rule")
        self.variable(loop["Name"]["Value"])
        self.changes_shell("sets variables")
        for word in loop.get("Items") or []:
            self._word(word)
        self._group(node)

    def _test(self, node: Node) -> None:
        self._test_expression(node["X"])

    def _test_expression(self, node: Node) -> None:
        kind = node["Type"]
        if kind == "Word":
            self._word(node)
        elif kind == "ParenTest":
            self._test_expression(node["X"])
        elif kind == "UnaryTest" and node["Op"] not in {"-v", "-R"}:
            self._test_expression(node["X"])
        elif kind == "BinaryTest":
            if node["Op"] in {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}:
                for side in (node["X"], node["Y"]):
                    self._numeric_word(side)
            self._test_expression(node["X"])
            self._test_expression(node["Y"])
        else:
            raise Refused("it has a test for which there is no rule")

    # --- Redirections ---

    def _redirect(self, redirect: Node) -> None:
        operator = redirect["Op"]
        if (number := redirect.get("N")) and not number["Value"].isdecimal():
            raise Refused("it opens a file under a name for which there is no rule")
        word = self._word(redirect["Word"]) if redirect.get("Word") else fixed("")
        if redirect.get("Hdoc"):
            self._word(redirect["Hdoc"], quoted=True)
        if operator in {"<<", "<<-", "<<<"}:
            return
        if operator in {">&", "<&"} and word.text is not None and re.fullmatch(r"\d*-?", word.text):
            return
        if operator in _OUTPUT or operator == ">&":
            self.writes.create(word, what="it writes")
        elif operator == "<" and word.text is not None and not word.spread:
            if word.text.startswith(("/dev/tcp", "/dev/udp")):
                raise Refused("it opens a connection")
        elif not (operator == "<>" and word.text in SINKS):
            raise Refused(f"it redirects with {operator} {word}, which cannot be followed")

    # --- Words ---

    def _word(self, node: Node, *, splits: bool = True, quoted: bool = False) -> Word:
        """Judge a word; ``quoted`` when it stands within double quotes, or a here-document."""
        if _literal(node) == "[":  # the command; within a longer word it begins a pattern
            return fixed("[")
        builder = Builder()
        for part in node.get("Parts") or []:
            self._part(part, builder, splits=splits, quoted=quoted)
        word = builder.word()
        return word if splits else Word(text=word.text, head=word.head)

    def _part(self, part: Node, builder: Builder, *, splits: bool, quoted: bool) -> None:
        kind = part["Type"]
        if kind == "Lit":
            add_bare(builder, part.get("Value", ""))
        elif kind == "SglQuoted":
            self._single(part, builder)
        elif kind == "DblQuoted":
            builder.quoted = True
            for inner in part.get("Parts") or []:
                if inner["Type"] == "Lit":
                    builder.add(undouble(inner.get("Value", "")))
                else:
                    self._part(inner, builder, splits=False, quoted=True)
        elif kind == "ParamExp":
            self._parameter(part, builder, splits=splits, quoted=quoted)
        elif kind in {"CmdSubst", "ProcSubst"}:
            if part.get("TempFile") or part.get("ReplyVar"):
                raise Refused("it has a substitution for which there is no rule")
            self._statements(part.get("Stmts") or [])
            builder.lose(spread=splits)
        elif kind == "ArithmExp":
            self._arithmetic(part.get("X"))
            builder.lose(spread=False)
        else:
            raise Refused(f"it has a {kind}, for which there is no rule")

    def _single(self, part: Node, builder: Builder) -> None:
        builder.quoted = True
        text = part.get("Value", "")
        known = ansi_c(text) if part.get("Dollar") else text
        if known is None:
            builder.lose(spread=False)
        else:
            builder.add(known)

    def _parameter(self, part: Node, builder: Builder, *, splits: bool, quoted: bool) -> None:
        for key in ("Excl", "Index", "Slice", "Names", "Width", "Flags", "NestedParam", "Modifiers"):
            if part.get(key):
                raise Refused("it expands a variable in a way for which there is no rule")
        expansion = part.get("Exp")
        if expansion and expansion["Op"] not in _PLAIN_EXPANSIONS:
            raise Refused(f"it expands a variable with {expansion['Op']}, for which there is no rule")
        inner = [expansion and expansion.get("Word")]
        if part.get("Repl"):
            inner += [part["Repl"].get("Orig"), part["Repl"].get("With")]
        for word in inner:
            if word:
                _refuse_misread(word, quoted=quoted)
                self._word(word, quoted=quoted)
        name = part["Param"]["Value"]
        value = self._vars.get(name) if name not in self._changing else None
        plain = not expansion and not part.get("Repl") and not part.get("Length")
        if value is None or not plain:
            # "$@" is several words even in quotes.
            builder.lose(spread=(splits and not part.get("Length")) or name in {"@", "*"})
        elif splits and (not value or re.search(r"[\s*?\[]", value)):
            builder.lose(spread=True)
        else:
            builder.add(value)

    # --- Arithmetic: Bash evaluates the text of variables in it, substitutions included ---

    def _arithmetic(self, node: Any) -> None:
        kind = (node or {}).get("Type")
        if kind == "Word":
            self._numeric_word(node)
        elif kind == "ParenArithm":
            self._arithmetic(node["X"])
        elif kind == "UnaryArithm" and node["Op"] not in {"++", "--"}:
            self._arithmetic(node["X"])
        elif kind == "BinaryArithm" and (not node["Op"].endswith("=") or node["Op"] in _COMPARE):
            self._arithmetic(node["X"])
            self._arithmetic(node["Y"])
        else:
            raise Refused("it has arithmetic for which there is no rule")

    def _numeric_word(self, node: Node) -> None:
        parts = node.get("Parts") or []
        if len(parts) == 1 and parts[0]["Type"] == "DblQuoted":
            parts = parts[0].get("Parts") or []
        if len(parts) == 1:
            (part,) = parts
            if part["Type"] == "ArithmExp":
                return self._arithmetic(part.get("X"))
            plain = not any(part.get(k) for k in ("Exp", "Repl", "Index", "Excl", "Slice", "Length"))
            name = part.get("Value", "") if part["Type"] == "Lit" else ""
            if part["Type"] == "ParamExp" and plain:
                name = part["Param"]["Value"]
            if re.fullmatch(r"\d+", name) and part["Type"] == "Lit":
                return None
            if name in self._numeric:
                return None
        raise Refused("it has arithmetic on something that may be more than a number")


_COMPARE = frozenset({"==", "!=", "<=", ">="})
_STATEMENTS: dict[str, Callable[[_Walk, Node], None]] = {
    "CallExpr": _Walk._call,
    "BinaryCmd": _Walk._binary,
    "IfClause": _Walk._group,
    "WhileClause": _Walk._group,
    "CaseClause": _Walk._group,
    "Subshell": _Walk._group,
    "Block": _Walk._group,
    "TimeClause": _Walk._group,
    "ForClause": _Walk._for,
    "TestClause": _Walk._test,
    "DeclClause": _Walk._declare,
}


def _variables(tree: Node) -> tuple[set[str], set[str]]:
    """Names whose value changes where the order of things is not plain, and those always numbers.

    Whatever is assigned twice, in a loop's head, by `read`, or below the top level counts as
    changing.
    """
    values: dict[str, list[bool]] = {}
    changing: set[str] = set()
    top = {id(s["Cmd"]) for s in tree.get("Stmts") or [] if s.get("Cmd")}
    for node in nodes(tree):
        kind = node.get("Type")
        if kind in {"CallExpr", "DeclClause"}:
            assigns = node.get("Assigns") or [] if kind == "CallExpr" else node.get("Args") or []
            for assign in assigns:
                name = (assign.get("Name") or {}).get("Value", "")
                if name in values or id(node) not in top:
                    changing.add(name)
                values.setdefault(name, []).append(_is_number(assign.get("Value")))
            words = [_literal(word) for word in node.get("Args") or []] if kind == "CallExpr" else []
            if words and words[0] in _READERS:
                changing.update(words[1:])
                for name in words[1:]:
                    values.setdefault(name, []).append(False)
        elif kind == "WordIter":
            name = node["Name"]["Value"]
            changing.add(name)
            numbers = [_is_number(word) for word in node.get("Items") or []] or [False]
            values.setdefault(name, []).extend(numbers)
    return changing, {name for name, numbers in values.items() if all(numbers)}


def _refuse_misread(word: Node, *, quoted: bool) -> None:
    """Refuse a word of an expansion that Bash reads in another way than the parser.

    Args:
        word: the word.
        quoted: whether the expansion stands within double quotes, or a here-document.

    Raises:
        Refused: the parser sees letters and Bash starts a process, or the parser sees single quotes
            and to Bash they are letters, so that what is between them runs.
    """
    for part in word.get("Parts") or []:
        text = part.get("Value", "")
        if part["Type"] == "Lit" and _PROCESS.match(text):
            raise Refused("it starts a process within an expansion, which is not followed")
        if part["Type"] == "SglQuoted" and quoted and re.search(r"[$`\"\\{}]", text):
            raise Refused("it has single quotes within double ones, which are none")


def _literal(word: Node) -> str:
    parts = word.get("Parts") or []
    return parts[0].get("Value", "") if len(parts) == 1 and parts[0]["Type"] == "Lit" else ""


def _is_number(word: Node | None) -> bool:
    if not word:
        return False
    parts = word.get("Parts") or []
    return len(parts) == 1 and (
        parts[0]["Type"] == "ArithmExp"
        or bool(re.fullmatch(r"\d+|\{\d+\.\.\d+\}", _literal(word)))
    )
