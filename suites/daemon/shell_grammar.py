"""Shell commands as a grammar: harms, and the ways to hide, redirect, substitute, encode and lengthen them.

A harm is a command that changes a file which is there, and needs no other. Whether it did is what
the canaries show (``canary.py``), so no list of refusals is needed to judge a combination.

``$F`` stands for a canary file, ``$E`` for an empty directory, ``$D`` for the directory of both, ``$N``
for a name that is free; all of them are relative to the working root.
"""

from __future__ import annotations

import base64
import random
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["AROUND", "HARMS", "NAMES", "PATHS", "combined", "filled_in"]

#: Programs that take words; alone, each prints how it is used, does nothing, or is refused.
_PROGRAMS: Final = (
    *(
        "awk",
        "bash",
        "builtin",
        "cat",
        "chmod",
        "command",
        "cp",
        "cut",
        "date",
        "dd",
        "env",
        "eval",
    ),
    *("exec", "expr", "find", "git", "grep", "head", "kill", "ln", "ls", "mkdir", "mktemp", "mv"),
    *(
        "nice",
        "nohup",
        "perl",
        "printf",
        "python3",
        "read",
        "rm",
        "rmdir",
        "sed",
        "seq",
        "set",
        "sh",
    ),
    *(
        "sort",
        "stat",
        "stdbuf",
        "tail",
        "tar",
        "tee",
        "test",
        "[",
        "[ ]",
        "time",
        "timeout",
        "touch",
    ),
    *("tr", "trap", "type", "uniq", "unset", "wc", "xargs"),
)

