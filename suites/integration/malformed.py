"""What no operation of a document can take: bodies that are none, wrong types, values beyond a limit."""

import itertools
from typing import Any

from harness_core.base.slowness import patience
from suites.integration.conforming import Conforming
from suites.integration.document import Operation
from suites.integration.documented import WORK_S
from suites.integration.refusals import expect_refused

__all__ = ["malformed_requests"]


#: Bodies that no operation takes: no JSON, or no object.
NO_OBJECTS = (
    *(b"", b"{", b"[]", b'"text"', b"null", b"5", b"true", b"\xff\xfe", b"[" * 500, b"{}{}"),
    *(b"[" * 200_000, b"'{}'", b"{'a': 1}", b"NaN", b'{"a":1,}', b"\0"),
    *(b'{"\\ud800": 1}', b'{"x": 1' + b"0" * 6000 + b"}", b'{"x": "\xe4"}'),
)


#: Values of JSON, or nearly, that no field of ours can have.
NO_VALUES = (b"NaN", b"-Infinity", b'"\\ud800"', b'"\\udfff\\ud800x"', b"{}", b"[[]]")


async def malformed_requests(asking: Conforming, operation: Operation, share: slice) -> None:
    """What no operation can take is refused as documented; nothing of it is a failure inside.

    Args:
        asking: holds answers to the document.
        operation: what is asked.
        share: of the bodies and values that are tried.
    """
    if operation.path == "/health":
        return
    answer = await asking.ask(operation.method, operation.target(), headers={"x-api-key": "wrong"})
    expect_refused(answer, 401)
    if "{" in operation.path and "404" in operation.responses:
        answer = await asking.ask(operation.method, operation.target())
        expect_refused(answer, 404, 422)
    content = asking.document.body_of(operation)
    if content is None:
        return
    for body in NO_OBJECTS[share]:
        answer = await asking.ask(
            operation.method,
            operation.target(),
            content=body,
            headers={"content-type": "application/json"},
        )
        assert answer.status in {400, 422}, f"{operation.name} with {body[:20]!r}: {answer}"
    required = content.get("required", [])
    for wrong in ({"undeclared": 1}, *wrongly_typed(content)):
        answer = await asking.ask(operation.method, operation.target(), json=wrong)
        assert answer.status in {400, 422}, f"{operation.name} with {wrong}: {answer}"
        names = [*(name for name in required if name not in wrong), *wrong]
        unnamed = [name for name in names if name not in answer.text]
        assert not unnamed, (
            f"{operation.name} refuses {wrong}, and does not name {unnamed}: {answer}"
        )
    properties = content.get("properties", {})
    for name, value in itertools.product(properties, NO_VALUES[share]):
        if value != b"{}" or not takes_any(properties[name]):
            body = b'{"%b": %b}' % (name.encode(), value)
            answer = await asking.ask(
                operation.method,
                operation.target(),
                content=body,
                headers={"content-type": "application/json"},
            )
            assert answer.status in {400, 422}, f"{operation.name} with {body!r}: {answer}"
    await beyond_limits(asking, operation, content)


#: Bodies that the operations take; the rest of a request whose one field is beyond its limit.
SOUND: dict[str, dict[str, Any]] = {
    "/episodes": {"task": "of limits"},
    "/fs/read": {"path": "nowhere"},
    "/fs/write": {"path": "limits.txt", "content": "x"},
    "/fs/edit": {"path": "nowhere", "old": "a", "new": "b"},
    "/fs/grep": {"pattern": "x"},
    "/fs/delete": {"path": "nowhere"},
    "/git/commit": {"message": "x"},
    "/runtime/execute": {"command": "true"},
    "/lint": {"path": "nowhere"},
    "/benchmark/validate": {"model": "nowhere.xml"},
    "/benchmark/analyze": {"model": "nowhere.py"},
    "/benchmark/simulate": {"model": "nowhere.xml"},
    "/benchmark/preview": {"model": "nowhere.py"},
    "/benchmark/submit": {},
}


async def beyond_limits(asking: Conforming, operation: Operation, content: dict[str, Any]) -> None:
    """What the document says is the limit of a field is its limit: one more is refused, for it."""
    sound = SOUND.get(operation.path)
    if sound is None:
        return
    for name, schema in content.get("properties", {}).items():
        for within, value in limits_of(schema):
            # A submission that is taken would be an episode that runs; it is taken elsewhere.
            if within and operation.path == "/episodes":
                continue
            answer = await asking.ask(
                operation.method,
                operation.target(),
                json=sound | {name: value},
                seconds=patience(WORK_S),
            )
            shown = f"{operation.name} with {name} of {str(value)[:40]!r} ({len(str(value))})"
            if within:
                assert answer.status not in {400, 422}, f"{shown} is at its limit: {answer}"
            else:
                assert answer.status in {400, 422}, f"{shown} is beyond its limit: {answer}"
                assert name in answer.text, f"{shown} is refused for something else: {answer}"


def limits_of(schema: dict[str, Any]) -> list[tuple[bool, object]]:
    """Values at the documented limits of a field, and one beyond: whether it is within, and which."""
    kinds = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    found: list[tuple[bool, object]] = []
    for kind in kinds:
        whole = kind.get("type") == "integer"
        step: float = 1 if whole else 0.001
        if kind.get("type") == "string" and "pattern" not in kind:
            least, most = kind.get("minLength"), kind.get("maxLength")
            found += [(True, "x" * most), (False, "x" * (most + 1))] if most else []
            found += [(False, "x" * (least - 1))] if least else []
        found += [(False, kind["minimum"] - step)] if "minimum" in kind else []
        found += [(True, kind["minimum"])] if "minimum" in kind else []
        found += [(False, kind["maximum"] + step)] if "maximum" in kind else []
        found += [(False, kind["exclusiveMinimum"])] if "exclusiveMinimum" in kind else []
        found += [(False, kind["exclusiveMaximum"])] if "exclusiveMaximum" in kind else []
        if whole and "exclusiveMaximum" in kind:
            found.append((True, kind["exclusiveMaximum"] - 1))
    return found


def wrongly_typed(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """For each property a value that is none of its types; what takes any object has none."""
    properties = schema.get("properties", {})
    return [{name: {"wrong": [1]}} for name, each in properties.items() if not takes_any(each)]


def takes_any(schema: dict[str, Any]) -> bool:
    """Whether a property takes an object with any fields."""
    kinds = schema.get("anyOf", [schema])
    return any(each.get("type") == "object" and not each.get("properties") for each in kinds)
