"""`manufacturing_config.yaml` is read strictly, and refuses by naming its own choices."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import pytest
from workbench_contract.findings import Finding, Stage
from workbench_making import configuration
from workbench_making.configuration import Configuration, Method

SHIPPED = configuration.shipped()


def good() -> Configuration:
    """The shipped configuration."""
    found, findings = configuration.read(SHIPPED)
    assert [] == findings
    assert found is not None
    return found


def refusal(data: bytes) -> Finding:
    """The one finding about a file."""
    found, findings = configuration.read(data)
    assert found is None
    assert 1 == len(findings), findings
    return findings[0]


def test_the_shipped_file_is_whole() -> None:
    """Every method can be asked for and has materials of its own."""
    found = good()

    assert tuple(Method) == found.usable_methods
    assert all(found.materials_of(method) for method in Method)
    assert hashlib.sha256(SHIPPED).hexdigest() == found.sha256


def test_prices_are_what_was_typed() -> None:
    """No binary fraction comes between the file and a price."""
    assert Decimal("0.905") == good().materials["polypropylene"].density_g_cm3


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("rate_usd_h: 75.00", "rate_usd_h: '75.00'", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h: true", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h: .nan", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h: .inf", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h: 1:15", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h: -0.01", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate_usd_h:", "methods.cnc.rate_usd_h"),
        ("rate_usd_h: 75.00", "rate: 75.00", "methods.cnc.rate_usd_h, methods.cnc.rate"),
        ("removal_mm3_min: 12000", "removal_mm3_min: 0", "methods.cnc.removal_mm3_min"),
        ("tool_radius_mm: 1.5", "tool_radius_mm: 0", "methods.cnc.limits.tool_radius_mm"),
        ('"+x"', '"up"', "methods.cnc.limits.tool_axes[0]"),
        ("[500, 400, 300]", "[500, 400]", "methods.cnc.limits.machine_mm[2]"),
        ("least_layer_mm: 0.1", "least_layer_mm: 0.4", "methods.print.limits"),
        ("most_wall_mm: 4.0", "most_wall_mm: 0.9", "methods.injection_moulding.limits"),
        ("price_usd_kg: 2.40, methods: [cnc]", "price_usd_kg: 2.40, methods: [laser]",
         "materials.steel_1018.methods[0]"),
        ("price_usd_kg: 2.40, methods: [cnc]", "price_usd_kg: 2.40, methods: []",
         "materials.steel_1018.methods"),
        ("  steel_1018:", "  Steel 1018:", "materials['Steel 1018']"),
        ("assembly:", "assemblies:", "assembly, assemblies"),
    ],
)
def test_each_mistake_is_named_by_its_key(old: str, new: str, where: str) -> None:
    """One wrong value is one finding; a misspelt key is two, the missing and the unknown."""
    found, findings = configuration.read(SHIPPED.replace(old.encode(), new.encode(), 1))

    assert found is None
    assert where.split(", ") == [row.where.split(" (")[0] for row in findings]
    assert all("line " in row.where for row in findings)
    assert {(Stage.VALID, configuration.FILE)} == {(row.stage, row.file) for row in findings}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a: 1\nb: 2\na: 3\n", "the key a second time"),
        (b"a: !!python/object:os.system 1\n", "tag"),
        (b"a: 1\n---\nb: 2\n", "a second document"),
        (b"a: 1\nb: \xff\n", "no UTF-8"),
        (b"a: \0\n", "U+0000"),
        (b"[1, 2]", "a list of 2"),
        (b"", "nothing"),
        (b"#" * (256 * 1024 + 1), "262145 bytes"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(data: bytes, found: str) -> None:
    """As other files that agents write; never an exception."""
    assert found in refusal(data).found


def chosen(method: str, material: str, *, of: Configuration | None = None) -> list[Finding]:
    """The findings about a part's method and material."""
    found, findings = configuration.choose(
        of or good(), method=method, material=material, file="estimate.yaml", where="parts[3]"
    )
    assert (found is None) == bool(findings)
    return findings


def test_a_material_of_its_method_is_taken() -> None:
    """Nothing is found."""
    assert [] == chosen("print", "pla_filament")


def test_an_unknown_material_is_told_the_choices() -> None:
    """Those of the method, all of them, and no other method's."""
    (row,) = chosen("print", "unobtainium")

    assert ("estimate.yaml", "parts[3].material") == (row.file, row.where)
    assert "unobtainium" in row.found
    assert "one of abs_filament, petg_filament, pla_filament for print" == row.expected


def test_a_material_of_another_method_is_told_whose_it_is() -> None:
    """ABS pellets are not printed."""
    (row,) = chosen("print", "abs")

    assert "abs, of injection_moulding" == row.found
    assert "abs_filament" in row.expected


def test_an_unknown_method_is_told_the_choices() -> None:
    """And nothing is said about the material."""
    (row,) = chosen("laser", "abs")

    assert ("parts[3].method", "one of cnc, injection_moulding, print") == (
        row.where, row.expected
    )


def test_a_method_without_limits_is_not_offered() -> None:
    """What nobody limited nobody can check."""
    text = SHIPPED.decode()
    start = text.index("    limits:", text.index("  print:"))
    found, findings = configuration.read(
        (text[:start] + text[text.index("\nassembly:"):]).encode()
    )
    assert [] == findings
    (row,) = chosen("print", "pla_filament", of=found)

    assert "print, which has no limits in manufacturing_config.yaml" == row.found
    assert "one of cnc, injection_moulding" == row.expected


def test_a_method_that_is_left_out_is_not_offered() -> None:
    """A shop without a printer."""
    text = SHIPPED.decode()
    start = text.index("  print:\n")
    found, findings = configuration.read(
        (text[:start] + text[text.index("\nassembly:"):]).encode()
    )
    assert [] == findings
    (row,) = chosen("print", "pla_filament", of=found)

    assert "print, not in manufacturing_config.yaml" == row.found


def test_a_long_value_is_cut() -> None:
    """A finding is read by somebody."""
    (row,) = chosen("cnc", "x" * 100_000)

    assert len(row.found) <= 160