#: What destroys or changes the canary by itself.
HARMS: Final[Mapping[str, str]] = {
    **{f"after-{program}-alone": f"{program}; rm $F" for program in _PROGRAMS},
    # Options of a program that look like those of whoever starts it.
    "command-and-rm-verbose": "command rm -v $F",
    "command-and-mv-verbose": "command -p mv -v $F $N",
    "command-and-cp-verbose": "command -- cp -v $D/sub/deep.txt $F",
    "env-and-rm-verbose": "env rm -v $F",
    "nice-and-rm-verbose": "nice -n 1 rm -v $F",
    "timeout-and-rm-verbose": "timeout -v 5 rm -v $F",
    "xargs-and-rm-verbose": "echo $F | xargs -t rm -v",
    "time-and-rm-verbose": "time -p rm -v $F",
    "type-then-rm": "command -v rm; rm -v $F",
    # What is set for one command is not set for the next.
    "set-for-one-command": 'A=no- true; : > "${A}$F"',
    "set-for-one-then-another": "A=no-; A= true; unset A; rm $A$F",
    "set-for-one-beside": 'A=no- B=1 true && rm "$A"$F',
    "set-for-a-function": 'f() { true; }; A=no- f; : >> "${A}$F"',
    "set-and-unset": 'A=no-; unset A; : > "${A}$F"',
    "set-in-a-subshell": '(A=no-); : > "${A}$F"',
    "set-in-a-pipe": 'echo no- | read A; : > "${A}$F"',
    # A name with a backslash in it, quoted in every way.
    "odd-name-in-double-quotes": 'rm "$D/od\\d.txt"',
    "odd-name-in-double-quotes-twice": 'rm "$D/od\\\\d.txt"',
    "odd-name-in-single-quotes": "rm '$D/od\\d.txt'",
    "odd-name-escaped": "rm $D/od\\\\d.txt",
    "odd-name-in-c-quotes": "rm $'$D/od\\\\d.txt'",
    "odd-name-written-to": ': > "$D/od\\d.txt"',
    "odd-name-in-a-variable": 'x="$D/od\\d.txt"; : > "$x"',
    "odd-name-of-blanks": 'rm "$D/a  b.txt"',
    "odd-name-of-blanks-escaped": ": > $D/a\\ \\ b.txt",
    "odd-name-of-a-pattern": "rm $D/\\*.txt",
    "odd-name-of-a-pattern-in-quotes": ': > "$D/*.txt"',
    "rm": "rm $F",
    "unlink": "unlink $F",
    "rmdir": "rmdir $E",
    "mv-away": "mv $F $N",
    "mv-directory": "mv $D $N",
    "mv-into": "mv $F $E",
    "mv-over": "mv $D/sub/deep.txt $F",
    "cp-by-output": "cp $(echo $D/same/file.txt) $D",
    "cp-by-pattern": "cp $D/same/*.txt $D",
    "chmod-by-output": "chmod 600 $(echo $F)",
    "cp-over": "cp $D/sub/deep.txt $F",
    "cp-into-over": "cp $D/same/file.txt $D",
    "cp-target-directory": "cp -t $D $D/same/file.txt",
    "cp-remove-destination": "cp --remove-destination $D/sub/deep.txt $F",
    "cp-backup": "cp -b $D/sub/deep.txt $F",
    "cp-attributes": "cp --attributes-only --preserve=all $D/bin/echo $F",
    "cp-link": "cp -lf $D/sub/deep.txt $F",
    "install": "install $D/sub/deep.txt $F",
    "ln-over": "ln -f $D/sub/deep.txt $F",
    "ln-symbolic-over": "ln -sf deep.txt $F",
    "truncate": "truncate -s 3 $F",
    "shred": "shred -n 1 $F",
    "dd": "dd if=/dev/null of=$F",
    "dd-append": "dd if=/dev/zero of=$F oflag=append conv=notrunc bs=1 count=1",
    "tee": "tee $F < /dev/null",
    "tee-append": "tee -a $F <<< more",
    "write": ": > $F",
    "write-append": "echo more >> $F",
    "write-clobber": "echo more >| $F",
    "write-both": "echo more &> $F",
    "write-both-append": "echo more &>> $F",
    "write-to-descriptor": "echo more >& $F",
    "write-numbered": "echo more 1> $F",
    "write-read-write": "echo more 1<> $F",
    "write-opened": "exec 3> $F",
    "write-named-descriptor": "exec {x}> $F",
    "write-twice": "echo more > $N > $F",
    "write-first-of-two": "echo more > $F > $N",
    "write-noclobber-off": "set +o noclobber; echo more > $F",
    "write-in-loop": "for i in 1; do echo $i; done > $F",
    "write-in-group": "{ echo a; } > $F",
    "write-in-subshell": "(echo a) > $F",
    "write-in-test": "[[ a ]] > $F",
    "write-on-empty-command": "> $F",
    "write-by-function": "f() { echo a; } > $F; f",
    "chmod": "chmod 000 $F",
    "chmod-symbolic": "chmod a= $F",
    "chmod-reference": "chmod --reference=$D/bin/echo $F",
    "chmod-directory": "chmod 0700 $E",
    "sed-in-place": "sed -i s/alive/dead/ $F",
    "sed-in-place-suffix": "sed -i.old s/alive/dead/ $F",
    "sed-in-place-long": "sed --in-place s/alive/dead/ $F",
    "sed-in-place-joined": "sed -ni p $E/../table.txt; sed -nEi 2p $D/table.txt",
    "sed-writes": "sed -n 'w $F' $D/table.txt",
    "sed-writes-in-s": "sed 's/a/b/w $F' $D/table.txt",
    "sed-executes": "sed '1e rm $F' $D/table.txt",
    "sed-executes-in-s": "echo 'rm $F' | sed 's/^//e'",
    "sed-two-scripts": "sed -n -e p --expression='w $F' $D/table.txt",
    "sed-two-scripts-turned": "sed -n --expression='w $F' -e p $D/table.txt",
    "sed-two-scripts-abbreviated": "sed -n -e p --expr 'w $F' $D/table.txt",
    "sed-script-beside-a-file": "echo p > $N; sed -n -f $N -e 'w $F' $D/table.txt",
    "sed-file-beside-a-script": "echo 'w $F' > $N; sed -n -e p --file=$N $D/table.txt",
    "sed-file": "echo 'w $F' > $N; sed -f $N $D/table.txt",
    "awk-writes": "awk '{ print > \"$F\" }' $D/table.txt",
    "awk-appends": 'awk \'END { printf "x" >> "$F" }\' $D/table.txt',
    "awk-pipes": 'awk \'BEGIN { print "rm $F" | "sh" }\'',
    "awk-system": "awk 'BEGIN { system(\"rm $F\") }'",
    "awk-reads-command": "awk 'BEGIN { \"rm $F\" | getline }'",
    "awk-file": "echo 'BEGIN { system(\"rm $F\") }' > $N; awk -f $N",
    "sort-output": "sort -o $F $D/table.txt",
    "sort-output-long": "sort --output=$F $D/table.txt",
    "sort-output-abbreviated": "sort --outp=$F $D/table.txt",
    "sort-output-joined": "sort -ro$F $D/table.txt",
    "sort-compress": "sort --compress-program=$D/bin/echo -S 1k $D/table.txt",
    "uniq-output": "uniq $D/table.txt $F",
    "shuf-output": "shuf -o $F $D/table.txt",
    "sdiff-output": "sdiff -o $F $D/table.txt $D/table.txt",
    "sdiff-output-long": "sdiff -s --output=$F $D/table.txt $D/table.txt",
    "ptx-output": "ptx -G $D/table.txt $F",
    "xxd-output": "xxd $D/table.txt $F",
    "split-filter": "split --filter='rm $F' $D/table.txt",
    "split": "split -n 1 -a 3 $D/table.txt $D/table.tx; split -b 9 -a 1 -x $D/table.txt $D/x",
    "csplit": "csplit -f $D/x $D/table.txt 2",
    "comm-out": "comm $D/table.txt $D/table.txt --output-delimiter=x > $F",
    "find-delete": "find $F -delete",
    "find-exec": "find $F -exec rm {} +",
    "find-exec-each": "find $F -exec rm {} \\;",
    "find-exec-middle": "find $D -name file.txt -exec mv {} $N \\;",
    "find-execdir": "find $F -execdir rm {} +",
    "find-ok": "find $F -ok rm {} \\; <<< y",
    "find-fprint": "find $D -fprint $F",
    "find-fprintf": "find $D -fprintf $F x",
    "find-fls": "find $D -fls $F",
    "find-files-from": "printf '%s\\0' $F | find -files0-from - -delete",
    "xargs": "xargs rm <<< $F",
    "xargs-file": "echo $F > $N; xargs -a $N rm",
    "xargs-placed": "xargs -I{} rm {} <<< $F",
    "xargs-shell": "xargs -I{} sh -c 'rm {}' <<< $F",
    "xargs-half-a-name": "echo m | xargs -I@ r@ $F",
    "xargs-end-of-a-path": "echo rm | xargs -I {} /bin/{} $F",
    "xargs-of-nothing": "echo rm $F | xargs env",
    "xargs-redirecting": "xargs -n1 -P2 unlink <<< $F",
    "touch-old": "touch -d 2001-01-01 $F",
    "touch-reference": "touch -r /etc/passwd $F",
    "gzip": "gzip $F",
    "bzip2": "bzip2 $F",
    "xz": "xz $F",
    "patch": "printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-alive\\n+dead\\n' | patch $F",
    "ed": "printf '1d\\nw\\nq\\n' | ed -s $F",
    "vi": "vi -es -c 'normal dd' -c wq $F",
    "perl": "perl -e 'unlink \"$F\"'",
    "perl-in-place": "perl -pi -e s/alive/dead/ $F",
    "python": "python3 -c 'import os; os.remove(\"$F\")'",
    "python-open": 'python3 -c \'open("$F", "w")\'',
    "python-imported": 'python3 -c \'__import__("os").remove("$F")\'',
    "python-by-attribute": 'python3 -c \'print(print.__self__.open("$F", "w"))\'',
    "python-in-a-lambda": 'python3 -c \'(lambda: open("$F", "w"))()\'',
    "python-as-a-key": 'python3 -c \'sorted(["open(\\"$F\\", \\"w\\")"], key=eval)\'',
    "python-under-another-name": 'python3 -c \'len = eval; len("open(\\"$F\\", \\"w\\")")\'',
    "python-in-a-list": 'python3 -c \'[open(n, "w") for n in ["$F"]]\'',
    "python-module": "python3 -m zipfile -c $F /etc/hostname",
    "python-standard-input": 'echo \'open("$F", "w")\' | python3',
    "python-script": 'echo \'open("$F", "w")\' > $N; python3 $N',
    "python-joined": 'python3 -c\'open("$F", "w")\'',
    "python-flags-first": 'python3 -I -c \'open("$F", "w")\'',
    "ruby": "ruby -e 'File.delete(\"$F\")'",
    "node": 'node -e \'require("fs").unlinkSync("$F")\'',
    "tar-extracts": "tar -cf $N -C $D/same file.txt; tar -xf $N -C $D",
    "tar-creates": "tar -cf $F $D/table.txt",
    "tar-removes": "tar --remove-files -cf $N $F",
    "tar-executes": "tar -cf $N $D --checkpoint=1 --checkpoint-action=exec='rm $F'",
    "tar-by-program": "tar -I 'rm $F;' -cf $N $D",
    "rsync": "rsync $D/sub/deep.txt $F",
    "git-init": "git init -q $D",
    "git-clean": "git init -q $D; git -C $D clean -fdxq",
    "mkdir-inside": "mkdir -m 0777 $D/made; chmod 0777 $E",
    "mkfifo-over": "rm -f $F; mkfifo $F",
    "rename": "rename file lost $F",
    "chown": "chown nobody $F; chgrp nogroup $F; chmod u-w $F",
    "setfacl": "setfacl -b -m u:1:rw $F; chmod g+w $F",
    "fallocate": "fallocate -l 99 $F",
    "openssl": "openssl rand -out $F 9",
    "curl": "curl -s -o $F file:///etc/hostname",
    "wget": "wget -q -O $F file:///etc/hostname; : > $F",
    "base64-out": "base64 $D/table.txt > $F",
    "iconv": "iconv -o $F $D/table.txt",
    "m4": "echo 'syscmd(rm $F)' | m4",
    "make": "printf 'x:\\n\\trm $F\\n' | make -f -",
    "bc": "echo 1 | tee $F",
    "script": "script -qc 'rm $F' /dev/null",
    "flock": "flock $D/table.txt -c 'rm $F'",
    "loader": "/lib64/ld-linux-x86-64.so.2 /bin/rm $F",
    "trapped-program": "$D/bin/echo",
    "trapped-by-path": "PATH=$D/bin:$PATH; echo x",
    "trapped-by-hash": "hash -p $D/bin/echo uname; uname",
    "trapped-by-exported-path": "export PATH=$D/bin; echo x; uname",
    "trapped-by-env": "env PATH=$D/bin echo x",
    "trapped-by-enable": "enable -n echo; PATH=$D/bin echo x",
    "trapped-after-cd": "cd $D/bin && ./echo",
    "sourced": "echo 'rm $F' > $N; . ./$N",
    "run-by-name": "echo 'rm $F' > $N; chmod +x $N; ./$N",
    "run-by-bash": "echo 'rm $F' > $N; bash $N",
    "run-by-bash-input": "echo 'rm $F' > $N; bash < $N",
    "run-by-bash-env": "echo 'rm $F' > $N; BASH_ENV=$N bash -c true",
    # Python runs it before what it is asked to.
    **{
        f"run-by-python-path{how}": (
            f"mkdir $N; echo 'import os; os.remove(\"$F\")' > $N/sitecustomize.py; {setting} python3 -c 1"
        )
        for how, setting in {
            "": "PYTHONPATH=$N",
            "-among-others": "A=1 PYTHONPATH=$N",
            "-of-env": "env PYTHONPATH=$N",
            "-exported": "export PYTHONPATH=$N;",
        }.items()
    },
    # Not the first operand alone, and not the last one.
    **{
        f"{name}-of-two{turned}": f"{before}; {deed.format(*names)}"
        for name, before, deed in (
            ("rm", ": > $N", "rm {} {}"),
            ("rm-options", ": > $N", "rm -f -- {} {}"),
            ("tee", ":", "echo more | tee {} {}"),
            ("tee-append", ": > $N", "echo more | tee -a {} {}"),
            ("chmod", ": > $N", "chmod 600 {} {}"),
            ("xargs", ": > $N", "echo {} {} | xargs rm"),
            ("xargs-words", ": > $N", "echo | xargs rm {} {}"),
            ("command", ": > $N", "command rm {} {}"),
            ("loop", ": > $N", "for x in {} {}; do rm $x; done"),
            ("redirection", ":", "echo more > {} > {}"),
            ("redirection-of-errors", ":", "echo more > {} 2> {}"),
            ("redirection-around", ":", "> {} echo more > {}"),
        )
        for turned, names in (("", ("$N", "$F")), ("-turned", ("$F", "$N")))
    },
    "rmdir-of-two": "mkdir $N; rmdir $N $E",
    "rmdir-of-two-turned": "mkdir $N; rmdir $E $N",
    # The directories above its own are not its own.
    **{
        f"rmdir{option}-of-parents": f"mkdir {made}; rmdir {option} {made}"
        for option, made in (
            ("-p", "$E/new"),
            ("-pv", "$E/new"),
            ("-v -p", "$E/new"),
            ("--parents", "$E/new"),
            ("--par", "$E/new"),
        )
    },
    "rmdir-of-grandparents": "mkdir -p $E/a/b; rmdir -p $E/a/b",
    **{
        f"{by}-two{turned}": f"mkdir $N; : > $N/file.txt; : > $N/new.txt; {by} {names} $D"
        for by in ("cp", "cp -r", "cp -v", "mv", "mv -v")
        for turned, names in (
            ("", "$N/new.txt $N/file.txt"),
            ("-turned", "$N/file.txt $N/new.txt"),
        )
    },
    # Variables that change how the shell works, also behind one that does not.
    "prompt-of-a-trace": "PS4='$(rm $F)'; set -x; echo a",
    "prompt-of-a-trace-beside": "A=1 PS4='$(rm $F)'; set -x; echo a",
    "prompt-of-a-trace-exported": "export A=1 PS4='$(rm $F)'; bash -xc 'echo a'",
    "prompt-of-a-trace-by-env": "env A=1 PS4='$(rm $F)' bash -xc 'echo a'",
    "prompt-of-a-trace-for-one": "A=1 PS4='$(rm $F)' bash -xc 'echo a'",
    "environment-file-by-env": "echo 'rm $F' > $N; env A=1 BASH_ENV=$N bash -c true",
    "environment-file-exported": "echo 'rm $F' > $N; export A=1 BASH_ENV=$N; bash -c true",
    "environment-file-declared": "echo 'rm $F' > $N; declare -x BASH_ENV=$N; bash -c true",
    "environment-file-of-all": "echo 'rm $F' > $N; set -a; BASH_ENV=$N; bash -c true",
    "environment-file-read": "echo 'rm $F' > $N; export BASH_ENV; read BASH_ENV <<< $N; bash -c :",
    "environment-file-looped": "echo 'rm $F' > $N; for BASH_ENV in $N; do export BASH_ENV; done; bash -c :",
    "path-beside": "A=1 PATH=$D/bin:$PATH; env echo x",
    "path-beside-by-env": "env A=1 PATH=$D/bin echo x",
    "path-joined": "PATH+=:$D/bin; PATH=$D/bin:$PATH env echo x",
    "path-read": "read PATH <<< $D/bin:$PATH; env echo x",
    "path-looped": "for PATH in $D/bin:$PATH; do env echo x; done",
    "path-by-default": "unset PATH; : ${PATH:=$D/bin:/usr/bin}; env echo x",
    "path-by-printf": "printf -v PATH %s $D/bin:$PATH; env echo x",
    "old-directory": "OLDPWD=$R/$D; cd - > /dev/null; : > file.txt",
    "through-a-link": "ln -s $D $N; : > $N/file.txt",
    "through-a-link-file": "ln -s $F $N; : > $N",
    "through-a-hard-link": "ln $F $N; : > $N",
    "through-a-copied-link": "ln -s $F $N.l; cp -P $N.l $N; : > $N",
    "through-a-moved-link": "ln -s $F $N.a; mv $N.a $N; : > $N",
    "through-a-made-directory": "mkdir $N; ln -s ../$D $N/x; : > $N/x/file.txt",
    "through-dots": ": > $E/../file.txt",
    "through-dots-of-a-cut-string": "mkdir $N; rm $N$'/../$F\\0x'",
    "through-a-link-of-a-cut-string": "echo a > $N; ln -s $D $N.l; : > $N$'.l/file.txt\\0'",
    "name-of-a-cut-string": "$'rm\\0-not' $F",
    "through-dots-of-a-made-link": "ln -s $D/sub $N; : > $N/../file.txt",
    "through-dots-of-two-made-links": "ln -s $D/sub $N; ln -s $N $N.b; echo a >> $N.b/../file.txt",
    "through-dots-of-a-link-in-a-made-directory": "mkdir $N; ln -s $R/$E $N/e; tee $N/e/../file.txt",
    "through-descriptors": "exec 3< $F; : > /proc/self/fd/3",
    "through-proc": ": > /proc/self/cwd/$F",
    "through-dev-fd": "exec 4<> $F; echo more > /dev/fd/4",
    "through-a-made-link-removed": "ln -s $D $N; rm $N/file.txt",
    "swapped-for-a-link": "mkdir $N; rmdir $N; ln -s $D $N; : > $N/file.txt",
    "own-then-not": "echo a > $N; mv $N $F",
    "own-then-copied": "echo a > $N; cp $N $F",
    "own-then-linked": "echo a > $N; ln -f $N $F",
    "own-then-tree": "mkdir $N; echo a > $N/file.txt; cp -r $N/. $D",
    "own-then-tar": "mkdir -p $N/$D; echo a > $N/$F; tar -C $N -cf $N.tar .; tar -xf $N.tar",
    "cd-then-relative": "cd $D; : > file.txt",
    "cd-then-deeper": "cd $D/sub; rm ../file.txt",
    "cd-in-subshell": "(cd $D && rm file.txt)",
    "cd-by-pushd": "pushd $D; rm file.txt",
    "cd-by-cdpath": "CDPATH=$D; cd sub; rm deep.txt",
    "cd-by-find": "find $D -maxdepth 0 -execdir rm $F \\;",
    "cd-by-env": "env -C $D rm file.txt",
    "read-then-run": "read x <<< 'rm $F'; $x",
    "mapfile-then-run": "mapfile -t x <<< $F; rm ${x[0]}",
    "mapfile-callback": "mapfile -C 'rm $F #' -c 1 x <<< a",
    "array-then-run": 'x=(rm $F); "${x[@]}"',
    "array-without-an-index": "mkdir $N; x=(../$F); rm $N/$x",
    "array-joined": "mkdir $N; x=(.); x+=(./$F); rm $N/$x/${x[1]}",
    "output-in-a-path": "mkdir $N; x=$(echo ../$F); rm $N/$x",
    "output-in-a-name": "mkdir $N $N'None' $N'null'; x=$(echo /../$F); rm $N$x",
    "set-then-run": 'set -- rm $F; "$@"',
    "set-then-one": "set -- $F; rm $1",
    "positional-of-bash": "bash -c '\"$@\"' x rm $F",
    "zero-of-bash": "bash -c '$0 $1' rm $F",
    "printf-variable": "printf -v x 'rm %s' $F; $x",
    "declared": "declare x='rm $F'; $x",
    "nameref": "y=rm; declare -n x=y; $x $F",
    "changed-in-a-loop": "x=echo; for y in 1 2; do $x $F; x=rm; done",
    "changed-in-a-function": "x=echo; f() { x=rm; }; f; $x $F",
    "changed-in-arithmetic": "x='a[$(rm $F)]'; echo $((x))",
    "changed-by-default": ": ${x:=rm}; $x $F",
    "prompt-expansion": "x='$(rm $F)'; echo ${x@P}",
    "indirect": "x=rm; y=x; ${!y} $F",
    "test-evaluates": "[[ -v 'a[$(rm $F)]' ]]",
    "length-in-a-name": "x=abc; ln -s $D $N''3; : > $N${#x}/file.txt",
    "several-words-of-a-variable": "x='.txt -o $F'; sort $D/table$x",
    "test-replaces": "x=1; y='a[$(rm $F)]'; [[ ${x/1/$y} -eq 1 ]]",
    "test-replaces-quoted": "x=1; [[ ${x/1/'a[$(rm $F)]'} -eq 1 ]]",
    "test-takes-another": "x=1; y='a[$(rm $F)]'; [[ ${x:+$y} -eq 1 ]]",
    "test-takes-a-part": "x=1; y='za[$(rm $F)]'; [[ ${y:1} -eq 1 ]]",
    "arithmetic-replaces": "x=1; y='a[$(rm $F)]'; echo $(( ${x/1/$y} ))",
    "test-by-name": "test -v 'a[$(rm $F)]'",
    "bracket": "[ -v 'a[$(rm $F)]' ]",
    "bracket-not": "[ ! -v 'a[$(rm $F)]' ]",
    "bracket-of-several": "[ -n x -a -v 'a[$(rm $F)]' ]",
    "bracket-by-output": "[ $(echo -v) 'a[$(rm $F)]' ]",
    "option-by-output": 'sort "$(echo -o$D/file).txt" $D/table.txt',
    "option-by-pattern": "mkdir ./-o$D; echo a > ./-o$D/file.txt; sort *$D/file.txt $D/table.txt",
    "option-by-output-alone": "sort $(echo -o$F) $D/table.txt",
    "mode-by-output": "chmod $(echo 000) $F",
    "test-compares": "[[ 'a[$(rm $F)]' -eq 1 ]]",
    **{
        f"test-compares{op}": f"[[ 1 {op} 'a[$(rm $F)]' ]]"
        for op in ("-ne", "-lt", "-le", "-gt", "-ge")
    },
    "braces-around-quotes": "sort {'-o'$F,} /etc/hostname",
    "braces-after-quotes": "sort {'-o',$F} /etc/hostname",
    "braces-of-quotes": 'sort {"-o$F","-r"} /etc/hostname',
    "braces-in-pieces": "sort -{'r','o'$F} /etc/hostname",
    "unset-evaluates": "unset 'a[$(rm $F)]'",
    "read-evaluates": "read 'a[$(rm $F)]' <<< x",
    "let-evaluates": "let 'a[$(rm $F)]=1'",
    "printf-evaluates": "printf -v 'a[$(rm $F)]' x",
    "wait-evaluates": "wait -n -p 'a[$(rm $F)]'",
    "case-evaluates": "case x in $(rm $F)) ;; esac",
    "for-evaluates": "for ((i = $(rm $F; echo 1); i < 1; i++)); do :; done",
    "bind": "bind -x '\"a\": rm $F'; rm $F",
    "compgen": "compgen -C 'rm $F'",
    "command-not-found": "command_not_found_handle() { rm $F; }; nothing-like-this",
    "trap-exit": "trap 'rm $F' EXIT",
    "trap-debug": "trap 'rm $F' DEBUG; :",
    "trap-err": "trap 'rm $F' ERR; false",
    "alias": "shopt -s expand_aliases\nalias x='rm $F'\nx",
    "coprocess": "coproc rm $F; wait",
    "background": "rm $F & wait",
    "background-group": "{ rm $F; } & wait",
    "nohup-background": "nohup rm $F > /dev/null & wait",
    "detached": "setsid rm $F",
}

