"""The gate made wrong on purpose (``workbench_foundation/faults.py``); without a fault nothing here does anything."""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from workbench_contract.benchmark import ValidationFinding
from workbench_contract.connections import Connections
from workbench_contract.estimate import Estimate, PrintedPart
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import MovedObject, Objectives, RuntimeJitter
from workbench_contract.review import ProofKind
from workbench_foundation import faults
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning import package, plan_md, review_md, todo_md
from workbench_planning.handover import Verdict
from workbench_planning.text import finding
from workbench_planning.todo_md import Issued
from workbench_planning.variants import Placement

_Files = Mapping[str, bytes]

#: Fault -> the findings that it does not see.
_OVERLOOKED: dict[str, Callable[[Finding], bool]] = {
    "estimate-unneeded": lambda each: each.stage is Stage.PRESENT
    and each.file == estimate_file.FILE,
    "plan-always-accepted": lambda each: each.file != review_md.FILE,
    "plan-order-ignored": lambda each: "the headings in order" in each.expected,
    "todo-deletion-ignored": lambda each: "it was deleted" in each.found,
    "todo-open-accepted": lambda each: "an open box" in each.found,
    "moving-parts-unjudged": lambda each: each.where.startswith("moving_parts"),
    "placeholder-accepted": lambda each: "placeholder" in each.expected,
    "catalogue-price-unjudged": lambda each: each.stage is Stage.AGREE
    and "the catalogue's price" in each.expected,
    "catalogue-version-unjudged": lambda each: "catalogue_version" in each.where,
    "plan-prices-unjudged": lambda each: each.file == plan_md.FILE and "unit_cost_usd" in each.found,
    "comments-unneeded": lambda each: "at least one comment" in each.expected,
    "refusal-unproven": lambda each: each.where.startswith("proof"),
    "nested-key-twice": lambda each: "each key once" in each.expected and "." in each.where,
    "nested-keys-unjudged": lambda each: each.expected == "no such key" and "[" in each.where,
    "weight-target-unjudged": lambda each: "planner_target_max_weight_g" in each.where,
}

_before: dict[str, _Files] = {}
_first: dict[str, bytes] = {}
_rounds: Counter[str] = Counter()
_read: set[tuple[str, str]] = set()
_environments: dict[str, dict[str, str]] = {}
_judged: set[str] = set()
_objectives: dict[str, Any] = {}
_seeds: Counter[tuple[str, int]] = Counter()
_controls: dict[str, Any] = {}
_proof: dict[ProofKind, frozenset[str]] = {}
_validated: dict[str, Objectives] = {}
_verdicts: dict[str, list[ValidationFinding]] = {}
_untidy: set[str] = set()
_checks: dict[str, dict[str, Any]] = {}


def changed(session_id: str, files: _Files) -> _Files:
    """What is judged in place of what was left."""
    if not faults.active():
        return files
    _rounds[session_id] += 1
    found = dict(files)
    if faults.on("gate-one-round-late"):
        found = dict(_before.get(session_id, files))
        _before[session_id] = files
    if faults.on("objectives-remembered") and objectives_file.FILE in found:
        known = _first.setdefault(session_id, found[objectives_file.FILE])
        found[objectives_file.FILE] = known
    if faults.on("plan-fences-read") and plan_md.FILE in found:
        found[plan_md.FILE] = re.sub(rb"(?m)^```.*$", b"", found[plan_md.FILE])
    if faults.on("decision-case-folded") and review_md.FILE in found:
        found[review_md.FILE] = re.sub(
            rb"(?m)^decision: .*$", lambda line: line[0].lower(), found[review_md.FILE]
        )
    if faults.on("jitter-ignored"):
        _change(found, objectives_file.FILE, _without_jitter)
    if faults.on("numbers-in-quotes-taken"):
        text = found.get(estimate_file.FILE, b"")
        found[estimate_file.FILE] = re.sub(rb""": ["']([0-9.]+)["']""", rb": \1", text)
    if faults.on("estimate-judged-once") and _rounds[session_id] > 1:
        found[estimate_file.FILE] = _first.get(session_id, found.get(estimate_file.FILE, b""))
    elif faults.on("estimate-judged-once"):
        _first[session_id] = found.get(estimate_file.FILE, b"")
    return found


