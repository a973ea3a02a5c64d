"""Programs by their options: each harmless one before, behind and within the one that does harm.

A dispatcher that takes an option for one with a value, or the value for a word of its own, overlooks
what stands behind it. The options are those of the programs' manuals.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["STARTERS", "commands", "started"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program with a way to do harm.

    Attributes:
        name: as it is started, with what stands before it.
        harm: the words that do harm; the first may be an option.
        rest: what stands behind them.
        flags: letters of options without a value.
        values: options with a value of their own, as they are written.
        long: long options, those with a value written with it.
    """

    name: str
    harm: str
    rest: str = ""
    flags: str = ""
    values: tuple[str, ...] = ()
    long: tuple[str, ...] = field(default=())


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SORT: Final = _words(
    "--reverse --unique --numeric-sort --ignore-case --stable --key=1 --field-separator=: "
    "--ignore-leading-blanks --dictionary-order --general-numeric-sort --version-sort "
    "--zero-terminated --parallel=1 --buffer-size=1k --temporary-directory=. --debug"
)

PROGRAMS: Final = (
    *(
        Program(
            name="sort",
            harm=harm,
            rest="$D/table.txt",
            flags="bdfgiMhnRrVsuz",
            values=("-k 1", "-k1", "-t :", "-t:", "-S 1k", "-T ."),
            long=_SORT,
        )
        for harm in ("-o $F", "-o$F", "--output=$F", "--output $F", "--out $F")
    ),
    Program(name="sort", harm="$D/table.txt -o $F", flags="ru", long=("--", "--reverse")),
    Program(
        name="uniq",
        harm="$D/table.txt $F",
        flags="cdDiuz",
        values=("-f 1", "-f1", "-s 1", "-w 3", "-w3"),
        long=_words(
            "--count --repeated --unique --ignore-case --skip-fields=1 --skip-chars=1 "
            "--check-chars=2 --group --all-repeated --zero-terminated --"
        ),
    ),
    *(
        Program(
            name="shuf",
            harm=harm,
            rest="$D/table.txt",
            flags="z",
            values=("-n 1", "-n1"),
            long=("--head-count=1", "--zero-terminated", "--random-source=/dev/zero"),
        )
        for harm in ("-o $F", "-o$F", "--output=$F", "--outp $F")
    ),
    Program(name="shuf", harm="-o $F", values=("-e a b", "-i 1-2"), long=("--echo a",)),
    Program(
        name="tee < $D/table.txt",
        harm="$F",
        flags="aip",
        long=_words(
            "--append --ignore-interrupts --output-error --output-error=warn -- - /dev/null"
        ),
    ),
    Program(
        name="rm",
        harm="$F",
        flags="fvrRd",
        long=_words(
            "--force --verbose --recursive --dir --one-file-system --interactive=never "
            "--no-preserve-root --preserve-root -- $N -rf -fv"
        ),
    ),
    Program(name="yes | rm", harm="$F", flags="iI", long=_words("--interactive -ir")),
    Program(
        name="rmdir",
        harm="$E",
        flags="v",
        long=_words("--verbose --ignore-fail-on-non-empty -- $N"),
    ),
    Program(
        name="cp",
        harm="$D/same/file.txt $F",
        flags="fpvraRdlLPHxT",
        long=_words(
            "--force --verbose --recursive --archive --preserve --no-target-directory "
            "--remove-destination --backup --update --reflink=auto --sparse=never -b -S.old --"
        ),
    ),
    *(
        Program(name="cp", harm=harm, rest="$D/same/file.txt", flags="fpvraR", long=("--force",))
        for harm in ("-t $D", "-t$D", "--target-directory=$D", "--target $D")
    ),
    Program(
        name="mv",
        harm="$D/same/file.txt $F",
        flags="fvTbu",
        long=_words(
            "--force --verbose --backup --no-target-directory --strip-trailing-slashes -S.old --"
        ),
    ),
    *(
        Program(name="mv", harm=harm, rest="$F", flags="fvn", long=("--no-clobber",))
        for harm in ("-t $E", "-t$E", "--target-directory=$E", "--target $E")
    ),
    *(
        Program(
            name="ln",
            harm=harm,
            rest="$D/table.txt $F",
            flags="svnbTLP",
            long=_words("--symbolic --verbose --no-dereference --backup --logical --physical -S.o"),
        )
        for harm in ("-f", "--force", "--forc")
    ),
    Program(
        name="chmod",
        harm="600 $F",
        flags="vcfR",
        long=_words("--verbose --changes --silent --quiet --recursive --no-preserve-root --"),
    ),
    *(
        Program(name="chmod", harm=f"{mode} $F", flags="v")
        for mode in _words("000 0 4755 u-r a-w = +t u=s ugo=rwx o+w g+w +x u+x 777 0755 -w -x -r")
    ),
    *(
        Program(
            name="sed",
            harm=harm,
            rest="$F",
            flags="nErsuz",
            values=("-l 5", "-l5"),
            long=_words(
                "--quiet --silent --regexp-extended --separate --unbuffered --null-data --posix "
                "--debug --line-length=5 --follow-symlinks"
            ),
        )
        for harm in ("-i s/a/b/", "-i.old s/a/b/", "--in-place s/a/b/", "--in-p=.old s/a/b/")
    ),
    *(
        Program(
            name="sed",
            harm=harm,
            rest="$D/table.txt",
            flags="nEsz",
            values=("-e p", "-ep", "-e =", "-l 5"),
            long=("--expression=p", "--expression p", "--quiet", "--regexp-extended"),
        )
        for harm in ("-e 'w $F'", "-e'w $F'", "--expression='w $F'", "--expr 'w $F'")
    ),
    *(
        Program(
            name="find",
            harm=harm,
            values=_words("-P -L -H -O2"),
            long=tuple(
                "$F " + test
                for test in (
                    *_words("-print -print0 -ls -readable -writable -true -depth -xdev -mount"),
                    *_words("-follow -daystart -noleaf -ignore_readdir_race -nowarn"),
                    *("-name f*", "-iname F*", "-path *f*", "-type f", "-size -9", "-mtime -9"),
                    *("-mmin -99", "-newer /etc/passwd", "-maxdepth 0", "-mindepth 0", "-perm -1"),
                    *("-false -o", "! -false", "-not -false", "-links 1", "-regex .*", "-printf x"),
                    *("-exec echo {} ;", "-exec echo {} +", "-execdir true ;", "-prune -o"),
                )
            ),
        )
        for harm in ("-delete", "-exec rm {} ;", "-fprint $D/table.txt")
    ),
    *(
        Program(
            name="echo $F | xargs",
            harm=harm,
            flags="rtx",
            values=(
                "-n 1",
                "-n1",
                "-P 2",
                "-L 1",
                "-L1",
                "-s 999",
                "-E eof",
                "-d '\\n'",
                "-d\\\\n",
            ),
            long=_words(
                "--no-run-if-empty --verbose --exit --max-args=1 --max-procs=2 --max-lines=1 "
                "--max-chars=999 --eof=x -- -rt"
            ),
        )
        for harm in ("rm", "rm -v", "env rm", "unlink")
    ),
    *(
        Program(name="echo $F | xargs", harm=harm, flags="rtx", values=("-P 1",))
        for harm in (
            "-I@ rm @",
            "-I @ rm @",
            "-i rm {}",
            "-i@ rm @",
            "--replace rm {}",
            "--replace=@ rm @",
            "-I@ rm ./@",
            "-I@ sh -c 'rm @'",
            "-I@ sh -c 'rm \"$1\"' x @",
            "-I o rm o",
        )
    ),
    Program(
        name="awk",
        harm="'BEGIN { system(\"rm $F\") }'",
        values=("-F :", "-F:", "-v x=1", "-vx=1"),
        long=("--",),
    ),
    Program(
        name="bash",
        harm="-c 'rm $F'",
        flags="eux",
        values=("-o pipefail", "+o pipefail", "+e", "-O extglob"),
        long=("--norc", "--noprofile", "--posix", "--"),
    ),
    Program(name="bash", harm="'rm $F'", long=("-ec", "-ce", "-c", "-xc", "-cu", "-c --", "-c -e")),
    Program(
        name="printf",
        harm="-v x %s $F; rm $x",
        long=("%s x;printf", "-- x;printf"),
    ),
    Program(name="exec 3<&0;", harm=": > $F", long=("true;", "! false;")),
)