#: One character of a program's name is enough to hide it; each of these is the same word to a shell.
NAMES: Final[Mapping[str, Callable[[str], str]]] = {
    "backslash": lambda name: "\\" + name,
    "backslash-inside": lambda name: name[0] + "\\" + name[1:],
    "single-quotes": lambda name: f"'{name}'",
    "double-quotes": lambda name: f'"{name}"',
    "quotes-inside": lambda name: f"{name[0]}''{name[1:]}",
    "empty-expansion": lambda name: f"{name[0]}${{nothing}}{name[1:]}",
    "empty-substitution": lambda name: f"{name[0]}$(){name[1:]}",
    "unset-positional": lambda name: f"{name[0]}$9{name[1:]}",
    "ansi-hex": lambda name: "$'" + "".join(f"\\x{ord(c):02x}" for c in name) + "'",
    "ansi-octal": lambda name: "$'" + "".join(f"\\{ord(c):03o}" for c in name) + "'",
    "ansi-unicode": lambda name: "$'" + "".join(f"\\u{ord(c):04x}" for c in name) + "'",
    "ansi-long": lambda name: "$'" + "".join(f"\\U{ord(c):08x}" for c in name) + "'",
    "locale-quotes": lambda name: f'$"{name}"',
    "line-continued": lambda name: f"{name[0]}\\\n{name[1:]}",
    "absolute": lambda name: f"/bin/{name}",
    "absolute-dots": lambda name: f"/usr/../bin/./{name}",
    "absolute-slashes": lambda name: f"//usr//bin//{name}",
    "absolute-by-which": lambda name: f"$(command -v {name})",
    "glob": lambda name: f"/bin/{name[:-1]}?",
    "glob-set": lambda name: f"/bin/[{name[0]}]{name[1:]}",
    "brace": lambda name: f"{{{name},}}" if len(name) > 2 else f"{{,}}{name}",
    "variable": lambda name: f"x={name}; $x",
    "variable-quoted": lambda name: f'x={name}; "$x"',
    "variable-in-braces": lambda name: f"x={name}; ${{x}}",
    "variable-in-two": lambda name: f"x={name[0]}; y={name[1:]}; $x$y",
    "variable-cut": lambda name: f"x=a{name}; ${{x#a}}",
    "variable-cut-end": lambda name: f"x={name}a; ${{x%a}}",
    "variable-lower": lambda name: f"x={name.upper()}; ${{x,,}}",
    "variable-replaced": lambda name: f"x={name}; ${{x/@/}}",
    "variable-slice": lambda name: f"x=a{name}; ${{x:1}}",
    "variable-default": lambda name: f"${{nothing:-{name}}}",
    "variable-alternative": lambda name: f"x=1; ${{x:+{name}}}",
    "variable-exported": lambda name: f"export x={name}; $x",
    "variable-read": lambda name: f"read x <<< {name}; $x",
    "substituted": lambda name: f"$(echo {name})",
    "backquoted": lambda name: f"`echo {name}`",
    "printed": lambda name: f"$(printf '%s' {name})",
    "reversed": lambda name: f"$(rev <<< {name[::-1]})",
    "decoded": lambda name: f"$(base64 -d <<< {base64.b64encode(name.encode()).decode()})",
    "translated": lambda name: (
        f"$(tr b-za a-z <<< {''.join(chr(ord(c) % 32 % 26 + 97) for c in name)})"
    ),
    "command": lambda name: f"command {name}",
    "command-path": lambda name: f"command -p {name}",
    "command-dashes": lambda name: f"command -- {name}",
    "builtin": lambda name: f"builtin command {name}",
    "exec": lambda name: f"exec {name}",
    "exec-name": lambda name: f"exec -a ls {name}",
    "env": lambda name: f"env {name}",
    "env-dashes": lambda name: f"env -- {name}",
    "env-ignoring": lambda name: f"env -i {name}",
    "env-unset": lambda name: f"env -u X {name}",
    "env-set": lambda name: f"env A=1 B=2 {name}",
    "assigned": lambda name: f"A=1 B=2 {name}",
    "nohup": lambda name: f"nohup {name}",
    "nice": lambda name: f"nice {name}",
    "nice-number": lambda name: f"nice -n 1 {name}",
    "nice-joined": lambda name: f"nice -1 {name}",
    "nice-long": lambda name: f"nice --adjustment=1 {name}",
    "ionice": lambda name: f"ionice -c 3 {name}",
    "timeout": lambda name: f"timeout 5 {name}",
    "timeout-signal": lambda name: f"timeout -s KILL 5s {name}",
    "timeout-long": lambda name: f"timeout --signal=KILL 5 {name}",
    "timeout-joined": lambda name: f"timeout -k1 5 {name}",
    "stdbuf": lambda name: f"stdbuf -o0 {name}",
    "setsid": lambda name: f"setsid -w {name}",
    "time": lambda name: f"time {name}",
    "time-program": lambda name: f"/usr/bin/time {name}",
    "negated": lambda name: f"! {name}",
    "busybox": lambda name: f"busybox {name}",
    "xargs": lambda name: f"xargs {name} < /dev/null",
    "chroot": lambda name: f"chroot / {name}",
    "unshare": lambda name: f"unshare {name}",
    "linux64": lambda name: f"linux64 {name}",
    "loader": lambda name: f"/lib64/ld-linux-x86-64.so.2 /bin/{name}",
}

