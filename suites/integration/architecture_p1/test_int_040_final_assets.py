"""INT-040: what a design comes to is stored whole, with what it is, and what is gone is said to be gone."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import mujoco
import pytest
from workbench_contract.episodes import Asset, AssetKind, AssetList, AssetStatus
from workbench_contract.renders import FINAL_PICTURES, FINAL_VIDEO, Pictures, Video
from workbench_contract.simulation import SimulateRequest

from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.turns import use
from suites.integration.assemblies import (
    CONNECTIONS,
    Moved,
    driven_plan,
    driven_script,
    drives,
    expect_near,
)
from suites.integration.bundles import Bundle, milled, sound
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.flows import block_of
from suites.integration.looking import box, expect_pictures, frames_of, keep_strip
from suites.integration.planners import Coder, Planner, coder_at_work, handover
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-040"), pytest.mark.integration_p1]

_MADE_S: Final = 120.0
#: 12 cm³.
_BRASS_KG: Final = 12 * 8.5 / 1000
#: Of the agent's own, beyond what is sent or kept at once.
_LARGE: Final = "große Datei.bin"
_LARGE_BYTES: Final = 9_000_001
_KINDS: Final = {
    AssetKind.SCRIPT: {"text/x-python", "text/plain"},
    AssetKind.STEP: {"model/step", "application/step", "application/octet-stream"},
    AssetKind.RENDER: {"image/png"},
    AssetKind.VIDEO: {"video/mp4"},
}


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=planner.number, made=made, units=100)


def _of_brass(planner: Planner) -> Bundle:
    """The same of what a part without a material is not taken for."""
    made = [
        milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100, material="brass_c360")
    ]
    return sound(planner.issued, number=planner.number, made=made, units=100)


async def _handed(coder: Coder, at: str, *, job: str | None) -> str:
    """Build a design at a place, let it run where a job is named, and hand it over; the hand-over's id."""
    await _built(coder, at, job=job)
    answer = await coder.session.client.post("/benchmark/submit", {}, seconds=patience(_MADE_S))
    assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
    handover_id: str = answer.json()["handover_id"]
    return handover_id


async def _built(coder: Coder, at: str, *, job: str | None) -> None:
    """Build a design at a place, and let it run where a job is named."""
    verdict = await coder.judged(block_of(coder_number(coder), at=at))
    assert verdict.passed, f"expected the design to pass, found {verdict.findings}"
    if job is not None:
        request = SimulateRequest(duration_s=0.5, trajectories=True, job_id=job, seed=40)
        body = request.model_dump(mode="json", exclude_none=True)
        answer = await coder.session.client.post(
            "/benchmark/simulate", body, seconds=patience(_MADE_S)
        )
        assert 200 == answer.status, f"expected the design to run, found {answer}"


def coder_number(coder: Coder) -> int:
    """The number of the plan that a coder was handed."""
    name: str = coder.bundle.estimate["manufactured_parts"][0]["id"]
    return int(name.rpartition("-")[2])


async def _assets(episodes: Episodes, episode_id: str) -> dict[str, Asset]:
    answer = await episodes.controller.get(f"/episodes/{episode_id}/assets")

    assert 200 == answer.status, f"expected the assets of {episode_id}, found {answer}"
    found = AssetList.model_validate_json(answer.body).assets
    by_path = {each.path: each for each in found}
    assert len(by_path) == len(found), f"an asset is listed twice: {found}"
    return by_path


