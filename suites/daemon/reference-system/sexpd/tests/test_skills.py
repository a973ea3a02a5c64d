"""Skills: their order, and what becomes of those that cannot load."""

from sexpd.skills import Registry


def write(directory, name, *, requires=(), more=""):
    names = ", ".join(f'"{n}"' for n in requires)
    (directory / f"{name}.toml").write_text(f"[skill]\nrequires = [{names}]\n{more}")


def test_order_and_rejections(tmp_path):
    """Each skill stands after what it requires; the rest is rejected with its reason."""
    write(tmp_path, "a", requires=["z"])
    write(tmp_path, "z")
    write(tmp_path, "c1", requires=["c2"])
    write(tmp_path, "c2", requires=["c1"])
    write(tmp_path, "d", requires=["c1"])
    write(tmp_path, "m", requires=["nowhere"])
    write(tmp_path, "n", requires=["m"])
    write(tmp_path, "self", requires=["self"])
    write(tmp_path, "key", more="colour = 1\n")
    (tmp_path / "broken.toml").write_text("[skill")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    registry = Registry(tmp_path)
    registry.refresh()

    assert ["z", "a"] == [skill.name for skill in registry.loaded]
    reasons = {one.name: one.reason for one in registry.rejected}
    assert "requires itself: c1 -> c2 -> c1" == reasons["c1"]
    assert "requires itself: self -> self" == reasons["self"]
    assert "requires c1, which was rejected" == reasons["d"]
    assert "requires what is not there: nowhere" == reasons["m"]
    assert "requires m, which was rejected" == reasons["n"]
    assert "unknown key colour" in reasons["key"]
    assert "is not TOML" in reasons["broken"]
    assert "is not UTF-8" == reasons["binary"]


def test_the_directory_is_read_again(tmp_path):
    """A file that comes or changes is seen at the next look."""
    registry = Registry(tmp_path)
    registry.refresh()
    assert "no skill" in registry.problem
    write(tmp_path, "a", more='[[skill.rule]]\nwhen = ["say *", "hi"]\nreply = "{rest}"\n')
    registry.refresh()
    assert "" == registry.problem
    skill, _, rest = registry.match("Say  Hello")
    assert ("a", "Hello") == (skill.name, rest)
    assert registry.match("HI!") is not None
    assert registry.match("essay hello") is None
