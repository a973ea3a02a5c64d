"""The command line of a confinement, and why there is none. What it holds back: suites/daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.daemon.confinement import Confinement, cannot_confine

pytestmark = pytest.mark.aside("what the suite confines commands by")


def test_its_home_alone_is_writable(tmp_path):
    """Everything is bound read-only, and of all places the home is bound again."""
    argv = Confinement(drop=False).command(["daemon", "--port", "1"], home=tmp_path)

    assert ("bwrap", "--die-with-parent", "--ro-bind", "/", "/") == argv[:5]
    assert [str(tmp_path)] == [argv[i + 2] for i, word in enumerate(argv) if word == "--bind"]
    assert ("--", "daemon", "--port", "1") == argv[-4:]


@pytest.mark.parametrize("drop", [True, False], ids=["root", "user"])
def test_root_is_dropped(tmp_path, drop):
    """Root's privileges are dropped; an ordinary user has none."""
    argv = Confinement(drop=drop).command(["true"], home=tmp_path)

    assert drop == ("setpriv" in argv)
    assert drop == ("--no-new-privs" in argv)


def test_a_user_keeps_its_own_files(tmp_path):
    """Nothing is given away that is the user's anyway."""
    (tmp_path / "file").touch()
    before = (tmp_path / "file").stat()
    Confinement(drop=False).give(tmp_path)

    assert before.st_uid == (tmp_path / "file").stat().st_uid


def test_what_is_missing_is_named(monkeypatch):  # lint: allow patching: a bare machine
    """Without bubblewrap the reason says what to install."""
    monkeypatch.setenv("PATH", str(Path("/nonexistent")))

    assert "apt-get install bubblewrap" in cannot_confine.__wrapped__()


def test_a_refusal_is_quoted(monkeypatch, tmp_path):  # lint: allow patching: a machine that refuses
    """A bwrap that may not do its work is quoted."""
    for name in ("bwrap", "setpriv", "prlimit"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'bwrap: no permission for namespaces' >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    assert "bwrap: no permission for namespaces" in cannot_confine.__wrapped__()