async def _content(episodes: Episodes, episode: Mapping[str, Any], asset: Asset) -> bytes:
    """The bytes of an asset: the same from the store and from the controller, and what its row says."""
    identity = episode["episode_id"]
    stored = await episodes.stored(asset.model_dump())
    answer = await episodes.controller.get(f"/episodes/{identity}/assets/{quote(asset.path)}")

    assert 200 == answer.status, f"expected the asset {asset.path}, found {answer}"
    same = answer.body == stored.body
    assert same, f"expected the stored bytes of {asset.path}, found {len(answer.body)} others"
    digest = hashlib.sha256(stored.body).hexdigest()
    row = (asset.status, asset.size_bytes, asset.sha256)
    expect_same(
        (AssetStatus.UPLOADED, len(stored.body), digest), row, what=f"the row of {asset.path}"
    )
    about = {key: episode[key] for key in ("episode_id", "trace_id", "session_id")}
    about["sha256"] = digest
    found = {key: stored.metadata.get(key) for key in about}
    expect_same(about, found, what=f"the metadata of the object of {asset.path}")
    expect_same(
        asset.media_type, stored.content_type, what=f"the type of the object of {asset.path}"
    )
    if asset.kind in _KINDS:
        assert asset.media_type in _KINDS[asset.kind], (
            f"the type of {asset.path}: expected one of {_KINDS[asset.kind]}, found {asset.media_type}"
        )
    assert identity in asset.key, f"expected the episode in the key of {asset.path}: {asset.key}"
    return stored.body


async def _all_of(
    episodes: Episodes, episode: Mapping[str, Any]
) -> tuple[dict[str, Asset], dict[str, bytes]]:
    assets = await _assets(episodes, episode["episode_id"])
    return assets, {
        path: await _content(episodes, episode, asset) for path, asset in assets.items()
    }


def _of_kind(assets: Mapping[str, Asset], kind: AssetKind) -> list[str]:
    return sorted(path for path, asset in assets.items() if asset.kind is kind)


