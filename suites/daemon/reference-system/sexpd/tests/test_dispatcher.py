"""The dispatcher: what it refuses and what it lets run, judged without running anything."""

import os
import stat

import pytest
import trio

from sexpd.shell import syntax
from sexpd.shell.dispatcher import judge
from sexpd.shell.verdict import Refused

REFUSED = r"""
rm -rf /
rm -fr /
rm -r -f /
rm -f -r /
rm --recursive --force /
rm --rec --for /
rm -rf -- canary
rm canary
rm -f canary
rm ./canary
rm -rf ./*
rm -rf .
rm -rf ..
rm -rf "$HOME"
rm -rf ~
rm -rf $PWD
rm -rf ${HOME}
'rm' -rf canary
"rm" -rf canary
r''m -rf canary
r"m" -rf canary
\rm -rf canary
r\m -rf canary
/bin/rm -rf canary
/usr/bin/../bin/rm canary
$'rm' canary
$'\x72\x6d' -rf canary
$'\162m' canary
x=rm; $x -rf canary
x=r; y=m; $x$y canary
x=echo; x=rm; $x canary
x="rm -rf canary"; $x
$unset rm canary
${x:-rm} canary
${BASH:-rm} canary
$(echo rm) canary
`echo rm` canary
echo $(rm canary)
echo "$(rm canary)"
echo `rm canary`
echo ${x:-$(rm canary)}
echo ${x:-<(rm canary)}
echo ${x-a>(rm canary)}
x=a; echo "${x/<(rm canary)/b}"
x=a; echo ${x/a/\\<(rm canary)}
x=a; y=${x%${y:-b<(rm canary)}}
echo "${x-'$(rm canary)'}"
echo "${x:-a'`rm canary`'}"
echo "${x-'}$(rm canary)'}"
echo "${x-${y-'$(rm canary)'}}"
echo "${x:=$(rm canary)}"
(rm canary)
{ rm canary; }
true && rm canary
false || rm canary
true; rm canary
! rm canary
echo canary | xargs rm
echo canary | xargs -I{} rm {}
echo canary | xargs -n1 rm -f
echo 'rm canary' | sh
echo 'rm canary' | bash -s
echo cm0gY2FuYXJ5 | base64 -d | sh
sh -c 'rm canary'
bash -c "rm canary"
bash -c 'sh -c "rm canary"'
sh -c "$(echo rm canary)"
sh -c "echo \$'\\'; rm canary; #'"
sh <<< 'rm canary'
sh < canary
bash <<EOF
sh script.sh
. canary
source canary
eval rm canary
eval "r""m canary"
x=echo; eval x=rm; $x canary
eval 'cd /tmp'; echo x > f
alias ls=rm; ls canary
ls() { rm canary; }; ls
function ls { rm canary; }
:(){ :|:& };:
rm canary &
coproc rm canary
env rm canary
env X=1 rm canary
env -S 'rm canary'
env -i rm canary
nohup rm canary
nice -n 5 rm canary
timeout 5 rm canary
timeout -s KILL 5 rm canary
stdbuf -oL rm canary
command rm canary
command -p rm canary
builtin eval rm canary
exec rm canary
sudo rm canary
doas rm canary
setsid rm canary
time rm canary
busybox rm canary
busybox sh -c 'rm canary'
/bin/busybox rm canary
find . -delete
find . -name canary -delete
find . -del''ete
find . -exec rm {} \;
find . -exec rm {} +
find . -execdir rm {} \;
find . -exec sh -c 'rm "$1"' _ {} \;
find . -fprint canary
find . $x
find . {-delete,-print}
find . -name canary -print0 | xargs -0 rm
unlink canary
rmdir sub
shred canary
shred -u canary
truncate -s 0 canary
dd if=/dev/zero of=canary
dd if=/dev/zero of=/dev/sda
mkfs.ext4 /dev/sda
mkfs -t ext4 /dev/sda
wipefs -a /dev/sda
mv canary /dev/null
mv canary /tmp/elsewhere
mv canary other
mv sub other
cp /dev/null canary
cp -f /etc/passwd canary
cp -r /etc/passwd canary
cp /etc/passwd /tmp/x
install /dev/null canary
ln -sf /dev/null canary
ln -s canary t; : > t
ln canary t; : > t
: > t | ln canary t
ln -s sub t; : > t/inner
ln -s sub t; : > t/../canary
: > canar['y']
echo x >> canar["y"]
ln -s sub t; ln -s t v; echo x >> v/../canary
for i in 1 2; do : > t/inner; ln -s sub t; done
cp -r sub t; : > t/inner
mkdir t; echo x > t/canary; cp -r t/. .
mkdir t; rmdir t; ln -s sub t; : > t/inner
mkdir t; mv t u; ln -s sub t; : > t/inner
tee canary < /dev/null
tee -a canary < /dev/null
echo x > canary
echo x >> canary
echo x >| canary
: > canary
> canary
cat /dev/null > canary
echo x &> canary
echo x >& canary
echo x > sub/inner
echo x > "can"ary
echo x > /etc/passwd
echo x > ../outside
echo x > /tmp/outside
echo x > $(echo canary)
echo x > link
echo x 1<> canary
exec > canary
cd /tmp; echo x > f
echo x > f; cd /tmp
for i in 1 2; do echo x > f; cd /tmp; done
sed -i s/a/b/ canary
sed -n 'w canary' /etc/passwd
sed 's/x/y/w canary' /etc/passwd
sed 's/x/rm canary/e' /etc/passwd
sed '1e rm canary' /etc/passwd
awk 'BEGIN { system("rm canary") }'
awk 'BEGIN { print "x" > "canary" }'
awk 'BEGIN { print "x" | "sh" }'
awk 'BEGIN { "rm canary" | getline }'
sort -o canary /etc/passwd
sort --output=canary /etc/passwd
uniq /etc/passwd canary
perl -e 'unlink "canary"'
python3 -c 'import os; os.remove("canary")'
python3 -c '__import__("os").remove("canary")'
python3 -c 'open("canary", "w")'
python3 -c 'sorted(["open(chr(99), chr(119))"], key=eval)'
python3 -c 'len = eval; len("open(chr(99), chr(119))")'
python3 -c 'print(sorted(["1"], key=print.__self__.eval))'
python3 -c 'x = exec; print(1)'
python3 script.py
ruby -e 'File.delete("canary")'
node -e 'x'
tar -xf canary
tar cf canary sub
tar --remove-files -cf x.tar canary
rsync -a --delete /tmp/empty/ .
git clean -fdx
chmod 000 canary
chmod -R 777 .
chmod 777 canary
chmod 644 canary
chmod +x canary
chown nobody canary
chattr +i canary
mkdir /tmp/x
touch /tmp/x
kill -9 1
pkill sexpd
reboot
shutdown now
curl http://127.0.0.1/x | sh
wget -O canary http://127.0.0.1/x
echo x > /dev/tcp/127.0.0.1/80
cat < /dev/tcp/127.0.0.1/80
PATH=.:$PATH ls
LD_PRELOAD=./x.so ls
BASH_ENV=canary bash -c true
export PATH=.; ls
IFS=x; ls
printf -v 'a[$(rm canary)]' x
printf -v PATH .
test -v 'a[$(rm canary)]'
[ -v 'a[$(rm canary)]' ]
test $(printf '%s %s' -v 'x')
x='a[$(rm canary)]'; echo $((x))
x='a[$(rm canary)]'; [[ x -eq 1 ]]
x='a[$(rm canary)]'; ((x))
x='$(rm canary)'; echo ${x@P}
x=canary; echo ${!x}
read x <<< rm; $x canary
while read x; do $x canary; done <<< rm
for x in rm; do $x canary; done
if true; then rm canary; fi
case a in a) rm canary;; esac
while true; do rm canary; break; done
cat <<EOF
cat <(rm canary)
echo x > >(rm canary)
[[ $(rm canary) ]]
trap 'rm canary' EXIT
/tmp/script
./script
unknown-program
rm $(cat canary)
hostname evil
date -s 2020-01-01
date 010100002020
echo "unterminated
echo )
sed 's/[/]X/;s|/e;#|z|' canary
sed '/[/]X/;s|/e;#|z|' canary
sed 's/x/y/e' canary
for i in 1; do re""ad i <<< 'a[$(rm canary)]'; echo $((i)); done
GETCONF_DIR=. getconf -v x
OPENSSL_CONF=x sha256sum canary
IFS=x eval ls
IFS=x; read y
"""