#: What a program is started by; each of them changes nothing about what it does.
_PROGRAMS: Final = (
    *("env", "env --", "env -", "env -i", "env A=1", "env -u A", "env -uA", "env --unset=A"),
    *("env -i A=1", "env --ignore-environment", "env -C .", "env --chdir=.", "env -S", "env -v"),
    *("nice", "nice -n 5", "nice -n5", "nice -5", "nice --adjustment=5", "nice --adjustment 5"),
    *("nohup", "nohup --", "setsid -w", "setsid --wait", "ionice -c 3", "ionice -c3", "chrt -o 0"),
    *("timeout 5", "timeout 5s", "timeout .2m", "timeout -v 5", "timeout -k 1 5", "timeout -k1 5"),
    *("timeout -s KILL 5", "timeout -sKILL 5", "timeout --signal=KILL 5", "timeout --foreground 5"),
    *("timeout --preserve-status 5", "timeout --kill-after=1 5", "timeout --verbose 5"),
    *("timeout -- 5", "timeout -v -s KILL 5", "timeout --foreground -k 1 5"),
    *("stdbuf -o0", "stdbuf -oL", "stdbuf -o L -e 0", "stdbuf --output=L", "stdbuf -i0 -oL -eL"),
    *("chrt -i 0", "setpriv", "busybox", "linux64"),
    *("echo a | xargs -I@", "echo a | xargs -n1 -I @", "xargs -a /dev/null", "xargs < /dev/null"),
    *("flock /dev/null", "unshare", "setarch -R", "prlimit --nproc=99"),
)

