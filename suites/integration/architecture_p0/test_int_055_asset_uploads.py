"""An uploaded asset is what its row says."""

from __future__ import annotations

import hashlib

import pytest

from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused

_BINARY = (
    "import hashlib; "
    "open('assets/deep/er/noise.bin', 'wb').write(b''.join("
    "hashlib.sha256(f'{{token}}{{n}}'.encode()).digest() for n in range(9000)))"
)


@pytest.mark.covers("INT-055")
@pytest.mark.integration_p0
async def test_int_055_an_asset_is_what_its_row_says(episodes: Episodes) -> None:
    """The object in the row's bucket under its key has the row's bytes, size and etag.

    It belongs to its episode alone: an asset that was never uploaded has no row, and is a 404. The
    model provider is a stand-in: the gateway does the turns.
    """
    token, other_token = new_token(), new_token()
    noise = _BINARY.replace("{{", "{").replace("}}", "}").replace("{token}", token)
    text = f"a report of {token}\n"
    episode = await episodes.run(
        token,
        use("fs_write", path="assets/report.md", content=text),
        use("fs_write", path="not-an-asset.md", content=text),
        use("execute", command=f'mkdir -p assets/deep/er; python3 -c "{noise}"'),
    )
    bare = await episodes.run(other_token, use("fs_write", path="a.txt", content="x"))
    expected = {
        "report.md": text.encode(),
        "deep/er/noise.bin": b"".join(
            hashlib.sha256(f"{token}{number}".encode()).digest() for number in range(9000)
        ),
    }
    answer = await episodes.controller.get(f"/episodes/{episode['episode_id']}/assets")

    assert 200 == answer.status, answer
    rows = {row["path"]: row for row in answer.json()["assets"]}
    assert expected.keys() == rows.keys()
    assert rows == {row["path"]: row for row in episode["assets"]}
    events = calls(await episodes.events(episode["episode_id"]), "asset_uploaded")
    recorded = {event["payload"]["path"]: event["payload"] for event in events}
    assert len(events) == len(rows), "uploads that are not recorded once each"
    for path, content in expected.items():
        row = rows[path]
        found = await episodes.stored(row)
        got = await episodes.controller.get(f"/episodes/{episode['episode_id']}/assets/{path}")

        assert "uploaded" == row["status"]
        assert content == found.body, f"{path}: other bytes in the object store"
        assert found.etag == row["etag"], f"{path}: the row has another object's etag"
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            row["size_bytes"],
            row["sha256"],
        )
        assert (200, content) == (got.status, got.body), f"{path}: other bytes from the controller"
        same = ("bucket", "key", "etag", "version_id", "size_bytes", "sha256")
        assert {key: row[key] for key in same} == {key: recorded[path][key] for key in same}
        assert episode["episode_id"] in row["key"] or episode["episode_id"] in str(found.metadata)

    nothing = await episodes.controller.get(f"/episodes/{bare['episode_id']}/assets")
    assert (200, []) == (nothing.status, nothing.json()["assets"])
    assert [] == calls(await episodes.events(bare["episode_id"]), "asset_uploaded")
    for episode_id, path in (
        (episode["episode_id"], "never.md"),
        (episode["episode_id"], "not-an-asset.md"),
        (bare["episode_id"], "report.md"),
        ("no-such-episode", "report.md"),
    ):
        expect_refused(await episodes.controller.get(f"/episodes/{episode_id}/assets/{path}"), 404)