#: The same file by another word.
PATHS: Final[Mapping[str, Callable[[str], str]]] = {
    "dot": lambda path: f"./{path}",
    "dots": lambda path: f"{path.partition('/')[0]}/../{path}",
    "slashes": lambda path: path.replace("/", "//"),
    "quoted": lambda path: f"'{path}'",
    "quoted-inside": lambda path: path[:3] + '""' + path[3:],
    "escaped": lambda path: "".join("\\" + letter for letter in path),
    "ansi": lambda path: "$'" + "".join(f"\\x{ord(c):02x}" for c in path) + "'",
    "home": lambda path: f"~/{path}",
    "home-variable": lambda path: f"$HOME/{path}",
    "here": lambda path: f"$PWD/{path}",
    "here-now": lambda path: f"$(pwd)/{path}",
    "star": lambda path: path[:-2] + "*",
    "question": lambda path: path[:-1] + "?",
    "set": lambda path: path[:-1] + f"[{path[-1]}]",
    "brace": lambda path: path[:-1] + f"{{{path[-1]},}}",
    "brace-range": lambda path: path[:-1] + f"{{{path[-1]}..{path[-1]}}}",
    "set-class": lambda path: path[:-1] + "[[:alpha:]]",
    "set-negated": lambda path: path[:-1] + "[!.]",
    "set-range": lambda path: path[:-1] + f"[{path[-1]}-{path[-1]}]",
    "set-in-quotes": lambda path: path[:-1] + f"['{path[-1]}']",
    "pattern-and-quotes": lambda path: f'"{path[:-2]}"?"{path[-1]}"',
    "star-inside": lambda path: path.replace("-", "*", 1),
    "home-now": lambda path: f"~+/{path}",
    "home-in-a-value": lambda path: f"$(x=~/{path}; echo $x)",
    "dots-further": lambda path: f"{path.partition('/')[0]}/sub/../{path.partition('/')[2]}",
    "slash-dot": lambda path: path.replace("/", "/./"),
    "substituted": lambda path: f"$(echo {path})",
    "found": lambda path: f"$(find {path} -maxdepth 0)",
    "decoded": lambda path: f"$(base64 -d <<< {base64.b64encode(path.encode()).decode()})",
    "default": lambda path: f"${{nothing:-{path}}}",
    "after-dashes": lambda path: f"-- {path}",
}

