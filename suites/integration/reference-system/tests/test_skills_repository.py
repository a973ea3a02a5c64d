"""The repository of skills: a version is taken whole or not at all, and reads of its files are noticed."""

from __future__ import annotations

import mmap
import os
import subprocess
from pathlib import Path

import pytest
from workbench_contract.skills import Observed
from workbench_planning.skill_md import read_skill
from workbench_worker.noticing import Noticing
from workbench_worker.skills_repository import Repository, copied

SOUND = "---\nname: bolting\ndescription: tight\n---\nturn left\n"


def _git(folder: Path, *words: str, given: str = "") -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _commit(folder: Path, files: dict[str, str], *odd: str) -> str:
    """A commit of files, and of lines of fast-import beside them."""
    if not folder.exists():
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    lines = ["commit refs/heads/main", "committer a <a@b.invalid> 1700000000 +0000", "data 0", ""]
    lines.append("deleteall")
    for path, text in files.items():
        lines += [f'M 100644 inline "{path}"', f"data {len(text.encode())}", text]
    _git(folder, "fast-import", "--quiet", "--force", given="\n".join([*lines, *odd, ""]))
    return _git(folder, "rev-parse", "main")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "skills.git"


@pytest.fixture
def repository(tmp_path: Path, source: Path) -> Repository:
    return Repository(url=str(source), folder=tmp_path / "versions", timeout_s=30)


def _nothing_left(repository: Repository) -> None:
    assert [] == list(repository.folder.iterdir()), "a version that is not taken leaves nothing"


def test_a_version_is_taken_once_and_stays(source: Path, repository: Repository) -> None:
    """Each commit has its folder, which stays as it is when the repository goes on or goes away."""
    first = _commit(source, {"bolting/SKILL.md": SOUND, "bolting/a b.md": "ü", "README.md": "no"})
    given = repository.current()
    assert (first, ["bolting"], "") == (given.commit, [s.name for s in given.skills], given.problem)
    second = _commit(source, {"bolting/SKILL.md": SOUND + "more"})
    assert second == repository.current().commit
    source.rename(source.with_name("aside"))
    gone = repository.current()
    assert gone.commit is None and "cannot reach" in gone.problem
    kept = repository.folder / first / "skills"
    found = {str(each.relative_to(kept)) for each in kept.rglob("*") if each.is_file()}
    assert {"bolting/SKILL.md", "bolting/a b.md"} == found
    assert 2 == len(list(repository.folder.iterdir()))


@pytest.mark.parametrize(
    ("files", "odd", "says"),
    [
        ({}, (), "no folder at the top"),
        ({"SKILL.md": SOUND}, (), "no folder at the top"),
        ({"a/b/SKILL.md": SOUND}, (), "no folder at the top"),
        ({"bolting/SKILL.md": "turn left"}, (), "bolting/SKILL.md"),
        ({"Bolting/SKILL.md": SOUND.replace("bolting", "Bolting")}, (), "name"),
        ({"bolting/SKILL.md": SOUND.replace("tight", "''")}, (), "description"),
        ({"bolting/SKILL.md": SOUND}, (f"M 160000 {'1' * 40} bolting/more",), "submodule"),
        ({"bolting/SKILL.md": SOUND}, ("M 120000 inline bolting/x", "data 1", "."), "link"),
        ({"bolting/SKILL.md": SOUND, "bolting/a\\nb": ""}, (), "no name"),
        ({"bolting/SKILL.md": SOUND, **{f"bolting/{n}": "" for n in range(200)}}, (), "more than"),
        ({"bolting/SKILL.md": SOUND, "bolting/big": "x" * (4 << 20)}, (), "more than"),
    ],
)
def test_what_is_not_sound_is_not_taken(
    source: Path, repository: Repository, files: dict[str, str], odd: tuple[str, ...], says: str
) -> None:
    """Whatever is wrong with one file of a version, nothing of it is taken, and it is said what."""
    _commit(source, files, *odd)
    given = repository.current()
    assert (None, []) == (given.commit, given.skills)
    assert says in given.problem
    _nothing_left(repository)