ALLOWED = r"""
echo hello
echo "rm -rf /"
echo 'rm -rf /'
echo rm -rf /
echo "dd if=/dev/zero of=/dev/sda"
echo "mkfs.ext4 /dev/sda" | cat
echo ":(){ :|:& };:"
echo '$(rm -rf /)'
echo "\$(rm -rf /)"
echo \`rm\`
printf '%s\n' 'rm -rf /'
grep 'rm -rf' canary
grep -r "rm -rf /" . || true
grep -c rm canary
ls rm-folder
ls -la | grep rm
ls *.txt
ls /
cat canary
cat canary | wc -l
cat rm.txt 2>/dev/null
cat < canary
cat <<< 'rm -rf /'
head -n 1 canary
tail -1 canary
wc -c < canary
find . -name '*.txt'
find . -name *.txt
find . -name delete
find . -type f -exec cat {} \;
find . -type f -exec grep -l rm {} +
find . -name 'rm*' -print
find . \( -name a -o -name b \) -print0 | xargs -0 ls
seq 3 | xargs echo
echo a b | xargs -n1 echo
echo a | xargs -I{} echo {}
sort canary
sort -u -k2 canary | uniq -c
sed 's/rm/RM/g' canary
sed -n '1,3p' canary
sed -e 's/a/b/' -e '/x/d' canary
awk '{ print $1 }' canary
awk -F: 'NR == 1 { print $1 }' /etc/passwd
tr a-z A-Z < canary
cut -d: -f1 /etc/passwd
x=hello; echo $x
x=echo; $x hi
cmd=ls; $cmd -la
x=5; echo $((x + 1))
i=1; i=$((i + 1)); echo $i
for i in 1 2 3; do echo $((i * 2)); done
for f in *.txt; do echo "$f"; done
while read line; do echo "$line"; done < canary
if [ -f canary ]; then echo yes; else echo no; fi
if [[ -d sub && "rm -rf" == rm* ]]; then echo yes; fi
case rm in rm) echo found;; *) echo none;; esac
[ "$x" = rm ] || echo no
test -e canary && echo there
(cd sub; pwd)
{ echo a; echo b; }
! false
time true
echo $(echo nested "$(date +%s)")
echo "today is $(date)"
echo `pwd`
diff <(echo a) <(echo a)
sh -c 'echo hi'
bash -c 'echo "rm -rf /"'
eval 'echo hi'
env
env X=1 printenv X
env LANG=C sort canary
nohup echo hi
nice -n 5 echo hi
timeout 5 echo hi
command -v rm
command ls
type rm
which rm
busybox echo hi
/bin/echo hi
/usr/bin/env echo hi
rm --help
rm --version
dd --version
find --version
python3 -c 'print("rm -rf /")'
python3 -c 'print(1 + 1)'
python3 -c 'x = "b"; print(sorted([x, "aa"], key=len), x)'
python3 --version
echo new > new.txt
echo new > new.txt; echo more >> new.txt; cat new.txt; rm new.txt
touch new; mv new newer
mkdir -p a/b && echo x > a/b/c && cat a/b/c
mkdir d && rmdir d
echo x | tee out.txt
cp canary copy
cp -r sub copy
ln -s canary alias
touch canary
echo x > new; chmod 644 new; chmod +x new
echo x >/dev/null 2>&1
ls nowhere 2>/dev/null
ls nowhere &> /dev/null
echo x >&2
exec echo hi
set -e; echo hi
export GREETING=hi; echo $GREETING
tar -tf x.tar
date +%Y-%m-%d
date -d tomorrow
uname -a
id
sleep 0
exit 3
true
:
echo $'tab\there'
echo ${x:-default} ${#x} "${x%.txt}"
echo ${x:-"<(a)"} "${x/\<(/-}" "a <(b)"
echo ${x:-'$(a)'} "${x%'.txt'}" "${x:-'a'}"
echo {1..3}
[ 1 -lt 2 ]
jq -n '1'
echo "remove everything with rm -rf ~" > notes.txt
while IFS= read -r line; do echo "$line"; done < canary
sed 's/[a-z]*//; s|/|-|g' canary
sed -n '/^[^#]/p' canary
sed 's/[[:space:]]*$//' canary
"""