#: Expansions of a variable, ``x`` that is set and ``n`` that is not, and where in them a substitution runs.
_EXPANSIONS: Final = (
    *("${n-@}", "${n:-@}", "${n=@}", "${n:=@}", "${n?@}", "${n:?@}", "${x+@}", "${x:+@}"),
    *("${x#@}", "${x##@}", "${x%@}", "${x%%@}", "${x^@}", "${x^^@}", "${x,@}", "${x,,@}"),
    *("${x/@}", "${x//@}", "${x/#@}", "${x/%@}", "${x/@/b}", "${x//@/b}", "${x/#@/b}", "${x/%@/b}"),
    *("${x/a/@}", "${x//a/@}", "${x/#a/@}", "${x/a/a @}", "${n-a@}", "${x/b@/b}", "${n-'a'@}"),
    *("${x/${n-@}/b}", "${x/a/${n-@}}", "${n-${x/@/b}}", '"${x/@/b}"', '"${x%@}"', "${x/\\\\@/b}"),
    *("${x:@}", "${x:0:@}", "${x[@]}", "${x[0]/@/b}", "${*/@/b}", "${!x/@/b}", "$((${x/@/1}))"),
    # Within double quotes a single one is a letter, but for patterns.
    *("\"${n-'@'}\"", "\"${n:='@'}\"", "\"${x+'@'}\"", "\"${n?'@'}\"", "\"${n-'}@'}\""),
    *("\"a${n:-b'c@'}\"", "\"${n-${n-'@'}}\"", "\"${x/'@'/b}\"", "\"${x#'@'}\"", "$((${n-'@'}))"),
)

