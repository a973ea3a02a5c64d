"""What a variable holds and what a name leads to when a command comes to it: programs that mislead.

Each program ends in a harm to a canary, if a shell runs it; whoever lost count of a variable or of a
name on the way takes the canary for a file of the command's own, or for one that is free.
``$F``, ``$D`` and ``$N`` stand for files as in ``shell_grammar.py``, ``$R`` for the working root.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Final

__all__ = ["DEEDS", "aimed", "followed", "forgotten", "led", "misled", "ways"]

#: What is done to a file in the end, whether it is there or new; ``@`` is the word for it.
_WRITING: Final = (
    ": > @",
    "echo more >> @",
    "echo more >| @",
    "echo more &> @",
    "echo more >& @",
    "echo more | tee -a @",
    "echo more | tee @ > /dev/null",
    "cp /dev/null @",
    "cp -v /dev/null @",
)

#: What can be done to a file that is there alone.
_ENDING: Final = ("rm @", "rm -v -- @", "chmod 600 @", "mv @ $N.away")

#: Whoever takes a canary for a name that is free lets it be written; so most write.
DEEDS: Final = (*_WRITING, *_ENDING)

#: What sets a variable for somebody else, or for nobody, or takes it back; ``@`` is the value.
_NOT_HERE: Final[Mapping[str, str]] = {
    "one-command": "x=@ true",
    "one-command-among-others": "y=1 x=@ z=2 :",
    "one-program": "x=@ date +%Y > /dev/null",
    "env": "env x=@ true",
    "subshell": "(x=@)",
    "subshell-export": "(export x=@; true)",
    "pipe": "x=@ | true",
    "pipe-end": "true | x=@",
    "pipe-group": "true | { x=@; }",
    "pipe-read": "echo @ | read x",
    "substitution": "echo $(x=@) > /dev/null",
    "backquotes": "echo `x=@` > /dev/null",
    "process-substitution": "cat <(x=@) > /dev/null",
    "another-shell": "bash -c 'x=@'",
    "another-shell-eval": "bash -c 'eval x=@'",
    "not-reached-and": "false && x=@",
    "not-reached-or": "true || x=@",
    "not-reached-if": "if false; then x=@; fi",
    "not-reached-else": "if true; then :; else x=@; fi",
    "not-reached-elif": "if true; then :; elif x=@; then :; fi",
    "not-reached-while": "while false; do x=@; done",
    "not-reached-until": "until true; do x=@; done",
    "not-reached-for": "for y in; do x=@; done",
    "not-reached-case": "case a in b) x=@;; esac",
    "not-reached-break": "for y in 1; do break; x=@; done",
    "not-reached-continue": "for y in 1; do continue; x=@; done",
    "not-called": "f() { x=@; }",
    "local": "f() { local x=@; }; f",
    "declared-in-a-function": "f() { declare x=@; }; f",
    "a-word": "echo x=@ > /dev/null",
    "a-comment": "# x=@",
    "here-document": "cat > /dev/null <<E\nx=@\nE",
    "another-name": "X=@; _x=@; xx=@",
    "unset": "x=@; unset x",
    "unset-by-option": "x=@; unset -v x",
    "emptied": "x=@; x=",
    "emptied-twice": "x=@; x=''; x=\"\"",
    "emptied-by-export": "x=@; export x=",
    "emptied-by-declare": "x=@; declare x=",
    "emptied-in-a-group": "x=@; { x=; }",
    "emptied-in-if": "x=@; if true; then x=; fi",
    "emptied-after-and": "x=@; true && x=",
    "emptied-in-a-loop": "x=@; for y in 1; do x=; done",
    "emptied-by-for": "for x in @ ''; do :; done",
    "emptied-by-read": "x=@; read x < /dev/null",
    "emptied-by-read-of-several": "x=@; read y x <<< one",
    "emptied-by-eval": "x=@; eval x=",
    "emptied-by-eval-of-words": "x=@; eval 'x' =; eval 'x='",
    "emptied-by-printf": "x=@; printf -v x ''",
    "emptied-by-a-function": "f() { x=; }; x=@; f",
    "emptied-by-a-case": "x=@; case a in a) x=;; esac",
    "emptied-by-while": "x=@; while x=; do break; done",
    "emptied-in-a-condition": "x=@; if x=; then :; fi",
    "emptied-timed": "x=@; time x=",
    "emptied-negated": "x=@; ! x=",
    "emptied-by-mapfile": "x=@; mapfile x < /dev/null",
    "taken-from-another": "y=; x=$y; y=@",
    "taken-from-itself": "x=; x=$x$y; y=@",
    "default-of-nothing": "y=${x:-@}",
    "alternative-of-nothing": "y=${x:+@}",
    "set-if-unset": "x=; : ${x=@}",
    "cut-away": "y=@; x=${y#*}; x=${y##*}",
    "cut-away-at-the-end": "y=@; x=${y%%*}",
}

#: What makes a variable, which named a file of the command's own, name the canary.
_CHANGED: Final[Mapping[str, str]] = {
    "assigned": "x=$F",
    "assigned-in-quotes": 'x="$F"',
    "assigned-in-two": "y=$D; x=$y/file.txt",
    "joined": "x=; x+=$F",
    "joined-to-a-part": "x=$D; x+=/file.txt",
    "exported": "export x=$F",
    "exported-among-others": "export y=1 x=$F",
    "declared": "declare x=$F",
    "declared-global": "declare -g x=$F",
    "made-readonly": "readonly x=$F",
    "typeset": "typeset x=$F",
    "as-an-array": "x[0]=$F",
    "as-a-list": "x=($F)",
    "in-a-group": "{ x=$F; }",
    "in-if": "if true; then x=$F; fi",
    "in-else": "if false; then :; else x=$F; fi",
    "in-elif": "if false; then :; elif true; then x=$F; fi",
    "in-a-condition": "if x=$F; then :; fi",
    "in-an-elif-condition": "if false; then :; elif x=$F; then :; fi",
    "in-a-while": "while true; do x=$F; break; done",
    "in-a-while-condition": "while x=$F; false; do :; done",
    "in-an-until": "until false; do x=$F; break; done",
    "in-an-until-condition": "until x=$F; do :; done",
    "in-a-for": "for y in 1; do x=$F; done",
    "in-a-case": "case a in a) x=$F;; esac",
    "in-a-fallen-case": "case a in a) ;& b) x=$F;; esac",
    "after-and": "true && x=$F",
    "after-or": "false || x=$F",
    "after-and-or": "false && : || x=$F",
    "negated": "! x=$F",
    "timed": "time x=$F",
    "by-for": "for x in $F; do :; done",
    "by-for-of-two": "for x in $N $F; do :; done",
    "by-for-of-words": "y='a $F'; for x in $y; do :; done",
    "by-for-of-a-pattern": "for x in $D/fil*.txt; do :; done",
    "by-for-of-braces": "for x in $D/{sub,file.txt}; do :; done",
    "by-for-arithmetic": "for ((i=0;i<1;i++)); do x=$F; done",
    "by-select": "select x in $F; do break; done <<< 1 2> /dev/null",
    "by-read": "read x <<< $F",
    "by-read-raw": "read -r x <<< $F",
    "by-read-second": "read y x <<< 'a $F'",
    "by-read-fields": "IFS=: read y x <<< a:$F",
    "by-read-delimited": "read -d: x <<< $F:",
    "by-read-counted": "read -n 99 x <<< $F",
    "by-read-array": "read -a x <<< $F",
    "by-read-quoted": "'read' x <<< $F",
    "by-read-escaped": "r\\ead x <<< $F",
    "by-read-command": "command read x <<< $F",
    "by-read-builtin": "builtin read x <<< $F",
    "by-read-in-a-while": "while read x; do break; done <<< $F",
    "by-read-in-a-group": "{ read x; } <<< $F",
    "by-read-timed": "time read x <<< $F",
    "by-read-after-and": "true && read x <<< $F",
    "by-read-file": "echo $F > $N.s; read x < $N.s",
    "by-read-here-document": "read x <<E\n$F\nE",
    "by-mapfile": "mapfile -t x <<< $F",
    "by-readarray": "readarray -t x <<< $F",
    "by-printf": "printf -v x %s $F",
    "by-printf-quoted": "printf '-v' x $F",
    "by-eval": "eval x=$F",
    "by-eval-quoted": "eval 'x=$F'",
    "by-eval-of-words": "eval 'x'=$F",
    "by-eval-of-read": "eval 'read x <<< $F'",
    "by-eval-in-eval": "eval eval x=$F",
    "by-source": "echo x=$F > $N.s; . ./$N.s",
    "by-source-of-output": "source <(echo x=$F)",
    "by-a-function": "f() { x=$F; }; f",
    "by-a-function-of-its-argument": "f() { x=$1; }; f $F",
    "by-a-trap": "trap 'x=$F' DEBUG; :",
    "by-a-trap-of-errors": "trap 'x=$F' ERR; false",
    "by-default": "x=; : ${x:=$F}",
    "by-default-unset": "unset x; : ${x=$F}",
    "by-default-in-quotes": 'x=; : "${x:=$F}"',
    "by-default-in-a-test": "x=; [[ -n ${x:=$F} ]]",
    "by-default-if-unset": ": ${x=$F}",
    "by-default-if-unset-in-quotes": ': "${x=$F}"',
    "by-reference": "declare -n y=x; y=$F",
    "by-getopts": "getopts a: y -a $F; x=$OPTARG",
    "by-set": "set -- $F; x=$1",
    "by-set-of-words": "set -- a $F; x=$2",
    "by-output": "x=$(echo $F)",
    "by-backquotes": "x=`echo $F`",
    "by-expansion": "y=a$F; x=${y#a}",
    "by-expansion-at-the-end": "y=$F.a; x=${y%.a}",
    "by-expansion-of-a-letter": "y=A$F; x=${y/A/}",
    "by-expansion-of-nothing": "x=${nothing:-$F}",
    "by-expansion-of-something": "x=${x:+$F}",
    "by-expansion-of-a-part": "y=a$F; x=${y:1}",
    "by-name": "y=$F; z=y; x=${!z}",
    "by-let": "y=$F; let x=1; x=$y",
    "after-a-line": "true\nx=$F\n",
    "after-a-comment": "# x=$N\nx=$F",
    "set-twice": "x=$N; x=$F",
    "set-beside-another": "y=$N x=$F",
    "in-a-command-less-line": "x=$F > /dev/null",
}

#: Ways to write an empty variable before the canary's name, and one that is the name.
_BEFORE: Final = ('./"$x"$F', '"./${x}$F"', "./${x}$F", '$D/"$x"file.txt', "$D/${x}file.txt")
_ALONE: Final = ('"$x"', '"${x}"', '"./$x"', "./$x", "./${x}")

#: What few constructs need is told apart, so that two of a program are not judged by one of them.
_UNCOMMON: Final = re.compile(
    r"\(\)|\(\(|=\(|\[0\]|:=|\b(unset|mapfile|readarray|printf|trap|getopts|declare|typeset|select|source"
    r"|set|let|local)\b"
)


def ways() -> tuple[list[str], list[str]]:
    """Names of what leaves a variable empty, and of what makes it name the canary."""
    return sorted(_NOT_HERE), sorted(_CHANGED)


def _common(constructs: Mapping[str, str]) -> list[str]:
    return sorted(name for name, text in constructs.items() if not _UNCOMMON.search(text))


def aimed(deed: str, word: str) -> str:
    """A deed that is done to what a word names."""
    return deed.replace("@", word)


def forgotten(dice: random.Random, names: list[str] | None = None) -> str:
    """A program after which a variable is empty, whatever stood in it on the way.

    Args:
        dice: which variable's way, deed and spelling.
        names: constructs to take in place of one or two by the dice.
    """
    values = ("no-", "sub/no-", "no/../", "nowhere/")
    chosen = names or dice.sample(_common(_NOT_HERE), 2)
    lines = [aimed(_NOT_HERE[name], dice.choice(values)) for name in chosen]
    return "\n".join([*lines, aimed(dice.choice(DEEDS), dice.choice(_BEFORE))])


def followed(dice: random.Random, names: list[str] | None = None) -> str:
    """A program after which a variable, which named a file of its own, names the canary."""
    chosen = names or dice.sample(_common(_CHANGED), 2)
    own = ": > $N; x=$N"
    lines = [own, *(_CHANGED[name] for name in chosen)]
    return "\n".join([*lines, aimed(dice.choice(DEEDS), dice.choice(_ALONE))])


#: Constructs that name a file of a directory by a pattern, which a directory alone does not.
_OF_A_FILE: Final = ("pattern", "braces", "by-source-of-output")


def led() -> dict[str, str]:
    """Programs after which a variable, which was empty or unset, leads into the canary's directory.

    Whoever takes it for empty still takes the file for one that is free in the working root.
    """
    deeds = (": > @", "echo more >> @", "cp /dev/null @", "echo more | tee -a @")
    found = {}
    for name, construct in _CHANGED.items():
        if name.endswith(_OF_A_FILE):
            continue
        text = construct.replace("$F", "$D/").replace("/file.txt", "/")
        for before in ("", "x=; ", "unset x; "):
            deed = aimed(deeds[len(found) % len(deeds)], '"${x}file.txt"')
            found[f"{name} after {before or 'nothing'}"] = f"{before}{text}\n{deed}"
    return found


#: What a name was before it becomes one that leads to the canary; ``@`` is the name.
_BEFORE_IT: Final = (
    ": > @; rm @",
    "touch @; rm -f @",
    "mkdir @; rmdir @",
    "mkdir -p @/x; rmdir @/x @",
    ": > @.s; mv @.s @; rm @",
)

#: How what leads to the canary gets another name: from ``<`` to ``>``.
_MOVED: Final = (
    "mv < >",
    "mv -n < >",
    "cp -P < >",
    "cp -a < >",
    "cp -r < >",
    "cp -R -P < >",
    "ln -P < >",
    "ln -s $R/< >",
)

#: How it gets into a directory, and that directory another name.
_INTO: Final = ("mv < >", "mv < >/", "cp -a < >", "cp -P < >/", "mv -v < >/l", "cp -r < >/l")
_RENAMED: Final = ("mv < >", "cp -a < >", "cp -r < >", "mkdir >; cp -a </. >", "ln -s < >")

#: How a directory is made the current one; ``@`` is its name.
_ENTERED: Final = (
    "cd @",
    "cd -- @",
    "cd -P @",
    "cd ./@",
    "cd .; cd @",
    "builtin cd @",
    "command cd @",
    "eval cd @",
    "pushd @ > /dev/null",
    "{ cd @; }",
    "if cd @; then :; fi",
    "true && cd @",
    "x=@; cd $x",
    "for x in @; do cd $x; done",
    "while cd @; do break; done",
    "cd @ > /dev/null",
    "c\\d @",
    "! cd @",
    "cd $R/@",
    "cd $PWD/@",
    "HOME=@; cd",
    "HOME=@ cd",
    "CDPATH=. cd @",
    "cd /; cd - > /dev/null; cd @",
)

#: Where a link leads, and how one gets from there to the canary.
_LED_TO: Final = (
    ("$F", ""),
    ("$D", "/file.txt"),
    ("$D", "/sub/../file.txt"),
    ("$D/sub", "/../file.txt"),
    ("$E", "/../sub/deep.txt"),
)


def misled(dice: random.Random) -> str:
    """A program that makes, links, moves and copies names, and then changes the canary by one of them."""
    if dice.randrange(5) == 0:
        deed = aimed(dice.choice(_WRITING), "file.txt")
        return f"{aimed(dice.choice(_ENTERED), '$D')}\n{deed}"
    target, behind = dice.choice(_LED_TO)
    at, lines = "$N", []
    if dice.randrange(3) == 0:
        lines.append(aimed(dice.choice(_BEFORE_IT), "$N"))
    lines.append(f"ln -s $R/{target} $N")
    for number in range(dice.randrange(3)):
        to = f"$N.{number}"
        if dice.randrange(3) == 0:
            lines.append(aimed(dice.choice(_BEFORE_IT), to))
        lines.append(dice.choice(_MOVED).replace(">", to).replace("<", at))
        at = to
    if dice.randrange(2):
        into = dice.choice(_INTO)
        lines += ["mkdir $N.d", into.replace(">", "$N.d").replace("<", at)]
        name = "l" if into.endswith("l") else at
        directory = "$N.d"
        if dice.randrange(2):
            lines.append(dice.choice(_RENAMED).replace(">", "$N.e").replace("<", "$N.d"))
            directory = "$N.e"
        at = f"{directory}/{name}"
    deeds = (*_WRITING, "rm @", "chmod 600 @") if behind else _WRITING
    return "\n".join([*lines, aimed(dice.choice(deeds), at + behind)])