HERE_REFUSED = ("bash <<EOF\nrm canary\nEOF", "cat <<EOF\n$(rm canary)\nEOF", "cat <<EOF\n`rm x`\nEOF",
                "cat <<EOF\n${x-'$(rm canary)'}\nEOF")
HERE_ALLOWED = ("cat <<'EOF'\nrm -rf / $(rm canary)\nEOF", "cat <<EOF\nrm -rf /\nEOF",
                "# rm -rf /\necho hi", "echo a \\\n  b")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "canary").write_text("alive\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner").write_text("alive\n")
    (tmp_path / "link").symlink_to("canary")
    return tmp_path


def rows(text):
    return [line for line in text.splitlines() if line]


def judged(command, *, root, owned=lambda path: False):
    async def run():
        return await judge(command, root=root, owned=owned, limit_chars=8192)

    return trio.run(run)


@pytest.mark.parametrize("command", [*rows(REFUSED), *HERE_REFUSED])
def test_refused(command, root):
    """Whatever could destroy, or cannot be followed, is refused."""
    with pytest.raises(Refused):
        judged(command, root=root)


@pytest.mark.parametrize("command", [*rows(ALLOWED), *HERE_ALLOWED])
def test_allowed(command, root):
    """What only looks dangerous may run."""
    assert judged(command, root=root) is not None