def overlooked(session_id: str, verdict: Verdict, files: _Files) -> Verdict:
    """The verdict, without what the fault does not see."""
    if not faults.active():
        return verdict
    left = list(verdict.findings)
    for name, blind in _OVERLOOKED.items():
        if faults.on(name):
            left = [each for each in left if not blind(each)]
    if faults.on("one-finding-at-a-time"):
        left = left[:1]
    if faults.on("plan-sections-after-headings"):
        heading = any(each.file == plan_md.FILE and "heading" in each.found for each in left)
        left = [
            each
            for each in left
            if not heading or each.file != plan_md.FILE or "heading" in each.found
        ]
    if faults.on("nan-hides-the-rest"):
        left = [each for each in left if each.expected == "a finite number"] or left
    if faults.on("plan-judged-once") and _rounds[session_id] > 1:
        left = [each for each in left if each.file != plan_md.FILE]
    if faults.on("review-judged-once") and _rounds[session_id] > 1:
        left = [each for each in left if each.file != review_md.FILE]
    if faults.on("targets-judged-once") and _rounds[session_id] > 1:
        left = [each for each in left if "planner_target" not in each.where]
    if faults.on("cap-exclusive") and not left:
        left = _at_caps(files)
    if len(left) == len(verdict.findings):
        return verdict
    if left:
        return Verdict(findings=tuple(left), refuses_plan=verdict.refuses_plan)
    record = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    return Verdict(findings=(), record=record, refuses_plan=verdict.refuses_plan)


def reported(findings: list[Finding]) -> list[Finding]:
    """The findings about an estimate that its planner is told by the script that prices it."""
    if faults.on("differences-unreported"):
        return [each for each in findings if "computed" not in each.expected]
    return findings


def overlooked_in_design(findings: list[Finding], names: Sequence[str]) -> list[Finding]:
    """The findings about a design that was built of parts, without what the fault does not see."""
    blind = {
        "zone-of-first-part": lambda each: "build zone" in each.expected
        and not each.where.startswith(f"{names[0]}."),
        "rigid-joint-needs-no-pair": lambda each: each.found.startswith("no pair of"),
        "fastener-first-pair-alone": lambda each: each.where.startswith("pairs[")
        and not each.where.startswith("pairs[0]"),
        "zone-of-lower-sides": lambda each: "build zone" in each.expected and ".max_mm." in each.where,
        "zone-unjudged": lambda each: "build zone" in each.expected,
        "fits-along-x-alone": lambda each: re.search("side along [yz]", each.expected) is not None,
        "design-cost-unjudged": lambda each: each.where == "totals.unit_cost_usd",
        "design-weight-unjudged": lambda each: each.where == "totals.weight_g",
        "fastener-count-unjudged": lambda each: "at least 2" in each.expected,
        "hole-diameters-unjudged": lambda each: "diameter" in each.where + each.expected,
        "walls-unjudged": lambda each: "wall" in each.found + each.expected,
        "thin-moulds-unjudged": lambda each: "a wall of" in each.found
        and each.expected == "at least 1 mm",
        "holes-anywhere": lambda each: each.found.startswith("no hole of"),
        "undercuts-unjudged": lambda each: "an undercut" in each.found,
        "draft-unjudged": lambda each: "draft" in each.found + each.expected,
    }
    for name, unseen in blind.items():
        if faults.on(name):
            findings = [each for each in findings if not unseen(each)]
    return findings


