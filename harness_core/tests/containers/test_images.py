"""Images without a registry: their tags follow their inputs, and what is missing is named."""

from __future__ import annotations

import shutil

import pytest

from harness_core.base.errors import BadInput, Unavailable
from harness_core.infrastructure.containers import IMAGE_NAMES, _bootstrap, _recipes, image_tag


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """The Dockerfiles, where a test may change them."""
    place = tmp_path / "images"
    shutil.copytree(_recipes._IMAGES, place)
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("a certificate\n")
    monkeypatch.setattr(_recipes, "_IMAGES", place)
    monkeypatch.setattr(_recipes, "_BUNDLES", (bundle,))
    return place


def test_a_changed_input_changes_its_image_and_those_above(recipes):
    """Only what stands on the changed file gets another tag."""
    before = {name: image_tag(name) for name in IMAGE_NAMES}
    with (recipes / "postgres/entrypoint.sh").open("a") as file:
        file.write("# more\n")
    changed = {name for name in IMAGE_NAMES if image_tag(name) != before[name]}

    assert {"postgres", "postgres-baked"} == changed


def test_other_certificates_change_every_image(recipes, tmp_path):
    """The bundle is part of the lowest image, and so of all."""
    before = {name: image_tag(name) for name in IMAGE_NAMES}
    (tmp_path / "bundle.crt").write_text("another certificate\n")

    assert set(IMAGE_NAMES) == {name for name in IMAGE_NAMES if image_tag(name) != before[name]}


def test_no_certificates_are_one_clear_error(recipes, tmp_path):
    """On a machine without a bundle the error names the package that has it."""
    (tmp_path / "bundle.crt").write_text("")
    with pytest.raises(Unavailable, match="Install the package ca-certificates"):
        _recipes.build_context("base")


def test_an_unknown_image_is_refused():
    """A name that is no image names those that are."""
    with pytest.raises(BadInput) as refused:
        image_tag("mysql")

    assert "mysql" == refused.value.found


def test_missing_debootstrap_and_root_are_named(monkeypatch):
    """Both are named at once, each with the way to get it."""
    monkeypatch.setattr(_bootstrap.shutil, "which", lambda _name: None)
    monkeypatch.setattr(_bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable) as refused:
        _bootstrap.import_debian(None, say=print)

    assert "apt-get install debootstrap" in refused.value.observed
    assert "you are not root" in refused.value.observed