def test_owned_files_may_change(root):
    """A file that an earlier command made may be overwritten and removed."""
    judged("echo x > canary; rm canary", root=root, owned=lambda path: path.name == "canary")
    with pytest.raises(Refused):
        judged("echo x > canary", root=root, owned=lambda path: path.name == "other")


def test_control_characters_are_refused(root):
    """A carriage return, which shells and parsers read differently, is refused."""
    with pytest.raises(Refused):
        judged("echo a\r\nrm canary", root=root)


def test_deep_nesting_is_refused(root):
    """A command nested beyond all sense is refused, not a crash."""
    with pytest.raises(Refused):
        judged("$(" * 2500 + "true" + ")" * 2500, root=root)


def test_what_cannot_be_judged_is_refused(root, monkeypatch):
    """No process can be started for the parser: a refusal, and the connection stays."""
    monkeypatch.setattr(syntax, "parser", lambda: str(root / "canary"))
    with pytest.raises(Refused, match="cannot be started"):
        judged("echo 1", root=root)


def test_nothing_was_run(root):
    """Judging leaves the root as it was."""
    for command in rows(REFUSED):
        with pytest.raises(Refused):
            judged(command, root=root)
    assert stat.S_ISREG(os.lstat(root / "canary").st_mode)
    assert sorted(path.name for path in root.iterdir()) == ["canary", "link", "sub"]
