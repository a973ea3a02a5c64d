"""``validate_costing_and_price`` on a session's estimate, with the prices that hold now."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

from workbench_contract.estimate import Estimate
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import Constraints, Objectives
from workbench_contract.pricing import PricedRow
from workbench_foundation import faults
from workbench_foundation.errors import ConfigError
from workbench_making import configuration
from workbench_making.configuration import Configuration
from workbench_making.costing import Costing, validate_costing_and_price
from workbench_making.totals import Caps, CataloguePart, Totals
from workbench_worker.prices import Looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What was computed of an estimate.

    Attributes:
        totals: none when something cannot be priced.
        findings: of ``stage``; none when it is within its caps and was typed right.
        corrected: the estimate with the computed numbers.
    """

    totals: Totals | None
    findings: tuple[Finding, ...]
    corrected: Estimate | None

    def rows(self) -> list[PricedRow]:
        """Each part, made or bought."""
        if self.totals is None:
            return []
        parts = [(part.id, part) for part in self.totals.parts]
        parts += [(part.part_id, part) for part in self.totals.bought]
        return [
            PricedRow(
                id=name,
                quantity=part.quantity_n,
                unit_cost_usd=part.unit_cost_usd,
                unit_weight_g=float(part.unit_weight_g),
            )
            for name, part in parts
        ]


@lru_cache(maxsize=1)
def shop() -> Configuration:
    """The configuration of this shop, as it was when the process began.

    Where its file is named and is not there, it is made of the shipped one, for whoever edits it.

    Raises:
        ConfigError: it cannot be read.
    """
    data = configuration.shipped()
    if named := os.environ.get(configuration.VARIABLE):
        file = Path(named)
        if not file.exists():
            # Whole or not there, whenever the worker is killed.
            new = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
            new.write_bytes(data)
            new.replace(file)
        data = file.read_bytes()
    found, findings = configuration.read(data)
    if found is None:
        raise ConfigError(configuration.FILE, found=str(findings[0]), expected="a sound file")
    return _with_other_limits(found)


def _with_other_limits(found: Configuration) -> Configuration:
    """Only for the planted faults `limits-as-shipped` and `missing-limits-as-shipped`."""
    every, missing = faults.on("limits-as-shipped"), faults.on("missing-limits-as-shipped")
    known, _ = configuration.read(configuration.shipped()) if every or missing else (None, [])
    if known is None:
        return found
    methods = {}
    for method in configuration.Method:
        own, shipped = getattr(found.methods, method), getattr(known.methods, method)
        if own is not None and (every or own.limits is None):
            methods[method.value] = own.model_copy(update={"limits": shipped.limits})
    return found.model_copy(update={"methods": found.methods.model_copy(update=methods)})


def _for_nothing(looked: Looked, part_id: str) -> CataloguePart:
    """Only for the planted fault `unknown-part-is-free`."""
    nothing = CataloguePart(part_id=part_id, unit_cost_usd=Decimal(0), weight_g=Decimal(0))
    return looked.part(part_id) or nothing


def computed(
    estimate: Estimate, looked: Looked, *, benchmark: Objectives | None, session_id: str = ""
) -> Computed:
    """Price an estimate, and hold it against its caps.

    Args:
        benchmark: whose caps count; the estimate's own where there are no objectives.
        session_id: for a planted fault alone.
    """
    caps = caps_of(benchmark.constraints) if benchmark else _own_caps(estimate)
    if faults.on("units-unshared"):
        assembly = estimate.assembly.model_copy(update={"units": 1})
        estimate = estimate.model_copy(update={"assembly": assembly})
    if faults.on("price-of-first-round"):
        estimate = _first.setdefault(session_id, estimate)
    if faults.on("material-any"):
        estimate = _of_known_materials(estimate)
    lookup = looked.part
    if faults.on("unknown-part-is-free"):
        lookup = partial(_for_nothing, looked)
    found = validate_costing_and_price(estimate, shop(), lookup, benchmark=caps)
    if faults.on("typed-numbers-trusted"):
        found = _trusting(found)
    if faults.on("own-weight-target-unjudged"):
        left = tuple(
            each
            for each in found.findings
            if each.where != "totals.weight_g" or "target" not in each.expected
        )
        found = replace(found, findings=left)
    if faults.on("weight-cap-unjudged"):
        left = tuple(each for each in found.findings if each.where != "totals.weight_g")
        found = replace(found, findings=left)
    return Computed(totals=found.totals, findings=found.findings, corrected=found.corrected)


def caps_of(constraints: Constraints) -> Caps:
    """Caps as pricing takes them."""
    return Caps(
        max_unit_cost_usd=constraints.max_unit_cost_usd,
        max_weight_g=Decimal(repr(constraints.max_weight_g)),
    )


def written(estimate: Estimate) -> bytes:
    """An estimate as a file."""
    value = estimate.model_dump(mode="json")
    return yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True).encode()


def at_stage(findings: Sequence[Finding], stage: Stage) -> list[Finding]:
    """Findings of the gate's stage, whoever found them."""
    return [each.model_copy(update={"stage": stage}) for each in findings]


def _own_caps(estimate: Estimate) -> Caps:
    typed = estimate.constraints
    return Caps(
        max_unit_cost_usd=typed.benchmark_max_unit_cost_usd,
        max_weight_g=Decimal(repr(typed.benchmark_max_weight_g)),
    )


def _plain(value: Any) -> Any:
    """Without the keys that were left out."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each not in (None, "")}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _of_known_materials(estimate: Estimate) -> Estimate:
    """Only for the planted fault `material-any`: what is not known is the first that fits."""
    parts = []
    for part in estimate.manufactured_parts:
        known = shop().materials_of(configuration.Method(part.method))
        material = part.material if part.material in known else known[0]
        parts.append(part.model_copy(update={"material": material}))
    return estimate.model_copy(update={"manufactured_parts": parts})


#: For the planted fault `price-of-first-round` alone.
_first: dict[str, Estimate] = {}


def _trusting(found: Costing) -> Costing:
    """Without what differs from the computed numbers."""
    left = tuple(each for each in found.findings if "computed" not in each.expected)
    return replace(found, findings=left)
