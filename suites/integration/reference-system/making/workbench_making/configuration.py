"""``manufacturing_config.yaml``: read strictly, and asked for a method and a material.

Numbers are Decimals, exactly as typed. The same bytes have the same sha256, to which verdicts are bound.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding, one_of
from workbench_planning.schema import model_of
from workbench_planning.strict_yaml import read_yaml

#: Its name wherever it lies.
FILE = "manufacturing_config.yaml"
#: Names the file of this shop in the environment; the shipped one holds without it.
VARIABLE = "WORKBENCH_MANUFACTURING_CONFIG"
_SHIPPED = Path(__file__).with_name(FILE)

_NAME = r"^[a-z][a-z0-9_]{0,63}$"


class Method(StrEnum):
    """How a part is made."""

    CNC = "cnc"
    INJECTION_MOULDING = "injection_moulding"
    PRINT = "print"


def _number(value: Any) -> Any:
    """Text and truth values are no numbers, however much they look like some."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError("a number")
    # The shortest text that reads as the same number is what was typed.
    return Decimal(repr(value)) if isinstance(value, float) else value


Number = Annotated[Decimal, BeforeValidator(_number), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0, le=1_000_000_000)]
NotNegative = Annotated[Number, Field(ge=0, le=1_000_000_000)]
Share = Annotated[Number, Field(ge=0, le=1)]
Angle = Annotated[Number, Field(ge=0, le=90)]
Sides = Annotated[tuple[Positive, Positive, Positive], Field(description="x, y, z")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Material(_Strict):
    """What a part is made of.

    Attributes:
        methods: that can work it.
    """

    density_g_cm3: Positive
    price_usd_kg: NotNegative
    methods: frozenset[Method] = Field(min_length=1)


class CncLimits(_Strict):
    """What the mill can do.

    Attributes:
        machine_mm: sides of its space.
        tool_axes: from the part towards the spindle, in the part's own frame.
        tool_radius_mm: of the smallest end mill; no inner corner is sharper.
        ball_radius_mm: of the smallest ball nose; no rounded floor is sharper.
    """

    machine_mm: Sides
    tool_axes: tuple[Annotated[str, Field(pattern="^[+-][xyz]$")], ...] = Field(
        min_length=1, max_length=6
    )
    tool_radius_mm: Positive
    ball_radius_mm: Positive
    least_hole_diameter_mm: Positive


class MouldingLimits(_Strict):
    """What a mould of two halves lets go, and what fills and cools."""

    machine_mm: Sides
    least_draft_deg: Angle
    least_wall_mm: Positive
    most_wall_mm: Positive

    @model_validator(mode="after")
    def _ordered(self) -> MouldingLimits:
        _refuse_unordered(self, "wall_mm")
        return self


class PrintLimits(_Strict):
    """What a printer lays without supports.

    Attributes:
        most_overhang_deg: of a face that looks down, from the vertical.
        most_bridge_mm: a ceiling that is held on two sides may span that much.
        least_infill: share of the volume.
        most_infill: share of the volume.
    """

    machine_mm: Sides
    least_wall_mm: Positive
    most_overhang_deg: Angle
    most_bridge_mm: NotNegative
    least_layer_mm: Positive
    most_layer_mm: Positive
    least_infill: Annotated[Number, Field(gt=0, le=1)]
    most_infill: Annotated[Number, Field(gt=0, le=1)]

    @model_validator(mode="after")
    def _ordered(self) -> PrintLimits:
        _refuse_unordered(self, "layer_mm", "infill")
        return self


class Cnc(_Strict):
    """The mill; ``set_up_usd`` is paid once for all pieces of an order."""

    rate_usd_h: NotNegative
    set_up_usd: NotNegative
    removal_mm3_min: Positive
    limits: CncLimits | None = None


class InjectionMoulding(_Strict):
    """The moulding machine.

    Attributes:
        mould_usd: paid once for all pieces of an order, as ``set_up_usd`` is.
        cycle_base_s: of each shot, whatever its wall.
        cooling_s_mm2: times the square of the wall, of each shot.
        runner_share: of the part's volume, melted and paid for beside it.
    """

    rate_usd_h: NotNegative
    set_up_usd: NotNegative
    mould_usd: NotNegative
    cycle_base_s: NotNegative
    cooling_s_mm2: NotNegative
    runner_share: Share
    limits: MouldingLimits | None = None


class Print(_Strict):
    """The printer; it lays ``line_width_mm`` × layer × ``speed_mm_s`` each second."""

    rate_usd_h: NotNegative
    set_up_usd: NotNegative
    line_width_mm: Positive
    speed_mm_s: Positive
    limits: PrintLimits | None = None


class Methods(_Strict):
    """Those that there are; a method may be left out."""

    cnc: Cnc | None = None
    injection_moulding: InjectionMoulding | None = None
    print: Print | None = None


class Assembly(_Strict):
    """Putting together.

    Attributes:
        handling_s: of each piece.
        fastening_s: of each fastener, besides its handling.
    """

    rate_usd_h: NotNegative
    handling_s: NotNegative
    fastening_s: NotNegative


class _File(_Strict):
    materials: dict[Annotated[str, Field(pattern=_NAME)], Material] = Field(min_length=1)
    methods: Methods
    assembly: Assembly


class Configuration(_File):
    """The whole file.

    Attributes:
        sha256: of its bytes.
    """

    sha256: str

    @property
    def usable_methods(self) -> tuple[Method, ...]:
        """Those that have limits: what may be asked for."""
        return tuple(
            method
            for method in Method
            if (found := getattr(self.methods, method)) is not None and found.limits is not None
        )

    def materials_of(self, method: Method) -> tuple[str, ...]:
        """Names of what a method can work."""
        return tuple(sorted(name for name, m in self.materials.items() if method in m.methods))


def shipped() -> bytes:
    """The bytes of the file that comes with the product."""
    return _SHIPPED.read_bytes()


def read(data: bytes) -> tuple[Configuration | None, list[Finding]]:
    """Read the file; all that is wrong with it, or the configuration."""
    document, findings = read_yaml(data, file=FILE)
    if document is None:
        return None, findings
    file, findings = model_of(_File, document, file=FILE)
    if file is None:
        return None, findings
    digest = hashlib.sha256(data).hexdigest()
    return Configuration.model_construct(**dict(file), sha256=digest), []


def choose(
    configuration: Configuration, *, method: str, material: str, file: str, where: str
) -> tuple[Material | None, list[Finding]]:
    """The material of a part, or why it cannot be made so; the findings name the valid choices.

    Args:
        file: that names the two.
        where: the part in it.
    """

    def wrong(key: str, found: str, expected: str) -> tuple[None, list[Finding]]:
        place = f"{where}.{key}" if where else key
        return None, [finding(Stage.VALID, file=file, where=place, found=found, expected=expected)]

    usable = configuration.usable_methods
    if method not in set(usable):
        known = method in set(Method) and getattr(configuration.methods, method) is not None
        found = f"{method}, which has no limits in {FILE}" if known else f"{method}, not in {FILE}"
        return wrong("method", found, one_of(usable))
    choices = configuration.materials_of(Method(method))
    chosen = configuration.materials.get(material)
    if chosen is None:
        return wrong("material", f"{material}, not in {FILE}", f"{one_of(choices)} for {method}")
    if material not in choices:
        others = ", ".join(sorted(chosen.methods))
        return wrong("material", f"{material}, of {others}", f"{one_of(choices)} for {method}")
    return chosen, []


def _refuse_unordered(limits: BaseModel, *names: str) -> None:
    for name in names:
        least, most = getattr(limits, f"least_{name}"), getattr(limits, f"most_{name}")
        if least > most:
            raise ValueError(f"least_{name} {least} is above most_{name} {most}")