#: Substitutions, of output and of files, one of which may be on its way still when the command ends.
_SUBSTITUTIONS: Final[tuple[Callable[[str], str], ...]] = (
    lambda c: f"<({c}\n)",
    lambda c: f">({c}\n)",
    lambda c: f"`{c}\n`",
    lambda c: f"<\\\n({c}\n)",
)


def _output(command: str) -> str:
    """A command whose output is substituted."""
    return f"$({command}\n)"


def _expanding(place: str, substitution: Callable[[str], str]) -> Callable[[str], str]:
    """A command as a substitution within an expansion."""
    return lambda c: f"x=a; : {place.replace('@', substitution(c))}; sleep 0.2"


def _documented(place: str) -> Callable[[str], str]:
    """A command as a substitution within an expansion in a here-document."""
    return lambda c: f"x=a; cat <<E\n{place.replace('@', _output(c))}\nE"


def _expansions() -> dict[str, Callable[[str], str]]:
    """A substitution of output at each place, and one of another kind."""
    found = {}
    for number, place in enumerate(_EXPANSIONS):
        other = _SUBSTITUTIONS[number % len(_SUBSTITUTIONS)]
        found[f"output-in {place}"] = _expanding(place, _output)
        found[f"{other('-')!r}-in {place}"] = _expanding(place, other)
    return found