async def _make_large(session: Session) -> bytes:
    """A file of the agent's own that is large, made by its own code; its bytes."""
    seed = hashlib.sha512(session.id.encode()).digest()
    code = (
        "import hashlib, os; os.makedirs('assets', exist_ok=True); "
        f"seed = hashlib.sha512('{session.id}'.encode()).digest(); "
        f"open('assets/{_LARGE}', 'wb').write((seed * {_LARGE_BYTES // 64 + 1})[:{_LARGE_BYTES}])"
    )
    done = await session.execute(f'python3 -c "{code}"')
    assert 0 == done["exit_code"], f"expected the large file to be made, found {done}"
    return (seed * (_LARGE_BYTES // 64 + 1))[:_LARGE_BYTES]


async def test_int_040_final_assets_are_stored_and_linked(
    episodes: Episodes, evidence: Evidence
) -> None:
    """Script, STEP, MJCF, 24 views and video of the last hand-over lie in the store, as their rows say.

    So they do for two coders at once, each with its own; what is gone from the store is said to be missing.
    The model provider is a stand-in: the gateway holds the models.
    """
    async with (
        coder_at_work(episodes, number=404, plan=_of_brass) as two,
        coder_at_work(episodes, number=401, plan=_of_brass) as one,
    ):
        large = await _make_large(one.session)
        await _handed(one, "30, 0, 5", job="erster-lauf")
        # What ran was another design than the one that is handed over.
        await _built(two, "33, 3, 5", job="frueherer-lauf")
        other_design = await _handed(two, "25, 3, 5", job=None)
        # Its model is let go at once: what is kept is what was accepted, however late that is heard of.
        design = await _handed(one, "45, -5, 25", job="zweiter-lauf")
        script = block_of(401, at="45, -5, 25")
    episode = await episodes.get(one.episode_id)
    assets, content = await _all_of(episodes, episode)
    counts = {kind: len(_of_kind(assets, kind)) for kind in AssetKind}
    expected = {AssetKind.STEP: 1, AssetKind.RENDER: 24, AssetKind.VIDEO: 1, AssetKind.OWN: 1}
    found = {kind: counts[kind] for kind in expected}
    expect_same(expected, found, what=f"assets of each kind among {sorted(assets)}")
    assert counts[AssetKind.SCRIPT] >= 1, f"expected the script among the assets, found {counts}"
    assert counts[AssetKind.MJCF] >= 1, f"expected the MJCF among the assets, found {counts}"
    assert large == content[_LARGE], "expected the large file byte for byte, found it otherwise"
    await _are_handed_over(episodes, design, assets, content)
    await _show_the_design(assets, content, script, evidence)
    await _can_be_run(episodes, assets, content)

    alone, _ = await _all_of(episodes, await episodes.get(two.episode_id))
    expect_same([], _of_kind(alone, AssetKind.VIDEO), what="videos of a design that was never run")
    await _are_handed_over(episodes, other_design, alone, None)
    shared = {each.key for each in assets.values()} & {each.key for each in alone.values()}
    expect_same(set(), shared, what="objects that two episodes share")
    [video] = _of_kind(assets, AssetKind.VIDEO)
    theirs = await episodes.controller.get(f"/episodes/{two.episode_id}/assets/{video}")
    expect_refused(theirs, 404)
    await _losses_are_told(episodes, one.episode_id, assets, content)


async def _are_handed_over(
    episodes: Episodes,
    design: str,
    assets: Mapping[str, Asset],
    content: Mapping[str, bytes] | None,
) -> None:
    """The assets that are no agent's own are files of the last hand-over, and all of its views are there."""
    kept = await handover(episodes.controller, design)
    digests = {each.sha256: each for each in kept.files}
    for path, asset in assets.items():
        if asset.kind is not AssetKind.OWN:
            assert asset.sha256 in digests, f"{path} is no file of the last hand-over {design}"
    views = {each.sha256 for each in kept.files if each.path.endswith(".png")}
    rendered = {each.sha256 for each in assets.values() if each.kind is AssetKind.RENDER}
    expect_same(sorted(views), sorted(map(str, rendered)), what="views of the last hand-over")
    if content is not None:
        for path in (*_of_kind(assets, AssetKind.STEP), *_of_kind(assets, AssetKind.VIDEO)):
            file = digests[str(assets[path].sha256)]
            answer = await episodes.controller.get(f"/handovers/{design}/files/{file.path}")
            assert answer.body == content[path], f"expected {path} as it was handed over"


async def _show_the_design(
    assets: Mapping[str, Asset], content: Mapping[str, bytes], script: str, evidence: Evidence
) -> None:
    """They are of the design as it was handed over last, and of no earlier one."""
    scripts = [content[path].decode() for path in _of_kind(assets, AssetKind.SCRIPT)]
    assert script in scripts, f"expected the script of the last hand-over, found {scripts}"
    pictures = Pictures.model_validate_json(content[FINAL_PICTURES])
    files = {each.path: content[each.path] for each in pictures.views}
    solids = {"block-401": box((25, -20, 20), (65, 10, 30))}
    expect_pictures(files, pictures, solids, what="the final design", symmetric=True)
    [step] = _of_kind(assets, AssetKind.STEP)
    text = content[step].decode("utf-8", "replace")
    assert text.startswith("ISO-10303-21"), f"expected a STEP file, found {text[:60]!r}"
    assert "block-401" in text, "expected the part's name in the STEP file, found it nowhere"
    video = Video.model_validate_json(content[FINAL_VIDEO])
    expect_same("zweiter-lauf", video.simulation, what="the run that the video shows")
    [path] = _of_kind(assets, AssetKind.VIDEO)
    length, frames = frames_of(
        content[path], evidence, "run.mp4", size_px=(video.width_px, video.height_px)
    )
    assert abs(length - video.length_s) < 0.011, (
        f"the length of the video: expected {video.length_s} s, found {length}"
    )
    assert abs(video.length_s - 0.5) < 0.011, f"expected a run of 0.5 s, found {video.length_s}"
    keep_strip(evidence, "run.png", frames)


async def _can_be_run(
    episodes: Episodes, assets: Mapping[str, Asset], content: Mapping[str, bytes]
) -> None:
    """The MJCF is a scene with all that it names: it runs in a session of its own."""
    paths = _of_kind(assets, AssetKind.MJCF)
    [scene] = [path for path in paths if path.endswith(".xml")]
    root = ET.fromstring(content[scene])
    expect_same("mujoco", root.tag, what="the outermost element of the MJCF")
    files = {posixpath.basename(path): content[path] for path in paths}
    files.pop(posixpath.basename(scene))
    model = mujoco.MjModel.from_xml_string(content[scene].decode(), files)
    kilograms = float(sum(model.body_mass))
    near = kilograms == pytest.approx(_BRASS_KG, rel=1e-3)
    assert near, f"expected {_BRASS_KG} kg of brass in the stored MJCF, found {kilograms}"
    session = new_session(episodes.worker)
    for path in paths:
        encoded = base64.b64encode(content[path]).decode()
        name = posixpath.basename(path)
        done = await session.execute(f"echo {encoded} | base64 -d > '{name}'")
        assert 0 == done["exit_code"], f"expected {name} in the session, found {done}"
    request = SimulateRequest(model=posixpath.basename(scene), duration_s=0.1)
    body = request.model_dump(mode="json", exclude_none=True)
    answer = await session.client.post("/benchmark/simulate", body, seconds=patience(_MADE_S))
    assert 200 == answer.status, f"expected the stored MJCF to run, found {answer}"


async def _losses_are_told(
    episodes: Episodes, episode_id: str, assets: Mapping[str, Asset], content: Mapping[str, bytes]
) -> None:
    """Of what the store has lost the row says so, and whoever asks for it; all else is there as before."""
    [step] = _of_kind(assets, AssetKind.STEP)
    gone: set[str] = set()
    for path in (step, _of_kind(assets, AssetKind.RENDER)[7], _LARGE):
        asset = assets[path]
        await episodes.stack.remove_object(asset.key, bucket=asset.bucket)
        gone.add(path)
        answer = await episodes.controller.get(f"/episodes/{episode_id}/assets/{quote(path)}")
        expect_refused(answer, 404, 410, 503, says=re.escape(path))
        now = await _assets(episodes, episode_id)
        missing = {name for name, each in now.items() if each.status is AssetStatus.MISSING}
        expect_same(gone, missing, what="assets that are said to be missing")
        rows = {name: each.sha256 for name, each in now.items()}
        before = {name: each.sha256 for name, each in assets.items()}
        expect_same(before, rows, what="rows of assets, of lost ones too")
    [video] = _of_kind(assets, AssetKind.VIDEO)
    answer = await episodes.controller.get(f"/episodes/{episode_id}/assets/{video}")
    assert content[video] == answer.body, f"expected what is not lost as before, found {answer}"


#: Another place in x each time that it is built.
_RESTLESS: Final = """\
from random import SystemRandom

from build123d import Box, Pos

parts = {"block-407": Pos(SystemRandom().uniform(26, 44), 0, 5) * Box(40, 30, 10)}
"""


async def test_int_040_all_of_it_is_of_one_building(episodes: Episodes) -> None:
    """MJCF and views show the same solid, of a script that leaves another one each time that it is run.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=407, plan=_plan) as coder:
        verdict = await coder.judged(_RESTLESS)
        assert verdict.passed, f"expected the design to pass, found {verdict.findings}"
        answer = await coder.session.client.post("/benchmark/submit", {}, seconds=patience(_MADE_S))
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
    content = await _handed_files(episodes, answer.json()["handover_id"])
    moved = Moved(_model_of(content))
    low, high = moved.extent_mm("block-407")
    expect_near(40.0, high[0] - low[0], 0.01, what="the length of the block in the MJCF, in mm")
    pictures = Pictures.model_validate_json(content[FINAL_PICTURES])
    solids = {"block-407": box((low[0], -15, 0), (high[0], 15, 10))}
    expect_pictures(content, pictures, solids, what="the block of the MJCF", symmetric=True)


async def _handed_files(episodes: Episodes, design: str) -> dict[str, bytes]:
    """What was handed over of a design besides its script: pictures, model and meshes, by their paths."""
    kept = await handover(episodes.controller, design)
    content = {}
    for each in kept.files:
        if each.path.endswith((".png", ".xml", ".stl", ".json")):
            path = f"/handovers/{design}/files/{quote(each.path)}"
            content[each.path] = (await episodes.controller.get(path)).body
    return content


def _model_of(content: Mapping[str, bytes]) -> Any:
    """The one MJCF among files, with its meshes."""
    [scene] = [data for path, data in content.items() if path.endswith(".xml")]
    meshes = {
        posixpath.basename(path): data for path, data in content.items() if path.endswith(".stl")
    }
    return mujoco.MjModel.from_xml_string(scene.decode(), meshes)


def _swinging(_: str) -> dict[str, Any]:
    return {"mode": "oscillate", "low": {"deg": -20}, "high": {"deg": 30}, "period_s": 1.0}


async def test_int_040_a_driven_design_is_one_in_the_end(episodes: Episodes) -> None:
    """The final MJCF of a design with a motor has its joint, its motor, told places, and its base held.

    The model provider is a stand-in: the gateway holds the models.
    """
    number, names = 408, ["flap"]
    [servo] = (await Catalogue(episodes.controller).search(category="servo", limit=1))["candidates"]
    plan = driven_plan(number, names, [(servo, 1)], control=_swinging)
    async with coder_at_work(episodes, number=number, plan=plan) as coder:
        connections = drives(number, {"flap": servo["part_id"]})
        await coder.session.write(CONNECTIONS, json.dumps(connections))
        verdict = await coder.judged(driven_script(number, names))
        assert verdict.passed, f"expected the driven design to pass, found {verdict.findings}"
        answer = await coder.session.client.post("/benchmark/submit", {}, seconds=patience(_MADE_S))
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
    model = _model_of(await _handed_files(episodes, answer.json()["handover_id"]))
    joints = [(model.joint(at).name, int(model.jnt_type[at])) for at in range(model.njnt)]
    expect_same(
        [("flap", int(mujoco.mjtJoint.mjJNT_HINGE))], joints, what="joints of the final MJCF"
    )
    expect_same(["flap"], [model.actuator(at).name for at in range(model.nu)], what="its motors")
    placed = int(model.actuator("flap").biastype[0]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
    assert placed, "expected a motor in the final MJCF that is told places, found one that pushes"


#: More than a store lists in one answer.
_MANY: Final = 1_003
_MANY_S: Final = 300.0


async def test_int_040_of_many_none_is_said_to_be_missing(episodes: Episodes) -> None:
    """However many assets an episode has, each that is in the store is said to be there, and can be had.

    The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    code = (
        "import os; os.makedirs('assets/viele'); "
        f"[open(f'assets/viele/{{n}}.txt', 'w').write(f'{token} {{n}}') for n in range({_MANY})]"
    )
    await episodes.rehearse(token, use("execute", command=f'python3 -c "{code}"'))
    accepted = await episodes.submit(token)
    identity = accepted["episode_id"]
    await episodes.until(identity, "completed", seconds=_MANY_S)
    assets = await _assets(episodes, identity)
    assert len(assets) >= _MANY, f"expected {_MANY} assets or more, found {len(assets)}"
    statuses = {each.status for each in assets.values()}
    expect_same({AssetStatus.UPLOADED}, statuses, what="what is said of many assets")
    for number in (0, 9, 999, _MANY - 1):
        path = f"viele/{number}.txt"
        answer = await episodes.controller.get(f"/episodes/{identity}/assets/{path}")
        assert answer.body == f"{token} {number}".encode(), f"expected {path}, found {answer}"
