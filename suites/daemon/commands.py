"""Shell commands as rows: those that must be refused in every spelling, and their harmless doubles.

``$CANARY`` stands for the canary tree in the shell's working root, ``$OUTSIDE`` for one beside it;
the test puts paths in their place. Nothing here names a path of the host but ``/`` and what only a
confined daemon is sent (``test_contract_5_shell.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DANGEROUS", "HARMLESS", "Dangerous", "Harmless"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dangerous:
    """A command that must be refused.

    Attributes:
        id: kebab-case; selects the row with ``-k``.
        command: as it is sent.
    """

    id: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Harmless:
    """A command that must run.

    Attributes:
        id: kebab-case.
        command: as it is sent.
        output: what it must print; ``None`` for whatever.
        exit_code: its status.
    """

    id: str
    command: str
    output: str | None = None
    exit_code: int = 0


def _dangerous(rows: dict[str, str]) -> tuple[Dangerous, ...]:
    return tuple(Dangerous(id=name, command=command) for name, command in rows.items())


DANGEROUS: Final = _dangerous(
    {
        # --- the seed's own, and its flags in every order and form
        "rm-root": "rm -rf /",
        "rm-root-glob": "rm -rf /*",
        "rm-root-no-preserve": "rm -rf --no-preserve-root /",
        "rm-joined-flags": "rm -rf $CANARY",
        "rm-reversed-flags": "rm -fr $CANARY",
        "rm-split-flags": "rm -r -f $CANARY",
        "rm-split-flags-reversed": "rm -f -r $CANARY",
        "rm-capital-r": "rm -Rf $CANARY",
        "rm-long-flags": "rm --recursive --force $CANARY",
        "rm-abbreviated-long-flags": "rm --recurs --forc $CANARY",
        "rm-flags-last": "rm $CANARY -rf",
        "rm-flags-around": "rm -r $CANARY -f",
        "rm-end-of-options": "rm -rf -- $CANARY",
        "rm-verbose-among": "rm -vrf $CANARY",
        "rm-glob": "rm -rf $CANARY/*",
        "rm-dot": "cd $CANARY && rm -rf .",
        "rm-dotdot": "rm -rf $CANARY/sub/..",
        "rm-one-file": "rm $CANARY/file.txt",
        "rm-outside": "rm -rf $OUTSIDE",
        "rm-home": "rm -rf ~",
        "rm-home-variable": 'rm -rf "$HOME"',
        "rm-brace-expansion": "rm -{r,f} $CANARY",
        # --- the name of the program in disguise
        "rm-absolute": "/bin/rm -rf $CANARY",
        "rm-absolute-twice": "/usr/bin/../bin/rm -rf $CANARY",
        "rm-backslash": "\\rm -rf $CANARY",
        "rm-single-quoted": "'rm' -rf $CANARY",
        "rm-double-quoted": '"rm" -rf $CANARY',
        "rm-quotes-inside": "r'm' -rf $CANARY",
        "rm-empty-quotes": 'r""m -rf $CANARY',
        "rm-backslash-inside": "r\\m -rf $CANARY",
        "rm-ansi-c-quoted": "$'rm' -rf $CANARY",
        "rm-ansi-c-hex": "$'\\x72\\x6d' -rf $CANARY",
        "rm-ansi-c-octal": "$'\\162\\155' -rf $CANARY",
        "rm-line-continued": "r\\\nm -rf $CANARY",
        "rm-flags-quoted": "rm '-r' \"-f\" $CANARY",
        "rm-glob-name": "/bin/r? -rf $CANARY",
        "rm-brace-name": "{rm,-rf,$CANARY}",
        "rm-substituted-name": "$(echo rm) -rf $CANARY",
        "rm-backquoted-name": "`echo rm` -rf $CANARY",
        "rm-decoded-name": "$(echo cm0K | base64 -d) -rf $CANARY",
        "rm-reversed-name": "$(echo mr | rev) -rf $CANARY",
        "rm-printf-name": "$(printf 'r%s' m) -rf $CANARY",
        "rm-tab-between": "rm\t-rf\t$CANARY",
        # --- variables
        "variable-is-program": "x=rm; $x -rf $CANARY",
        "variable-is-flags": "f=-rf; rm $f $CANARY",
        "variable-is-all": 'c="rm -rf $CANARY"; $c',
        "variable-in-parts": "a=r; b=m; $a$b -rf $CANARY",
        "variable-default": "${nothing:-rm} -rf $CANARY",
        "variable-substring": "x=arms; ${x:1:2} -rf $CANARY",
        "variable-indirect": "x=rm; y=x; ${!y} -rf $CANARY",
        "ifs-for-space": "rm${IFS}-rf${IFS}$CANARY",
        "path-put-before": "PATH=$CANARY/bin:$PATH echo",
        "positional": 'set -- rm -rf $CANARY; "$@"',
        # --- other grammar around it
        "after-semicolon": "echo ok; rm -rf $CANARY",
        "after-and": "true && rm -rf $CANARY",
        "after-or": "false || rm -rf $CANARY",
        "after-pipe": "echo y | rm -rf $CANARY",
        "after-newline": "echo ok\nrm -rf $CANARY",
        "in-subshell": "(rm -rf $CANARY)",
        "in-braces": "{ rm -rf $CANARY; }",
        "in-substitution": "echo $(rm -rf $CANARY)",
        "in-quoted-substitution": 'echo "all is $(rm -rf $CANARY) well"',
        "in-backquotes": "echo `rm -rf $CANARY`",
        "in-process-substitution": "cat <(rm -rf $CANARY)",
        "in-arithmetic": "echo $(( $(rm -rf $CANARY; echo 1) + 1 ))",
        "in-here-document": "cat <<E\n$(rm -rf $CANARY)\nE",
        "in-here-string": "cat <<< $(rm -rf $CANARY)",
        "in-if": "if true; then rm -rf $CANARY; fi",
        "in-for": "for x in 1; do rm -rf $CANARY; done",
        "in-for-over-names": "for x in rm; do $x -rf $CANARY; done",
        "in-while": "while rm -rf $CANARY; do break; done",
        "in-case": "case a in a) rm -rf $CANARY;; esac",
        "in-function": "f() { rm -rf $CANARY; }; f",
        "in-alias": "shopt -s expand_aliases\nalias x='rm -rf $CANARY'\nx",
        "in-trap": "trap 'rm -rf $CANARY' EXIT",
        "in-background": "rm -rf $CANARY &",
        "negated": "! rm -rf $CANARY",
        "timed": "time rm -rf $CANARY",
        # --- programs that run programs
        "sh-c": "sh -c 'rm -rf $CANARY'",
        "bash-lc": "bash -lc 'rm -rf $CANARY'",
        "sh-c-nested": "sh -c \"sh -c 'rm -rf $CANARY'\"",
        "eval-words": "eval rm -rf $CANARY",
        "eval-quoted": "eval 'r'm' -rf $CANARY'",
        "exec": "exec rm -rf $CANARY",
        "command": "command rm -rf $CANARY",
        "builtin-command": "builtin command rm -rf $CANARY",
        "env": "env rm -rf $CANARY",
        "env-with-variable": "env A=1 rm -rf $CANARY",
        "env-split-string": "env -S 'rm -rf $CANARY'",
        "nohup": "nohup rm -rf $CANARY",
        "nice": "nice -n 5 rm -rf $CANARY",
        "timeout": "timeout 5 rm -rf $CANARY",
        "setsid": "setsid rm -rf $CANARY",
        "stdbuf": "stdbuf -o0 rm -rf $CANARY",
        "busybox": "busybox rm -rf $CANARY",
        "sudo": "sudo rm -rf $CANARY",
        "xargs": "echo $CANARY | xargs rm -rf",
        "xargs-of-names": "echo rm -rf $CANARY | xargs -I{} sh -c '{}'",
        "pipe-to-sh": "echo 'rm -rf $CANARY' | sh",
        "pipe-to-bash": "printf 'rm -rf %s' $CANARY | bash -s",
        "decode-to-sh": "echo cm0gLXJmIC4K | base64 -d | sh",
        "source-a-substitution": "source <(echo rm -rf $CANARY)",
        "dot-stdin": "echo 'rm -rf $CANARY' | . /dev/stdin",
        "sh-here-document": "sh <<E\nrm -rf $CANARY\nE",
        "sh-here-string": "bash <<< 'rm -rf $CANARY'",
        "find-exec": "find $CANARY -exec rm -rf {} +",
        "find-delete": "find $CANARY -delete",
        "find-execdir": "find $CANARY -execdir rm {} ;",
        "python": "python3 -c \"import shutil; shutil.rmtree('$CANARY')\"",
        "perl": "perl -e 'unlink glob \"$CANARY/*\"'",
        "awk-system": "awk 'BEGIN { system(\"rm -rf $CANARY\") }'",
        "sed-executes": "sed '1e rm -rf $CANARY' $CANARY/file.txt",
        "git-alias": "git -c alias.x='!rm -rf $CANARY' x",
        "tar-checkpoint": "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf $CANARY' .",
        # --- other ways to destroy
        "unlink": "unlink $CANARY/file.txt",
        "shred": "shred -u $CANARY/file.txt",
        "truncate-tool": "truncate -s 0 $CANARY/file.txt",
        "truncate-redirection": ": > $CANARY/file.txt",
        "redirection-clobber": "echo gone >| $CANARY/file.txt",
        "redirection-append": "echo more >> $CANARY/file.txt",
        "redirection-alone": "> $CANARY/file.txt",
        "redirection-outside": "echo gone > $OUTSIDE/file.txt",
        "redirection-by-variable": 'f=$CANARY/file.txt; echo gone > "$f"',
        "dd-over-file": "dd if=/dev/zero of=$CANARY/file.txt bs=1 count=1",
        "dd-over-disk": "dd if=/dev/zero of=/dev/sda bs=1 count=1",
        "mkfs": "mkfs.ext4 /dev/sda1",
        "mv-away": "mv $CANARY $OUTSIDE/elsewhere",
        "mv-over": "mv /dev/null $CANARY/file.txt",
        "cp-over": "cp /dev/null $CANARY/file.txt",
        "tee-over": "echo gone | tee $CANARY/file.txt",
        "sed-in-place": "sed -i s/alive/dead/ $CANARY/file.txt",
        "sort-output-over": "sort -o $CANARY/file.txt /dev/null",
        "ln-force": "ln -sf /dev/null $CANARY/file.txt",
        "install-over": "install /dev/null $CANARY/file.txt",
        "rsync-delete": "rsync -a --delete $CANARY/empty/ $CANARY/sub/",
        "chmod-recursive": "chmod -R 000 $CANARY",
        "chown-recursive": "chown -R nobody $CANARY",
        "fork-bomb": ":(){ :|:& };:",
        "kill-everything": "kill -9 -1",
        "kill-the-daemon": "kill -9 $PPID",
        "shutdown": "shutdown -h now",
        "reboot": "reboot -f",
        "curl-to-sh": "curl -s http://127.0.0.1:9/x | sh",
        "wget-to-sh": "wget -qO- http://127.0.0.1:9/x | sh",
        "to-etc-passwd": "echo x:0:0 >> /etc/passwd",
        "crontab": "echo '* * * * * true' | crontab -",
    }
)


def _lines(count: int) -> str:
    """What ``seq`` prints; with 2000 lines 8893 characters, more than a buffer of 8 KiB."""
    return "".join(f"{number}\n" for number in range(1, count + 1))


HARMLESS: Final = (
    Harmless(id="echo", command="echo hello", output="hello\n"),
    Harmless(id="echo-rm", command="echo rm -rf /", output="rm -rf /\n"),
    Harmless(id="echo-rm-quoted", command="echo 'rm -rf /'", output="rm -rf /\n"),
    Harmless(id="echo-rm-double-quoted", command='echo "rm -rf /"', output="rm -rf /\n"),
    Harmless(id="echo-many", command="echo 'a; rm -rf / && b'", output="a; rm -rf / && b\n"),
    Harmless(id="echo-substitution-quoted", command="echo '$(rm -rf /)'", output="$(rm -rf /)\n"),
    Harmless(id="echo-escaped", command="echo \\$\\(rm\\)", output="$(rm)\n"),
    Harmless(id="printf", command="printf '%s-%s\\n' rm rf", output="rm-rf\n"),
    Harmless(id="printf-dashes", command="printf -- '-rf\\n'", output="-rf\n"),
    Harmless(id="comment", command="echo ok # rm -rf /", output="ok\n"),
    Harmless(id="word-with-rm", command="echo farm harm firmware", output="farm harm firmware\n"),
    Harmless(
        id="grep-for-rm", command="printf 'rm -rf x\\nls\\n' | grep -c 'rm -rf'", output="1\n"
    ),
    Harmless(
        id="grep-alternatives", command="printf 'dd\\nok\\n' | grep -vE 'rm|dd|mkfs'", output="ok\n"
    ),
    Harmless(
        id="here-document-quoted", command="cat <<'E'\n$(rm -rf /)\nE", output="$(rm -rf /)\n"
    ),
    Harmless(id="here-string", command="cat <<< 'rm -rf /'", output="rm -rf /\n"),
    Harmless(id="true", command="true", output=""),
    Harmless(id="false", command="false", output="", exit_code=1),
    Harmless(id="exit-status", command="exit 7", output="", exit_code=7),
    Harmless(id="pipe", command="printf 'b\\na\\n' | sort", output="a\nb\n"),
    Harmless(id="pipe-long", command="seq 5 | tail -n 2 | head -n 1", output="4\n"),
    Harmless(id="many-lines", command="seq 2000", output=_lines(2000)),
    Harmless(id="pipe-wc", command="printf abc | wc -c", output="3\n"),
    Harmless(id="tr", command="echo rm | tr r R", output="Rm\n"),
    Harmless(id="cut", command="echo rm:rf | cut -d: -f2", output="rf\n"),
    Harmless(id="sed-stream", command="echo alive | sed s/alive/well/", output="well\n"),
    Harmless(id="uniq", command="printf 'a\\na\\n' | uniq", output="a\n"),
    Harmless(id="and", command="true && echo yes", output="yes\n"),
    Harmless(id="or", command="false || echo no", output="no\n"),
    Harmless(id="semicolons", command="echo a; echo b", output="a\nb\n"),
    Harmless(id="newlines", command="echo a\necho b", output="a\nb\n"),
    Harmless(id="subshell", command="(echo in)", output="in\n"),
    Harmless(id="substitution", command="echo $(echo inner)", output="inner\n"),
    Harmless(id="backquotes", command="echo `echo inner`", output="inner\n"),
    Harmless(id="arithmetic", command="echo $((6 * 7))", output="42\n"),
    Harmless(id="variable", command='x=well; echo "all is $x"', output="all is well\n"),
    Harmless(id="variable-default", command='echo "${nothing:-there}"', output="there\n"),
    Harmless(id="loop", command="for x in a b; do echo $x; done", output="a\nb\n"),
    Harmless(id="if", command="if true; then echo yes; fi", output="yes\n"),
    Harmless(id="case", command="case rm in rm) echo matched;; esac", output="matched\n"),
    Harmless(id="test", command="test -d . && echo here", output="here\n"),
    Harmless(id="brackets", command="[ 2 -gt 1 ] && echo more", output="more\n"),
    Harmless(id="to-dev-null", command="echo unseen > /dev/null; echo seen", output="seen\n"),
    Harmless(
        id="stderr-to-stdout", command="ls /nowhere-at-all 2>&1 | grep -c nowhere", output="1\n"
    ),
    Harmless(id="read-canary", command="cat $CANARY/file.txt", output="alive\n"),
    Harmless(id="list-canary", command="ls $CANARY/sub", output="deep.txt\n"),
    Harmless(id="find-name", command="find $CANARY -name 'deep*'", output="$CANARY/sub/deep.txt\n"),
    Harmless(id="head-file", command="head -c 5 $CANARY/file.txt", output="alive"),
    Harmless(
        id="grep-file", command="grep -rl alive $CANARY/file.txt", output="$CANARY/file.txt\n"
    ),
    Harmless(id="basename", command="basename /bin/rm", output="rm\n"),
    Harmless(id="sh-c-harmless", command="sh -c 'echo nested'", output="nested\n"),
    Harmless(id="env-harmless", command="env A=1 printenv A", output="1\n"),
    Harmless(id="xargs-harmless", command="echo a b | xargs -n1 echo", output="a\nb\n"),
    Harmless(
        id="new-file", command="echo new > made-here.txt && cat made-here.txt", output="new\n"
    ),
    Harmless(id="pwd", command="pwd", output="$ROOT\n"),
    Harmless(id="unicode", command="echo 'naïve 日本 😀'", output="naïve 日本 😀\n"),
    Harmless(id="date", command="date +%Y"),
    Harmless(id="uname", command="uname -s", output="Linux\n"),
)
