"""Which programs may run, and with which arguments?

A program that no rule names does not run. A rule sees the words after the program's name and raises
:class:`~sexpd.shell.verdict.Refused`, or judges the command inside (find -exec, xargs, env …).
Options that a rule does not list are refused, abbreviations of long ones included.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from sexpd import faults
from sexpd.shell.verdict import Refused
from sexpd.shell.words import UNKNOWN, UNKNOWN_MANY, Word, fixed
from sexpd.shell.writes import Writes


class Judge(Protocol):
    """What a rule may ask of the dispatcher."""

    writes: Writes

    def command(self, words: Sequence[Word]) -> None: ...
    def script(self, text: str, *, kind: str) -> None: ...
    def changes_shell(self, what: str) -> None: ...
    def readable_name(self, name: str) -> bool: ...
    def variable(self, name: str) -> None: ...


Rule = Callable[[Judge, str, Sequence[Word]], None]

# They read, compute and print, whatever their arguments are.
HARMLESS = frozenset(
    """: [ arch base32 base64 basename cal cat cksum cmp column comm cut df diff dirname du echo egrep
    expand expr factor false fgrep fmt fold free grep groups head hexdump id join jq locale
    logname ls md5sum nl nproc numfmt od paste pathchk pr printenv ps pwd readlink realpath rev seq
    sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac tail tr true tsort
    tty type uname unexpand uptime users wc which who whoami yes""".split()
) - {"["}

# Programs that do harm, but not when asked only for their version or help.
ASKABLE = frozenset(
    """awk bash chmod chown chgrp cp dash dd find git ln make mkdir mkfs mv perl python python3 rm rmdir
    rsync ruby sed sh shred sort tar tee touch truncate unlink xargs""".split()
)

SHELLS = frozenset({"ash", "bash", "dash", "sh"})


def options(
    words: Sequence[Word], *, flags: str = "", values: str = "", long: str = ""
) -> tuple[dict[str, list[Word]], list[Word]]:
    """Split words into options and operands as getopt does.

    Args:
        words: after the program's name.
        flags: single letters that take no value.
        values: single letters that take one.
        long: names of long options, with `=` at the end if they take a value.

    Raises:
        Refused: an option that is not listed, or a word that may or may not be one.
    """
    given: dict[str, list[Word]] = {}
    operands: list[Word] = []
    known = {name.rstrip("="): name.endswith("=") for name in long.split()}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        text = word.text
        if text == "--":
            operands += rest
            break
        if text is None:
            if not (word.no_option or (word.dotted and word.head)):
                raise Refused(f"an argument {word} may be an option, which is only known when it runs")
            operands.append(word)
        elif text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            if name not in known or (equals and not known[name]):
                raise Refused(f"option --{name} is not one that is known to be harmless")
            if known[name] and not equals:
                given.setdefault(name, []).append(_value(rest, text))
            else:
                given.setdefault(name, []).append(fixed(value))
        elif text.startswith("-") and len(text) > 1:
            _short(text[1:], rest, given, flags=flags, values=values)
        else:
            operands.append(word)
    return given, operands


def _short(
    letters: str, rest: list[Word], given: dict[str, list[Word]], *, flags: str, values: str
) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter in values:
            given.setdefault(letter, []).append(
                fixed(letters) if letters else _value(rest, "-" + letter)
            )
            return
        if letter not in flags:
            raise Refused(f"option -{letter} is not one that is known to be harmless")
        given.setdefault(letter, [])


def _value(rest: list[Word], option: str) -> Word:
    if not rest or rest[0].spread:
        raise Refused(f"option {option} without a value that is certain")
    return rest.pop(0)


def _known(words: Sequence[Word], *, name: str) -> list[str]:
    texts = [word.text for word in words if word.text is not None and not word.spread]
    if len(texts) != len(words):
        raise Refused(f"an argument of {name} is only known when it runs")
    return texts


# --- Reading and computing --------------------------------------------------------------------------


def _sort(judge: Judge, name: str, words: Sequence[Word]) -> None:
    options(words, flags="bdfgiMhnRrVcCmsuz", values="kt",
            long="reverse unique numeric-sort ignore-case key= field-separator= check stable")


def _uniq(judge: Judge, name: str, words: Sequence[Word]) -> None:
    _, operands = options(words, flags="cdDiuz", values="fsw",
                          long="count repeated unique ignore-case")
    if len(operands) > 1:
        raise Refused("the second file of uniq is written to")


def _shuf(judge: Judge, name: str, words: Sequence[Word]) -> None:
    options(words, flags="erz", values="ni", long="echo repeat head-count= input-range=")


def _date(judge: Judge, name: str, words: Sequence[Word]) -> None:
    _, operands = options(words, flags="uRI", values="dr",
                          long="date= utc universal iso-8601 rfc-email rfc-3339= reference=")
    if any(not word.head.startswith("+") for word in operands):
        raise Refused("date with an operand sets the clock")


def _hostname(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if options(words, flags="fisdIA", long="fqdn long short")[1]:
        raise Refused("hostname with an operand sets the name")


def _printf(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if words and not words[0].no_option and words[0].text not in {"", "--"}:
        raise Refused("the format of printf may be an option")


_TEST_UNARY = frozenset("-n -z -f -d -e -r -w -x -s -L -h -p -S -b -c -t".split())
_TEST_BINARY = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef".split())


def _test(judge: Judge, name: str, words: Sequence[Word]) -> None:
    words = list(words)
    if name == "[":
        if not words or words.pop().text != "]":
            raise Refused("[ without ]")
    while words and words[0].text == "!":
        words.pop(0)
    if any(word.spread for word in words):
        raise Refused("an argument of test may become several, which is only known when it runs")
    texts = [word.text for word in words]
    if len(words) <= 1:
        return
    if len(words) == 2 and texts[0] in _TEST_UNARY:
        return
    if len(words) == 3 and texts[1] in _TEST_BINARY:
        return
    # -v evaluates the subscript in its argument; longer expressions only when all is known.
    if None in texts or {"-v", "-R"} & set(texts):
        raise Refused("a test whose form is only known when it runs")


_FIND_WITH_VALUE = frozenset(
    """-name -iname -path -ipath -wholename -regex -iregex -regextype -type -xtype -size -mtime -atime
    -ctime -mmin -amin -cmin -newer -anewer -cnewer -user -group -uid -gid -perm -maxdepth -mindepth
    -links -inum -samefile -lname -ilname -printf -used -fstype""".split()
)
_FIND_ALONE = frozenset(
    """-print -print0 -ls -empty -readable -writable -executable -true -false -prune -quit -depth -xdev
    -mount -follow -daystart -noleaf -not -and -or -a -o ! ( ) , -H -L -P -nouser -nogroup
    -ignore_readdir_race""".split()
)


def _find(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if faults.on("pattern-missed"):
        return
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text is None or word.spread:
            if not (word.no_option or word.dotted):
                raise Refused(f"an argument {word} of find may be an action")
        elif word.text in _FIND_WITH_VALUE:
            if rest and (rest[0].spread and not rest[0].dotted):
                raise Refused(f"the value of {word.text} may become several words")
            del rest[:1]
        elif word.text in {"-exec", "-execdir"}:
            _find_exec(judge, word.text, rest)
        elif word.text.startswith("-") and word.text not in _FIND_ALONE:
            raise Refused(f"{word.text} of find is not one that is known to be harmless")


def _find_exec(judge: Judge, action: str, rest: list[Word]) -> None:
    inner: list[Word] = []
    while rest:
        word = rest.pop(0)
        if word.text == ";" or (word.text == "+" and inner and inner[-1] is UNKNOWN_MANY):
            judge.command(inner)
            return
        if word.text == "{}":
            inner.append(UNKNOWN_MANY)
        elif word.text is None or "{}" in word.text:
            inner.append(UNKNOWN)
        else:
            inner.append(word)
    raise Refused(f"{action} of find without an end")


def _sed_pattern(end: str) -> str:
    """A regular expression of sed up to ``end``, which may not hide inside brackets."""
    e = re.escape(end)
    return rf"(?:[^{e}\\\n\[]|\\.|\[\^?\]?[^\]{e}\\\n]*\])*{e}"


def _sed_substitution(end: str) -> str:
    e = re.escape(end)
    return rf"s{e}{_sed_pattern(end)}(?:[^{e}\\\n]|\\.)*{e}[gpiI0-9]*"


_SED_ADDRESS = rf"(?:\d+|\$|/{_sed_pattern('/')})"
_SED_COMMAND = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?)?\s*!?\s*"
    rf"(?:{'|'.join(_sed_substitution(end) for end in '/|,#:')}"
    r"|y/(?:[^/\\\n\[]|\\.)*/(?:[^/\\\n]|\\.)*/|[pdqhHgGxnND=])\s*"
)


def _sed(judge: Judge, name: str, words: Sequence[Word]) -> None:
    given, operands = options(words, flags="nErsuz", values="e",
                              long="quiet silent regexp-extended expression=")
    scripts = [*given.get("e", []), *given.get("expression", [])] or operands[:1]
    for script in _known(scripts, name="sed"):
        # A command of sed may write files and start programs, so only plain ones are followed.
        at = 0
        while at < len(script):
            match = _SED_COMMAND.match(script, at)
            if match is None or not (match.end() == len(script) or script[match.end()] in ";\n"):
                raise Refused(f"the sed script {script!r} does more than can be followed")
            at = match.end() + 1


def _awk(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    while rest and (rest[0].text or "").startswith("-"):
        option = str(rest.pop(0).text)
        if option[:2] not in {"-F", "-v"}:
            raise Refused(f"option {option} of awk is not one that is known to be harmless")
        if len(option) == 2:
            _known([_value(rest, option)], name="awk")
    (program,) = _known(rest[:1], name="awk") or [""]
    if re.search(r"system|getline|@|>|(?<!\|)\|(?!\|)|\|\|\|", program):
        raise Refused("the awk program may write files or start programs")


_PYTHON_NODES = (
    ast.Module, ast.Expr, ast.Assign, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Call,
    ast.keyword, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv, ast.UnaryOp,
    ast.USub, ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple, ast.Compare, ast.cmpop,
)
_PYTHON_CALLS = frozenset("abs float int len max min print repr round sorted str sum".split())


def _python(judge: Judge, name: str, words: Sequence[Word]) -> None:
    texts = _known(words, name=name)
    if len(texts) != 2 or texts[0] != "-c":
        raise Refused(f"{name} runs a program that is not judged")
    try:
        tree = ast.parse(texts[1])
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"the program of {name} cannot be parsed") from error
    nodes = list(ast.walk(tree))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    calls += [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "key"]
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        fine = isinstance(node, _PYTHON_NODES)
        if isinstance(node, ast.Call):
            fine = all(keyword.arg in {"end", "sep", "key"} for keyword in node.keywords)
        if isinstance(node, ast.Assign):
            fine = all(isinstance(target, ast.Name) for target in node.targets)
        if isinstance(node, ast.Name):
            # A name stands for what is called, or for a value of the program; never for both.
            fine = node.id in (_PYTHON_CALLS - made if node in calls else made)
        if node in calls and not isinstance(node, ast.Name):
            fine = False
        if not fine:
            raise Refused(f"the program of {name} does more than print and compute")


def _tar(judge: Judge, name: str, words: Sequence[Word]) -> None:
    texts = _known(words[:1], name="tar")
    if not texts or not re.fullmatch(r"-?[tvfzjJ]*t[tvfzjJ]*", texts[0]):
        raise Refused("tar does more than list")
    if any(not word.no_option for word in words[1:]):
        raise Refused("an argument of tar may be an option")


# --- Writing ----------------------------------------------------------------------------------------


def _tee(judge: Judge, name: str, words: Sequence[Word]) -> None:
    for word in options(words, flags="ai", long="append")[1]:
        judge.writes.create(word, what="tee writes")


def _mkdir(judge: Judge, name: str, words: Sequence[Word]) -> None:
    for word in options(words, flags="pv", long="parents verbose")[1]:
        judge.writes.make_directory(word)


def _touch(judge: Judge, name: str, words: Sequence[Word]) -> None:
    for word in options(words, flags="acm", values="dt", long="date= no-create")[1]:
        judge.writes.touch(word)


def _rm(judge: Judge, name: str, words: Sequence[Word]) -> None:
    for word in options(words, flags="fv", long="force verbose")[1]:
        judge.writes.remove(word)


def _rmdir(judge: Judge, name: str, words: Sequence[Word]) -> None:
    flags, names = "v", "verbose"
    if faults.on("rmdir-parents"):
        flags, names = "pv", "parents verbose"
    for word in options(words, flags=flags, long=names)[1]:
        judge.writes.remove(word)


_MODE = re.compile(r"0?[67][0-7][0145]|u?\+[rwx]+|a?\+[rx]+|[go]-[rwx]+|go-[rwx]+")


def _chmod(judge: Judge, name: str, words: Sequence[Word]) -> None:
    operands = [word for word in words if word.text not in {"-v", "--verbose", "--"}]
    mode = operands[0].text if operands else None
    if mode is None or not _MODE.fullmatch(mode) or len(operands) < 2:
        raise Refused("a mode of chmod that may lock the owner out or let others in")
    for word in operands[1:]:
        if not word.no_option:
            raise Refused("an argument of chmod may be an option")
        judge.writes.change_mode(word)


def _cp(judge: Judge, name: str, words: Sequence[Word]) -> None:
    given, operands = options(words, flags="pnvraR", long="no-clobber verbose recursive archive")
    if len(operands) < 2:
        return
    *sources, destination = operands
    # A copied tree may hold links, which would then be written through.
    tree = bool({"r", "R", "a", "recursive", "archive"} & given.keys())
    for source in sources:
        target = judge.writes.target(destination, source, what="cp writes")
        if tree:
            judge.writes.alias(target, what="cp writes")
        else:
            judge.writes.create(target, what="cp writes")


def _mv(judge: Judge, name: str, words: Sequence[Word]) -> None:
    _, operands = options(words, flags="nv", long="no-clobber verbose")
    if len(operands) < 2:
        return
    *sources, destination = operands
    for source in sources:
        judge.writes.move(source, destination)


def _ln(judge: Judge, name: str, words: Sequence[Word]) -> None:
    _, operands = options(words, flags="sv", long="symbolic verbose")
    if len(operands) != 2:
        raise Refused("ln with anything else than one target and one name")
    judge.writes.place(operands[0], what="ln leads to")
    judge.writes.alias(judge.writes.target(operands[1], operands[0], what="ln writes"),
                       what="ln writes")


# --- Commands that run another ------------------------------------------------------------------------


def _prefix(judge: Judge, name: str, words: Sequence[Word]) -> None:
    """nohup, builtin, exec and others whose words are a command."""
    if words and not words[0].no_option:
        raise Refused(f"{name} with an option")
    if words:
        judge.command(words)


def _applet(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if words:
        judge.command(words)


def _command(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if words and words[0].text in {"-v", "-V"}:
        return
    rest = words[1:] if words and words[0].text in {"-p", "--"} else words
    _prefix(judge, name, rest)


def _env(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    while rest and "=" in rest[0].head and rest[0].no_option:
        judge.variable(rest.pop(0).head.partition("=")[0])
    _prefix(judge, name, rest)


def _nice(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    if rest and rest[0].text == "-n":
        _known(rest[:2], name=name)
        del rest[:2]
    _prefix(judge, name, rest)


def _timeout(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    while rest and rest[0].text in {"-s", "-k", "--foreground", "-v"}:
        del rest[: 2 if rest[0].text in {"-s", "-k"} else 1]
    if not rest or not re.fullmatch(r"[\d.]+[smhd]?", rest[0].text or ""):
        raise Refused("timeout without a duration that is certain")
    _prefix(judge, name, rest[1:])


def _stdbuf(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    while rest and re.fullmatch(r"-[ioe][0L]", rest[0].text or ""):
        rest.pop(0)
    _prefix(judge, name, rest)


def _xargs(judge: Judge, name: str, words: Sequence[Word]) -> None:
    rest = list(words)
    replaced = ""
    while rest and (text := rest[0].text or "").startswith("-"):
        rest.pop(0)
        if text in {"-0", "-r", "-t", "-x", "--null", "--no-run-if-empty", "--verbose"}:
            continue
        if not re.fullmatch(r"-[nPLdI].*", text, re.S):
            raise Refused(f"option {text} of xargs is not one that is known to be harmless")
        (value,) = _known([fixed(text[2:]) if text[2:] else _value(rest, text)], name="xargs")
        replaced = value if text[1] == "I" else replaced
    if not rest:
        return
    if replaced:
        inner = [UNKNOWN if w.text is None or replaced in w.text else w for w in rest]
        judge.command(inner)
    else:
        judge.command([*rest, UNKNOWN_MANY])


def _shell(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if len(words) < 2 or words[0].text not in {"-c", "-ec", "-ce"}:
        raise Refused(f"{name} runs what it reads, which is not judged")
    (text,) = _known(words[1:2], name=name)
    judge.script(text, kind="bash" if name == "bash" else "sh")


def _eval(judge: Judge, name: str, words: Sequence[Word]) -> None:
    judge.script(" ".join(_known(words, name=name)), kind="eval")


# --- Builtins -----------------------------------------------------------------------------------------


def _cd(judge: Judge, name: str, words: Sequence[Word]) -> None:
    judge.writes.move_directory()
    judge.changes_shell("changes its directory")


def _read(judge: Judge, name: str, words: Sequence[Word]) -> None:
    judge.changes_shell("reads variables")
    _, operands = options(words, flags="rs", values="pdntN")
    for variable in _known(operands, name=name):
        judge.variable(variable)
        if not judge.readable_name(variable):
            raise Refused(f"read changes {variable} in a way that cannot be followed")


def _set(judge: Judge, name: str, words: Sequence[Word]) -> None:
    judge.changes_shell("sets options")
    for text in _known(words, name=name):
        if not re.fullmatch(r"[-+][eux]+|[-+][eux]*o|pipefail|errexit|nounset", text):
            raise Refused(f"set {text} is not one that is known to be harmless")


def _number(judge: Judge, name: str, words: Sequence[Word]) -> None:
    if words and not all(re.fullmatch(r"\d{1,3}", text) for text in _known(words, name=name)):
        raise Refused(f"{name} with something else than a number")


def _anything(judge: Judge, name: str, words: Sequence[Word]) -> None:
    """Nothing to object to."""


RULES: dict[str, Rule] = {
    **dict.fromkeys(HARMLESS, _anything),
    **dict.fromkeys(["sdiff"] if faults.on("sdiff-harmless") else [], _anything),
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("break", "continue", "exit", "shift", "wait"), _number),
    **dict.fromkeys(("builtin", "exec", "nohup"), _prefix),
    **dict.fromkeys(("busybox", "toybox"), _applet),
    **dict.fromkeys(("test", "["), _test),
    "cd": _cd,
    "chmod": _chmod,
    "command": _command,
    "cp": _cp,
    "date": _date,
    "env": _env,
    "eval": _eval,
    "find": _find,
    "hostname": _hostname,
    "ln": _ln,
    "mkdir": _mkdir,
    "mv": _mv,
    "nice": _nice,
    "printf": _printf,
    "read": _read,
    "rm": _rm,
    "rmdir": _rmdir,
    "sed": _sed,
    "set": _set,
    "shuf": _shuf,
    "sort": _sort,
    "stdbuf": _stdbuf,
    "tar": _tar,
    "tee": _tee,
    "timeout": _timeout,
    "touch": _touch,
    "uniq": _uniq,
    "xargs": _xargs,
}


def rule(name: str) -> Rule | None:
    """The rule of a program, by its name without a directory."""
    if re.fullmatch(r"python(3(\.\d+)?)?", name):
        return _python
    return RULES.get(name)