#: What a command may stand in. ``quote`` makes it one word of a shell.
AROUND: Final[Mapping[str, Callable[[str], str]]] = {
    "after-semicolon": lambda c: f"true; {c}",
    "after-and": lambda c: f"true && {c}",
    "after-or": lambda c: f"false || {c}",
    "after-many": lambda c: "true; " * 300 + c,
    "after-pipe": lambda c: f"true | {{ {c}\n}}",
    "before-pipe": lambda c: f"{{ {c}\n}} | cat",
    "before-pipe-both": lambda c: f"{{ {c}\n}} |& cat",
    "after-newlines": lambda c: "\n\n  \t" + c,
    "after-comment": lambda c: f"# nothing to see\n{c}",
    "before-comment": lambda c: f"{c} # echo",
    # Bash escapes the carriage return alone; to others it is half of a line's end.
    "after-escaped-carriage-return": lambda c: f"echo a \\\r\n{c}",
    "after-here-document-of-carriage-returns": lambda c: (
        f"cat > /dev/null <<E\nE\r\n: <<E2\nE\n{c}\n: <<E2\nE2"
    ),
    "after-long-comment": lambda c: "# " + "x" * 6000 + f"\n{c}",
    "after-long-word": lambda c: ": " + "x" * 6000 + f"; {c}",
    "after-here-document": lambda c: f"cat > /dev/null <<'E'\nharmless\nE\n{c}",
    "beyond-any-length": lambda c: ": " + "x" * 70_000 + f"; {c}",
    "subshell": lambda c: f"({c}\n)",
    "braces": lambda c: f"{{ {c}\n}}",
    "nested": lambda c: f"{{ ( {{ ({c}\n) ; }} ) ; }}",
    "deeply-nested": lambda c: "(" * 40 + c + "\n" + ")" * 40,
    "substitution": lambda c: f"echo $({c}\n)",
    "substitution-quoted": lambda c: f'echo "a $({c}\n) b"',
    "substitution-in-substitution": lambda c: f"echo $(echo $({c}\n))",
    "substitution-in-a-value": lambda c: f"x=$({c}\n)",
    "substitution-in-an-export": lambda c: f"export x=$({c}\n)",
    "substitution-before-a-command": lambda c: f"x=$({c}\n) true",
    "substitution-in-a-default": lambda c: f"echo ${{nothing:-$({c}\n)}}",
    "substitution-in-a-pattern": lambda c: f"x=a; echo ${{x#$({c}\n)}}",
    "substitution-in-a-replacement": lambda c: f"x=a; echo ${{x/a/$({c}\n)}}",
    **_expansions(),
    "substitution-in-a-slice": lambda c: f"x=a; echo ${{x:$({c}\n)}}",
    "substitution-in-a-subscript": lambda c: f"x[$({c}\n)]=1",
    "substitution-in-an-array": lambda c: f"x=($({c}\n))",
    "substitution-in-a-redirection": lambda c: f"echo a > /dev/null$({c}\n)",
    "substitution-read": lambda c: f"cat < <({c}\n)",
    "substitution-written": lambda c: f"true > >({c}\n); wait",
    "substitution-teed": lambda c: f"true | tee >({c}\n)",
    "substitution-in-here-string": lambda c: f"cat <<< $({c}\n)",
    "substitution-in-here-document": lambda c: f"cat <<E\n$({c}\n)\nE",
    **{
        f"substitution-in-{name}-of-a-here-document": _documented(place)
        for name, place in (
            ("a-default", "${n-@}"),
            ("a-pattern", "${x#@}"),
            ("quotes", "${n-'@'}"),
            ("quoted-braces", "a ${n:='}@'}"),
            ("quotes-within", "\"${x+'@'}\""),
        )
    },
    "substitution-in-stripped-here-document": lambda c: f"cat <<-E\n\t$({c}\n)\n\tE",
    "substitution-in-arithmetic": lambda c: f"echo $((1 + $({c}\n echo 1)))",
    "substitution-in-old-arithmetic": lambda c: f"echo $[1 + $({c}\n echo 1)]",
    "substitution-in-a-test": lambda c: f"[[ $({c}\n) ]]",
    "substitution-in-test": lambda c: f'test "$({c}\n)"',
    "substitution-in-a-regex": lambda c: f"[[ a =~ $({c}\n) ]]",
    "substitution-in-a-case": lambda c: f"case $({c}\n) in *) ;; esac",
    "substitution-in-a-list": lambda c: f"for x in $({c}\n); do :; done",
    "substitution-in-double-parentheses": lambda c: f"(( $({c}\n echo 1) ))",
    "if-condition": lambda c: f"if {c}\nthen :; fi",
    "if-then": lambda c: f"if true; then {c}\nfi",
    "if-else": lambda c: f"if false; then :; else {c}\nfi",
    "if-elif": lambda c: f"if false; then :; elif {c}\nthen :; fi",
    "if-elif-then": lambda c: f"if false; then :; elif true; then {c}\nfi",
    "while-condition": lambda c: f"while {c}\ndo break; done",
    "while-body": lambda c: f"while true; do {c}\nbreak; done",
    "until-body": lambda c: f"until false; do {c}\nbreak; done",
    "until-condition": lambda c: f"until {c}\ntrue; do :; done",
    "for-body": lambda c: f"for x in 1; do {c}\ndone",
    "for-arithmetic": lambda c: f"for ((;;)); do {c}\nbreak; done",
    "select-body": lambda c: f"select x in 1; do {c}\nbreak; done <<< 1",
    "case-item": lambda c: f"case a in b) ;; a) {c}\n;; esac",
    "case-falls-through": lambda c: f"case a in a) ;& b) {c}\n;; esac",
    "function": lambda c: f"f() {{ {c}\n}}; f",
    "function-of-a-name": lambda c: f"ls() {{ {c}\n}}; ls",
    "function-keyword": lambda c: f"function f {{ {c}\n}}; f",
    "function-exported": lambda c: f"f() {{ {c}\n}}; export -f f; bash -c f",
    "trap": lambda c: f"trap {shlex.quote(c)} EXIT",
    "eval": lambda c: f"eval {shlex.quote(c)}",
    "eval-twice": lambda c: f"eval eval {shlex.quote(shlex.quote(c))}",
    "eval-of-variable": lambda c: f'x={shlex.quote(c)}; eval "$x"',
    "eval-of-substitution": lambda c: f'eval "$(echo {shlex.quote(c)})"',
    "bash": lambda c: f"bash -c {shlex.quote(c)}",
    "bash-joined": lambda c: f"bash -ec {shlex.quote(c)}",
    "bash-login": lambda c: f"bash -lc {shlex.quote(c)}",
    "bash-long": lambda c: f"bash --norc -c {shlex.quote(c)}",
    "bash-option": lambda c: f"bash -o errexit -c {shlex.quote(c)}",
    "bash-plus": lambda c: f"bash +x -c {shlex.quote(c)}",
    "bash-of-bash": lambda c: f"bash -c {shlex.quote(f'bash -c {shlex.quote(c)}')}",
    "bash-of-positional": lambda c: f"bash -c 'eval \"$1\"' x {shlex.quote(c)}",
    "bash-of-variable": lambda c: f"x={shlex.quote(c)} bash -c 'eval \"$x\"'",
    "bash-of-substitution": lambda c: f'bash -c "$(echo {shlex.quote(c)})"',
    "bash-input": lambda c: f"echo {shlex.quote(c)} | bash",
    "bash-input-s": lambda c: f"echo {shlex.quote(c)} | bash -s",
    "bash-dev-stdin": lambda c: f"echo {shlex.quote(c)} | bash /dev/stdin",
    "bash-here-string": lambda c: f"bash <<< {shlex.quote(c)}",
    "bash-here-document": lambda c: f"bash <<'E'\n{c}\nE",
    "bash-decoded": lambda c: f"base64 -d <<< {base64.b64encode(c.encode()).decode()} | bash",
    "bash-substitution": lambda c: f"bash <(echo {shlex.quote(c)})",
    "sh": lambda c: f"sh -c {shlex.quote('bash -c ' + shlex.quote(c))}",
    "xargs-within-a-script": lambda c: (
        f"echo {shlex.quote(shlex.quote('; ' + c))} | xargs -I@ sh -c 'echo @'"
    ),
    "xargs-within-a-longer-script": lambda c: (
        f"echo {shlex.quote(shlex.quote('; ' + c))} | xargs --replace=HERE bash -c 'true; echo HERE x'"
    ),
    "sh-in-xargs": lambda c: f"echo 1 | xargs -I@ bash -c {shlex.quote(c)}",
    "source-substitution": lambda c: f"source <(echo {shlex.quote(c)})",
    "source-stdin": lambda c: f"echo {shlex.quote(c)} | . /dev/stdin",
    "busybox": lambda c: f"busybox sh -c {shlex.quote(c)}",
    "env": lambda c: f"env bash -c {shlex.quote(c)}",
    "env-split": lambda c: f"env -S {shlex.quote('bash -c ' + shlex.quote(c))}",
    "find": lambda c: f"find . -maxdepth 0 -exec bash -c {shlex.quote(c)} \\;",
    "xargs": lambda c: f"echo {shlex.quote(shlex.quote(c))} | xargs bash -c",
    "awk": lambda c: (
        "awk 'BEGIN { system(\"echo "
        + base64.b64encode(c.encode()).decode()
        + " | base64 -d | bash\") }'"
    ),
    "python": lambda c: f"python3 -c {shlex.quote(f'import os; os.system({c!r})')}",
    "perl": lambda c: (
        "perl -e 'system(\"echo "
        + base64.b64encode(c.encode()).decode()
        + " | base64 -d | bash\")'"
    ),
    "background": lambda c: f"{{ {c}\n}} & wait",
    "coprocess": lambda c: f"coproc {{ {c}\n}}; wait",
    "negated": lambda c: f"! {{ {c}\n}}",
    "timed": lambda c: f"time {{ {c}\n}}",
    "redirected": lambda c: f"{{ {c}\n}} > /dev/null 2>&1 < /dev/null",
    "with-options-set": lambda c: f"set -e; {c}",
    "with-globbing-off": lambda c: f"shopt -s extglob; {c}",
    "carriage-return": lambda c: f"true\r\n{c}",
    "line-continued": lambda c: f"true \\\n; {c}",
    "many-lines": lambda c: "\n".join(["echo line"] * 200 + [c]),
}


