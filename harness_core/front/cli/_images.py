"""``harness images``: the images of the container lane."""

from __future__ import annotations

from collections.abc import Sequence

import click

from harness_core.base.screen import columns, show


@click.group()
def images() -> None:
    """Build, list and remove the images of the container lane."""


@images.command("build")
@click.argument("names", nargs=-1)
@click.option(
    "--bases",
    type=click.Choice(["auto", "public", "debootstrap"]),
    default="auto",
    help="Where the lowest image comes from (auto: pulled where it can be, else made here).",
)
def build(names: Sequence[str], bases: str) -> None:
    """Build what is missing of NAMES, or of all; an image whose inputs are unchanged stays."""
    from harness_core.infrastructure.containers import build_images
    from harness_core.infrastructure.engine import find_engine

    for reference in build_images(find_engine(), names=names, bases=bases, say=click.echo):
        click.echo(f"ready: {reference}")


@images.command("list")
def list_() -> None:
    """List them: current, missing, or outdated (their inputs have changed since)."""
    from harness_core.infrastructure.containers import image_rows
    from harness_core.infrastructure.engine import find_engine

    rows = [
        (row.state, row.reference, f"{row.size_bytes / 1e6:.0f} MB" if row.size_bytes else "")
        for row in image_rows(find_engine())
    ]
    show(columns(rows, right=[2]))


@images.command("remove")
@click.option("--outdated", is_flag=True, help="Only those whose inputs have changed since.")
def remove(outdated: bool) -> None:  # noqa: FBT001 - click passes by name
    """Remove them, and no other image."""
    from harness_core.infrastructure.containers import remove_images
    from harness_core.infrastructure.engine import find_engine

    for reference in remove_images(find_engine(), outdated=outdated):
        click.echo(f"removed {reference}")