def asked(session_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What physics is asked for in place of what a session asked for."""
    if faults.on("objectives-of-first-run"):
        arguments |= {"objectives": _objectives.setdefault(session_id, arguments["objectives"])}
    if faults.on("seed-used-once"):
        key = (session_id, arguments["seed"])
        _seeds[key] += 1
        arguments |= {"seed": arguments["seed"] + _seeds[key] - 1}
    if faults.on("controls-of-first-session"):
        _controls.update({k: v for k, v in arguments["controls"].items() if k not in _controls})
        arguments |= {"controls": {name: _controls[name] for name in arguments["controls"]}}
    return arguments


def read(given: Mapping[str, str], own: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """What a reviewer is taken to have read."""
    if faults.on("evidence-unread"):
        return frozenset(given.items())
    if faults.on("evidence-read-by-others"):
        _read.update(own)
        return frozenset(_read)
    return own


def environment_of(session_id: str, given: dict[str, str]) -> dict[str, str]:
    """What a session's environment is held against."""
    if faults.on("environment-unjudged"):
        return {}
    if faults.on("environment-of-last-session") and given:
        _environments.setdefault("last", given)
        return _environments["last"]
    return given


def undisturbed(session_id: str, findings: list[Finding]) -> list[Finding]:
    """The findings about an environment, without what the fault does not see."""
    if faults.on("environment-links-followed"):
        findings = [each for each in findings if "a link" not in each.found]
    if faults.on("environment-shadow-ignored"):
        findings = [each for each in findings if "sha256" in each.expected]
    if faults.on("environment-judged-once"):
        if session_id in _judged:
            return []
        _judged.add(session_id)
    return findings


def proof(own: dict[ProofKind, frozenset[str]]) -> dict[ProofKind, frozenset[str]]:
    """The simulations and pricings that a refusal may rest on."""
    if faults.on("refusal-proof-of-others"):
        for kind, ids in own.items():
            _proof[kind] = _proof.get(kind, frozenset()) | ids
        return dict(_proof)
    return own


def validated(
    session_id: str, objectives: Objectives, *, samples: int, seed: int
) -> dict[str, Any]:
    """What an environment is held against: objectives, and starts within their range."""
    if faults.on("validation-of-first-objectives"):
        objectives = _validated.setdefault("first", objectives)
    value = objectives.model_dump(mode="json")
    moved = value["moved_object"]
    if faults.on("range-unvalidated"):
        moved.pop("static_randomization")
        moved.pop("runtime_jitter")
    if faults.on("validation-jitter-ignored"):
        moved.pop("runtime_jitter")
    if faults.on("validation-scale-ignored"):
        scale = moved["static_randomization"]["scale"]
        scale["max"] = scale["min"]
    if faults.on("validation-samples-left-out"):
        samples = 0
    if faults.on("validation-seed-unused"):
        seed = secrets.randbelow(2**31)
    return {"objectives": json.dumps(value), "samples": samples, "seed": seed}


def sampled(moved: MovedObject, found: list[Placement]) -> list[Placement]:
    """The samples in place of those that were drawn."""
    if not faults.on("samples-on-a-diagonal"):
        return found
    reach = [
        static + jitter
        for static, jitter in zip(
            moved.static_randomization.start_mm, moved.runtime_jitter.start_mm, strict=True
        )
    ]
    shares = [random.Random(number).uniform(-1, 1) for number, _ in enumerate(found)]
    return [
        replace(each, start_mm=tuple(at + share * most for at, most in zip(moved.start_mm, reach, strict=True)))
        for share, each in zip(shares, found, strict=True)
    ]


def overlooked_in_environment(
    session_id: str, findings: list[ValidationFinding]
) -> list[ValidationFinding]:
    """The findings about an environment and its objectives, without what the fault does not see."""
    if faults.on("solids-may-intersect"):
        findings = [each for each in findings if "of it within" not in each.found]
    if faults.on("object-inside-unjudged"):
        findings = [each for each in findings if "starts inside" not in each.found]
    if faults.on("validation-judged-once"):
        return _verdicts.setdefault(session_id, findings)
    return findings


def solid_prints(estimate: Estimate) -> Estimate:
    """What is judged in place of an estimate: prints without hollows."""
    if not faults.on("infill-ignored"):
        return estimate
    parts = [
        part.model_copy(update={"infill": 1.0}) if isinstance(part, PrintedPart) else part
        for part in estimate.manufactured_parts
    ]
    return estimate.model_copy(update={"manufactured_parts": parts})


def lint_failure_unrecorded(session_id: str) -> bool:
    """Whether code of a session that does not lint leaves no event."""
    again = session_id in _untidy
    _untidy.add(session_id)
    return faults.on("lint-failure-without-event") or (faults.on("lint-failure-once") and again)


def connected(connections: Connections) -> Connections:
    """What is judged in place of what holds parts together."""
    if not faults.on("fastener-first-hole-passed"):
        return connections
    data = connections.model_dump(mode="json")
    for fastener in (each for pair in data["pairs"] for each in pair["fasteners"]):
        if sum(hole["holds"] for hole in fastener["holes"]) == 1:
            for number, hole in enumerate(fastener["holes"]):
                hole["holds"] = number == 1
    return Connections.model_validate(data)


def checked(model: str, found: dict[str, Any]) -> dict[str, Any]:
    """What a manufacturability check tells in place of what it has found."""
    if faults.on("check-invented"):
        return found | {"volume_mm3": 1000.0, "size_mm": [10.0, 10.0, 10.0]}
    if faults.on("check-of-first-look"):
        measured = {key: found[key] for key in ("volume_mm3", "size_mm", "faces")}
        return found | _checks.setdefault(model, measured)
    return found


def issued(session_id: str, known: tuple[Issued, ...], files: _Files) -> tuple[Issued, ...]:
    """The issued entries that are held against the list."""
    if faults.on("todo-relearned") and _rounds[session_id] > 1:
        text = files.get(todo_md.FILE, b"").decode("utf-8", "replace")
        return tuple(each for each in known if f"todo:{each.id} " in text)
    return known


def _change(files: dict[str, bytes], name: str, change: Callable[[Any], None]) -> None:
    try:
        value = yaml.safe_load(files.get(name, b""))
        change(value)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return
    files[name] = json.dumps(value).encode()


def _without_jitter(value: Any) -> None:
    value["moved_object"].pop("runtime_jitter", None)


def _at_caps(files: _Files) -> list[Finding]:
    estimate, _ = estimate_file.read_estimate(files.get(estimate_file.FILE, b""))
    if estimate is None:
        return []
    typed = estimate.constraints
    if typed.planner_target_max_unit_cost_usd < typed.benchmark_max_unit_cost_usd:
        return []
    where = "constraints.planner_target_max_unit_cost_usd"
    return [finding(estimate_file.FILE, where, "the cap itself", "less than the cap")]


_packages: list[Any] = []
_PACKAGE_FAULTS = (
    "package-view-missing",
    "package-of-last-benchmark",
    "package-without-jitter",
    "package-left-by-agent",
)


def packaged(
    files: _Files, objectives: Objectives, solids: Any, pictures: Any, views: _Files
) -> _Files | None:
    """The package in place of the one that is right; none without a fault."""
    if not package_unjudged():
        return None
    data = files[objectives_file.FILE]
    if faults.on("package-view-missing"):
        last = pictures["views"][-1]["path"]
        pictures = {**pictures, "views": pictures["views"][:-1]}
        views = {path: each for path, each in views.items() if path != last}
    if faults.on("package-of-last-benchmark"):
        _packages.append(objectives.moving_parts)
        objectives = objectives.model_copy(update={"moving_parts": _packages[0]})
    if faults.on("package-without-jitter"):
        still = objectives.moved_object.model_copy(update={"runtime_jitter": RuntimeJitter()})
        objectives = objectives.model_copy(update={"moved_object": still})
    made = package.put_together(data, objectives, solids, pictures, views)
    if faults.on("package-left-by-agent"):
        made |= {path: each for path, each in files.items() if package.belongs(path)}
    return made


def package_unjudged() -> bool:
    """Whether nobody looks at what a package lacks."""
    return any(faults.on(name) for name in _PACKAGE_FAULTS)
