"""review.md and plan_refusal.md: decisions, evidence that was looked at, proof of this episode."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.review import ProofKind
from workbench_planning.refusal_md import check_proof, read_refusal
from workbench_planning.review_md import check_decision, check_evidence, read_review
from workbench_planning.templates import REFUSAL, REVIEW
from workbench_planning.text import FILE_BYTES

ONE, TWO, THREE = ("1" * 64, "2" * 64, "3" * 64)
HANDED = {"model.py": ONE, "renders/front.png": TWO, "runs/1.mp4": THREE, "plan.md": TWO}
READ = set(HANDED.items())

GOOD = f"""\
---
decision: rejected
evidence:
  images_viewed:
    - {{path: renders/front.png, sha256: "{TWO}"}}
  videos_viewed: []
  files_checked:
    - path: model.py
      sha256: "{ONE}"
comments:
  - "The flap is too short: 40 mm."
---
# What I saw

Much.

---

More.
"""


def told(text, read=read_review):
    """What is found of a file."""
    value, findings = read(text if isinstance(text, bytes) else text.encode())

    assert (value is None) == bool(findings)
    assert all(each.expected for each in findings)
    return [(each.where, each.found) for each in findings]


def test_good():
    """A review is read; what follows its front matter is free."""
    review, findings = read_review(GOOD.encode())

    assert [] == findings
    assert ReviewDecision.REJECTED is review.decision
    assert ["The flap is too short: 40 mm."] == review.comments
    assert [] == check_evidence(review, HANDED, READ)


@pytest.mark.parametrize("decision", list(ReviewDecision))
def test_decisions(decision):
    """The four decisions are read; each is for a design, or for a refusal of the plan."""
    review, _ = read_review(GOOD.replace("rejected", decision.value).encode())
    on_refusal = decision in ("confirm_plan_refusal", "reject_plan_refusal")

    assert decision is review.decision
    assert [] == check_decision(review, refusal_pending=on_refusal)
    assert ["decision"] == [
        each.where for each in check_decision(review, refusal_pending=not on_refusal)
    ]


ACCEPTED = {
    "approved without comments": GOOD.replace("rejected", "approved").replace(
        '\n  - "The flap is too short: 40 mm."', " []"
    ),
    "crlf": GOOD.replace("\n", "\r\n"),
    "nothing after": GOOD.partition("# What")[0],
    "no line end at the end": GOOD.partition("# What")[0].rstrip(),
    "space after the fences": GOOD.replace("---\n", "--- \n"),
    "a line of dashes below": GOOD + "\n---\ndecision: approved\n---\n",
    "unicode": GOOD.replace("flap", "Klappe 🎈"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name):
    """What does not change the front matter's meaning is free."""
    assert [] == told(ACCEPTED[name])