#: The same by words of the shell's own, which no program knows.
_BUILTINS: Final = (
    *("command", "command -p", "command --", "command -p --", "builtin command", "builtin eval"),
    *("exec", "exec --", "exec -a x", "exec -c", "exec -l", "exec -cl", "eval", "builtin exec"),
    *("time", "time -p", "time --", "!", "A=1", "A=1 B=2", "command command", "! time", "time !"),
)

STARTERS: Final = (*_PROGRAMS, *_BUILTINS)

#: What they start: with options that look like theirs.
_STARTED: Final = (
    *("rm $F", "rm -v $F", "rm -f -- $F", "rm -- $F --version", "rm -- $F --help", "unlink -- $F"),
    *("mv -v $F $N", "mv -n -- $F $N", "cp -p $D/same/file.txt $F", "cp -v /dev/null $F"),
    *("chmod -v 600 $F", "chmod -c 600 $F", "chmod -- 600 $F", "tee -p $F", "tee -i $F", "tee $F"),
    *("ln -sfv x $F", "sed -n -i p $F", "sed -s -i s/a/b/ $F", "sort -u -o $F $D/table.txt"),
    *("dd of=$F", "shred -n 1 $F", "truncate -s 1 $F", "find $F -delete", "rmdir -v $E"),
    *("bash -c 'rm $F'", "bash -c 'rm $F' --version", "sh -c 'rm $F' -v", "rm $F $N --force"),
)


def commands() -> dict[str, str]:
    """Each program's harm with each of its options in each place that a user may write it."""
    return {
        f"{program.name.split()[0]}: {text}": text for program in PROGRAMS for text in _of(program)
    }


def _of(program: Program) -> Iterator[str]:
    name, harm, rest = program.name, program.harm, program.rest
    for flag in program.flags:
        yield f"{name} -{flag} {harm} {rest}"
        if harm.startswith("-") and not harm.startswith("--"):
            yield f"{name} -{flag}{harm[1:]} {rest}"
    for option in (*program.values, *program.long):
        yield f"{name} {option} {harm} {rest}".replace(" ;", " \\;")
    if rest and program.flags:
        yield f"{name} {rest} -{program.flags[0]} {harm}"
        yield f"{name} -{program.flags} {harm} {rest}"


def started(dice: random.Random) -> str:
    """A harm that is started by one, two or three programs which start another."""
    harm = dice.choice(_STARTED)
    for _ in range(dice.randrange(1, 3)):
        harm = f"{dice.choice(_PROGRAMS)} {harm}"
    return f"{dice.choice(_BUILTINS)} {harm}" if dice.randrange(2) else harm
