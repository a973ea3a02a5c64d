"""The stub: records, refuses what the tool does not have, fails and crashes where the test asks."""

import base64

import pytest

from suites.parity.compare import (
    CommandStub,
    Reply,
    SimulatedCrash,
    UnknownInvocation,
    exposures,
)

pytestmark = pytest.mark.aside("how the suite compares")


class Counter:
    """A tool that counts up, and knows one command."""

    def __init__(self):
        self.count = 0

    def run(self, call):
        """Count, or refuse."""
        if call.argv[1:] != ("up",):
            message = f"counter has no such command: {call}"
            raise UnknownInvocation(message)
        self.count += 1
        return Reply(stdout=str(self.count).encode())


@pytest.fixture
def counter():
    """A fresh tool."""
    return Counter()


@pytest.fixture
def stub(counter):
    """A stub that has that tool."""
    return CommandStub({"counter": counter})


def test_calls_are_recorded_with_what_they_were_given(stub):
    """Argv, environment and input are kept, the answer is the tool's."""
    reply = stub.run(["/usr/bin/counter", "up"], env={"A": "1"}, stdin=b"in")

    assert b"1" == reply.stdout
    (call,) = stub.calls
    assert (("/usr/bin/counter", "up"), {"A": "1"}, b"in") == (call.argv, call.env, call.stdin)


def test_a_call_that_fails_can_say_what_it_was_given(stub):
    """What it answers is made of the call."""
    stub.fail_at(1, reply=lambda call: Reply(returncode=1, stderr=call.env["A"].encode()))

    assert b"1" == stub.run(["counter", "up"], env={"A": "1"}).stderr


@pytest.mark.parametrize("argv", [["counter", "down"], ["rm", "-rf", "/"]])
def test_an_unknown_invocation_is_refused_even_when_it_is_swallowed(stub, argv):
    """A launcher that catches the refusal does not get away with it."""
    with pytest.raises(UnknownInvocation, match=argv[-1]):
        stub.run(argv)

    with pytest.raises(UnknownInvocation):
        stub.check()


def test_a_call_fails_where_it_is_told_and_without_effect(stub, counter):
    """Only the n-th call from now on fails; the tool never sees it."""
    stub.run(["counter", "up"])
    stub.fail_at(2)

    codes = [stub.run(["counter", "up"]).returncode for _ in range(3)]

    assert [0, 1, 0] == codes
    assert 3 == counter.count
    stub.check()


@pytest.mark.parametrize(("after", "count"), [(False, 1), (True, 2)])
def test_a_crash_ends_the_launcher_until_it_is_revived(stub, counter, after, count):
    """Nothing reaches a tool any more, and no handler of ordinary errors takes it for one."""
    stub.crash_at(2, after=after)
    stub.run(["counter", "up"])
    for _ in range(2):
        with pytest.raises(SimulatedCrash):
            stub.run(["counter", "up"])

    assert count == counter.count
    assert stub.crashed
    assert not issubclass(SimulatedCrash, Exception)

    stub.revive()

    assert str(count + 1).encode() == stub.run(["counter", "up"]).stdout


def test_a_value_is_found_in_every_spelling():
    """As it is, quoted, escaped, in hexadecimal or base64: it is an exposure."""
    value = "s3cr'et $x\n"
    encoded = [base64.b64encode(b"a" * n + value.encode() + b"zz").decode() for n in range(3)]
    places = {
        "argv": ["run", f"-e TOKEN={value}"],
        "log": [f"env is {{'TOKEN': {value!r}}}"],
        "url": ["?t=s3cr%27et%20%24x%0A"],
        "base64": encoded[:1],
        "base64, one behind": encoded[1:2],
        "base64, two behind": encoded[2:],
        "clean": ["s3cr", "-e TOKEN"],
    }

    assert {place: ("TOKEN",) for place in places if place != "clean"} == exposures(
        {"TOKEN": value}, places
    )


def test_a_value_that_occurs_by_chance_is_refused():
    """Looking for one letter would find it everywhere."""
    with pytest.raises(ValueError, match="TOKEN has 1 characters"):
        exposures({"TOKEN": "x"}, {"log": ["axb"]})