REFUSED = {
    "no front matter": ("# Review\n\napproved\n", "line 1", "'# Review'"),
    "front matter below": ("\n" + GOOD, "line 1", "''"),
    "no end": ("---\ndecision: approved\n", "line 3", "without an end"),
    "text before": ("x" + GOOD, "line 1", "'x---'"),
    "empty": ("---\n---\n", "line 1", "nothing"),
    "a list": ("---\n- decision\n---\n", "line 2", "a list of 1"),
    "another case": (GOOD.replace("rejected", "Rejected"), "decision (line 2)", "'Rejected'"),
    "in capitals": (GOOD.replace("rejected", "APPROVED"), "decision (line 2)", "'APPROVED'"),
    "space": (GOOD.replace("rejected", '"approved "'), "decision (line 2)", "'approved '"),
    "another decision": (GOOD.replace("rejected", "maybe"), "decision (line 2)", "'maybe'"),
    "two decisions": (GOOD.replace("rejected", "[approved]"), "decision (line 2)", "a list of 1"),
    "a boolean": (GOOD.replace("rejected", "true"), "decision (line 2)", "a boolean, True"),
    "yes": (GOOD.replace("rejected", "yes"), "decision (line 2)", "yes"),
    "nothing": (GOOD.replace(" rejected", ""), "decision (line 2)", "nothing"),
    "no decision": (GOOD.replace("decision: rejected\n", ""), "decision (line 2)", "nothing"),
    "key twice": (GOOD.replace("comments:", "decision: approved\ncomments:"), "decision (line 10)", "second time"),
    "unknown key": (GOOD.replace("comments:", "score: 5\ncomments:"), "score (line 10)", "the key 'score'"),
    "unknown evidence": (GOOD.replace("  videos_viewed", "  notes: []\n  videos_viewed"),
                         "evidence.notes (line 6)", "the key 'notes'"),
    "a tag": (GOOD.replace("rejected", "!!str rejected"), "decision (line 2)", "a tag"),
    "an anchor": (GOOD.replace("rejected", "&a rejected"), "decision (line 2)", "an anchor"),
    "a second document": (GOOD.replace("comments:", "--- # more\ncomments:"), "line 10", "a second document"),
    "a second front matter": (GOOD.replace("---\n# What", "---\n\n---\ndecision: approved\n---\n"),
                              "line 14", "a second document"),
    "no evidence": ("---\ndecision: approved\ncomments: []\n---\n", "evidence (line 2)", "nothing"),
    "no videos": (GOOD.replace("  videos_viewed: []\n", ""), "evidence.videos_viewed (line 3)", "nothing"),
    "no file": (GOOD.partition("  files")[0] + "  files_checked: []\n" + GOOD[GOOD.index("comments:") :],
                "evidence.files_checked (line 7)", "a list of 0"),
    "path alone": (GOOD.replace(f'{{path: renders/front.png, sha256: "{TWO}"}}', "renders/front.png"),
                   "evidence.images_viewed[0] (line 5)", "text, 'renders/front.png'"),
    "sha in capitals": (GOOD.replace(ONE, "A" * 64), "evidence.files_checked[0].sha256 (line 9)", "AAA"),
    "sha too short": (GOOD.replace(ONE, "1" * 63), "evidence.files_checked[0].sha256 (line 9)", "111"),
    "sha without quotes": (GOOD.replace(f'"{ONE}"', ONE), "evidence.files_checked[0].sha256 (line 9)", "a number"),
    "no comment": (GOOD.replace('\n  - "The flap is too short: 40 mm."', " []"), "comments (line 10)", "no comment"),
    "comment of dots": (GOOD.replace("The flap is too short: 40 mm.", " .. "), "comments[0] (line 11)", "' .. '"),
    "comment in text": (GOOD.replace('\n  - "The', ' "The'), "comments (line 10)", "text, 'The flap"),
    "comment of a placeholder": (GOOD.replace("The flap is too short: 40 mm.", "TODO"), "comments[0] (line 11)", "TODO"),
    "bom": ("\ufeff" + GOOD, "line 1", "byte order mark"),
    "utf-16": (GOOD.encode("utf-16"), "line 1", "0xff"),
    "long": (GOOD.encode() + b"x" * FILE_BYTES, "", "bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """What leaves the decision open, or its evidence, is one finding with its line."""
    text, where, found = REFUSED[name]
    findings = told(text)

    assert [where] == [each[0] for each in findings]
    assert found in findings[0][1]


def test_template():
    """The review as it is issued is refused for each of its placeholders."""
    findings = told(REVIEW)

    assert [
        "decision",
        "evidence.files_checked[0].path",
        "evidence.files_checked[0].sha256",
        "comments[0]",
    ] == [where.split(" (")[0] for where, _ in findings]
    assert ["reason", "proof[0].kind", "proof[0].id"] == [
        where.split(" (")[0] for where, _ in told(REFUSAL, read_refusal)
    ]


def review_of(**evidence):
    """A review with other evidence: lists of (path, sha256)."""
    lists = {
        "images_viewed": [],
        "videos_viewed": [],
        "files_checked": [("model.py", ONE)],
    } | evidence
    matter = {
        "decision": "approved",
        "evidence": {
            name: [{"path": path, "sha256": sha} for path, sha in seen]
            for name, seen in lists.items()
        },
        "comments": [],
    }
    review, findings = read_review(f"---\n{json.dumps(matter)}\n---\n".encode())

    assert [] == findings
    return review


EVIDENCE = {
    "all": ({"images_viewed": [("renders/front.png", TWO)], "videos_viewed": [("runs/1.mp4", THREE)],
             "files_checked": [("model.py", ONE), ("plan.md", TWO), ("renders/front.png", TWO)]}, []),
    "a stranger": ({"files_checked": [("other.py", ONE)]}, ["evidence.files_checked[0]"]),
    "another spelling": ({"files_checked": [("./model.py", ONE)]}, ["evidence.files_checked[0]"]),
    "another version": ({"files_checked": [("model.py", TWO)]}, ["evidence.files_checked[0]"]),
    "twice": ({"files_checked": [("model.py", ONE), ("model.py", ONE)]}, ["evidence.files_checked[1]"]),
    "a file as an image": ({"images_viewed": [("plan.md", TWO)]}, ["evidence.images_viewed[0]"]),
    "a video as an image": ({"images_viewed": [("runs/1.mp4", THREE)]}, ["evidence.images_viewed[0]"]),
    "an image as a video": ({"videos_viewed": [("renders/front.png", TWO)]}, ["evidence.videos_viewed[0]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence(name):
    """Evidence is of this hand-over, of this version, of the kind that its list is for."""
    evidence, expected = EVIDENCE[name]
    findings = check_evidence(review_of(**evidence), HANDED, READ)

    assert expected == [each.where for each in findings]
    assert all("agree" == each.stage and "review.md" == each.file for each in findings)


@given(
    st.sets(st.sampled_from(sorted(HANDED))), st.sets(st.sampled_from(sorted(HANDED)), min_size=1)
)
def test_what_was_not_read(read, claimed):
    """Exactly what is claimed and was not read is told, each with its path."""
    review = review_of(files_checked=[(path, HANDED[path]) for path in sorted(claimed)])
    findings = check_evidence(review, HANDED, {(path, HANDED[path]) for path in read})

    assert len(claimed - read) == len(findings)
    for path in claimed - read:
        assert any(repr(path) in each.found and "no event" in each.found for each in findings)


def test_read_in_another_version():
    """Who read an earlier version has not read this one."""
    findings = check_evidence(review_of(), HANDED, {("model.py", TWO)})

    assert "'model.py', which no event shows as read" == findings[0].found


REFUSAL_GOOD = """\
---
reason: The motor cannot lift the ball.
proof:
  - {kind: simulation, id: sim-7}
  - {kind: price, id: price-1}
---
"""
IDS = {ProofKind.SIMULATION: {"sim-7", "sim-8"}, ProofKind.PRICE: {"price-1"}}


def test_refusal():
    """A refusal has a reason and proof of this episode."""
    refusal, findings = read_refusal(REFUSAL_GOOD.encode())

    assert [] == findings
    assert [] == check_proof(refusal, IDS)


REFUSALS = {
    "no reason": (REFUSAL_GOOD.replace("The motor cannot lift the ball.", '""'), "reason"),
    "a reason of dots": (
        REFUSAL_GOOD.replace("The motor cannot lift the ball.", '". ."'),
        "reason",
    ),
    "reason left out": (
        REFUSAL_GOOD.replace("reason: The motor cannot lift the ball.\n", ""),
        "reason",
    ),
    "no proof": (REFUSAL_GOOD.partition("proof")[0] + "proof: []\n---\n", "proof"),
    "proof left out": (REFUSAL_GOOD.partition("proof")[0] + "---\n", "proof"),
    "proof in words": (
        REFUSAL_GOOD.replace("{kind: simulation, id: sim-7}", "I saw it"),
        "proof[0]",
    ),
    "another kind": (REFUSAL_GOOD.replace("simulation", "hunch"), "proof[0].kind"),
    "no id": (REFUSAL_GOOD.replace("sim-7", '""'), "proof[0].id"),
    "unknown key": (REFUSAL_GOOD.replace("proof:", "mood: bad\nproof:"), "mood"),
    "no front matter": ("I refuse.\n", "line 1"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_refused(name):
    """A refusal without reason or proof is none."""
    text, where = REFUSALS[name]

    assert [where] == [each[0].split(" (")[0] for each in told(text, read_refusal)]


PROOFS = {
    "of another episode": ("sim-7", "sim-9", ["proof[0].id"]),
    "a price for a simulation": ("sim-7", "price-1", ["proof[0].id"]),
    "in capitals": ("price-1", "PRICE-1", ["proof[1].id"]),
}


@pytest.mark.parametrize("name", PROOFS)
def test_proof(name):
    """Proof is an id of its kind, of this episode."""
    old, new, expected = PROOFS[name]
    refusal, _ = read_refusal(REFUSAL_GOOD.replace(old, new).encode())

    assert expected == [each.where for each in check_proof(refusal, IDS)]
    assert 2 == len(check_proof(refusal, {}))


_KEYS = st.sampled_from(["decision", "evidence", "comments", "reason", "images_viewed", "x"])
_LINES = st.one_of(
    st.just("---"),
    st.tuples(
        _KEYS, st.sampled_from(["approved", "[]", "", "!!x y", "&a b", "*a", "yes", "{}", "'"])
    ).map(": ".join),
    st.text(max_size=10),
)


@given(st.lists(_LINES, max_size=12))
def test_any_lines(lines):
    """No lines raise; a decision is read only from front matter that says it once."""
    text = "\n".join(["---", *lines])
    if not told(text):
        assert 1 == sum(
            line.startswith("decision:") for line in text.partition("\n---")[0].split("\n")
        )
    told(text, read_refusal)