def test_no_repository_and_no_commit(source: Path, tmp_path: Path, repository: Repository) -> None:
    """None configured, none there and none committed are three reasons to have none."""
    none = Repository(url="", folder=tmp_path / "none", timeout_s=1).current()
    assert "configured" in none.problem
    assert "cannot reach" in repository.current().problem
    subprocess.run(["git", "init", "-q", "--bare", str(source)], check=True)
    assert "no commit" in repository.current().problem
    option = Repository(url="--upload-pack=touch owned", folder=tmp_path / "o", timeout_s=5)
    assert option.current().commit is None
    helper = Repository(url="ext::sh -c 'touch owned'", folder=tmp_path / "o", timeout_s=5)
    assert helper.current().commit is None
    assert not list(tmp_path.rglob("owned")), "a URL is never a command"


def test_a_repository_that_hangs_is_given_up(tmp_path: Path) -> None:
    """Asking takes no longer than it may."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/skills.git"
        given = Repository(url=url, folder=tmp_path / "v", timeout_s=0.5).current()
    assert "did not answer within 0.5 s" in given.problem


def test_the_head_of_a_skill() -> None:
    """Name and description are its own; other keys are for other readers."""
    skill, findings = read_skill(SOUND.replace("\n---", "\nlicense: MIT\n---", 1).encode(), folder="bolting")
    assert [] == findings
    assert skill is not None and ("bolting", "tight") == (skill.name, skill.description)
    assert read_skill(SOUND.encode(), folder="welding")[0] is None


def _noticed(folder: Path, acts: list) -> list[tuple[str, Observed]]:
    told: list[tuple[str, Observed]] = []
    noticing = Noticing()
    files = {str(each): each.name for each in sorted(folder.iterdir())}
    notices = noticing.watch(files, lambda path, seen: told.append((path, seen)))
    for act in acts:
        act()
    noticing.end(notices)
    for act in acts:
        act()
    return told


def test_reads_are_noticed_and_looks_are_not(tmp_path: Path) -> None:
    """A file that is read is told once, one that is mapped as opened, and one that is looked at not at all."""
    for name in ("listed", "mapped", "read", "linked"):
        (tmp_path / name).write_text("x")
    os.link(tmp_path / "linked", tmp_path.parent / "other-name")

    def read() -> None:
        (tmp_path / "read").read_text()

    def mapped() -> None:
        with (tmp_path / "mapped").open() as file:
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ).close()

    def look() -> None:
        assert {"listed"} < set(os.listdir(tmp_path))
        assert os.access(tmp_path / "listed", os.R_OK)

    def linked() -> None:
        (tmp_path.parent / "other-name").read_text()

    told = _noticed(tmp_path, [look, read, read, mapped, linked])
    expected = [
        ("linked", Observed.READ), ("mapped", Observed.OPENED), ("read", Observed.READ),
    ]  # fmt: skip
    assert expected == sorted(told)


def test_a_flood_of_reads_hides_none(tmp_path: Path) -> None:
    """A file that is read after a hundred thousand reads of others is noticed."""
    for name in ("a", "b", "last"):
        (tmp_path / name).write_text("x")

    def flood() -> None:
        fds = [os.open(tmp_path / name, os.O_RDONLY) for name in ("a", "b")]
        for _ in range(50_000):
            for fd in fds:
                os.pread(fd, 1, 0)
        for fd in fds:
            os.close(fd)

    told = _noticed(tmp_path, [flood, lambda: (tmp_path / "last").read_text()])
    assert {("a", Observed.READ), ("b", Observed.READ), ("last", Observed.READ)} == set(told)


def test_copies_are_files_of_their_own(tmp_path: Path) -> None:
    """Two copies of a version are watched apart."""
    source = tmp_path / "source"
    (source / "bolting").mkdir(parents=True)
    (source / "bolting" / "SKILL.md").write_text(SOUND)
    names = [copied(source, tmp_path / name) for name in ("one", "two")]
    assert [["bolting/SKILL.md"]] * 2 == names
    inodes = {(tmp_path / name / "bolting/SKILL.md").stat().st_ino for name in ("source", "one", "two")}
    assert 3 == len(inodes)