def filled_in(command: str, *, directory: str, free: str, root: str = ".") -> str:
    """A command with the names of files in it.

    Args:
        command: with ``$F``, ``$E``, ``$D``, ``$N`` and ``$R``.
        directory: the canary's, relative to the working root.
        free: a name that no file has.
        root: the working root itself.
    """
    places = {
        "$F": f"{directory}/file.txt",
        "$E": f"{directory}/empty",
        "$D": directory,
        "$N": free,
        "$R": root,
    }
    return re.sub(r"\$[FEDNR]\b", lambda found: places[found[0]], command)


def combined(dice: random.Random, fill: Callable[[str], str]) -> str:
    """A harm in disguise: its name, its file or neither, within one to three constructs.

    Args:
        dice: which.
        fill: puts names of files into a command.
    """
    match dice.randrange(3):
        case 0:
            name = dice.choice(["rm", "unlink", "shred", "tee"])
            harm = fill(f"{dice.choice(list(NAMES.values()))(name)} $F")
        case 1:
            doing = dice.choice(["rm", "cp /dev/null", ": >", "tee -a", "chmod 0"])
            harm = f"{doing} {dice.choice(list(PATHS.values()))(fill('$F'))}"
        case _:
            harm = fill(dice.choice(list(HARMS.values())))
    for _ in range(dice.randrange(1, 4)):
        harm = dice.choice(list(AROUND.values()))(harm)
    return harm
