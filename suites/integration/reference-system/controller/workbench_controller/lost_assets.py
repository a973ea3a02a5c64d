"""Assets whose objects are gone, or are not what their rows say: told as that, and never as empty files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from workbench_contract.episodes import Asset, AssetStatus
from workbench_controller.storage import Store, StoreTroubled
from workbench_foundation import faults, log


class Lost(Exception):
    """The store does not have what the row says."""


async def told(store: Store, assets: Sequence[Asset]) -> list[Asset]:
    """Assets as they are now; where the store does not answer, as they were kept."""
    kept = [each for each in assets if each.status is AssetStatus.UPLOADED]
    if not kept or faults.on("asset-lost-untold"):
        return list(assets)
    try:
        keys = await store.keys(os.path.commonprefix([each.key for each in kept]))
    except StoreTroubled as error:
        log.warning("assets_unseen", reason=str(error))
        return list(assets)
    return [
        each.model_copy(update={"status": AssetStatus.MISSING})
        if each.status is AssetStatus.UPLOADED and each.key not in keys
        else each
        for each in assets
    ]


async def content(store: Store, asset: Asset) -> bytes:
    """The bytes of an asset that was uploaded.

    Raises:
        Lost: they are gone, or others are in their place.
        StoreTroubled: the store does not answer.
    """
    try:
        data = await store.get(asset.key)
    except KeyError as error:
        if faults.on("asset-lost-is-empty"):
            return b""
        detail = f"cannot get {asset.path}: it is missing, the object store has lost {asset.key}"
        raise Lost(f"{detail}. Tell operations") from error
    if hashlib.sha256(data).hexdigest() != asset.sha256:
        detail = f"cannot get {asset.path}: the object store has other bytes as {asset.key}"
        raise Lost(f"{detail}. Tell operations")
    return data
