"""What is secret and what is not, in every shape it is written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.base.evidence import REDACTED, Redactor


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("sk-ant-api03-AbCd_efgh-1234", "AbCd_efgh"),
        ("key: sk-proj-abcDEF1234567", "abcDEF1234567"),
        ("'sk-abcdefgh12345678'", "abcdefgh12345678"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
        ("ghp_0123456789abcdefghij0123", "0123456789abcdefghij"),
        ("github_pat_0123456789abcdefghij_x", "0123456789abcdefghij"),
        ("xoxb-1234-5678-abcdef", "1234-5678"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "eyJzdWIiOiIx"),
        ("POST https://api.telegram.org/bot123456789:AAF0abcdefghijklmnopq/send", "AAF0abcdef"),
        ("Authorization: Bearer abc.def-123", "abc.def-123"),
        ("authorization: bearer abc.def-123", "abc.def-123"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("[(b'authorization', b'Basic dXNlcjpwYXNz')]", "dXNlcjpwYXNz"),
        ("postgresql://user:hunter2@127.0.0.1:5432/db", "hunter2"),
        ("postgresql://user:p@ss@word@host/db", "p@ss"),
        ("postgresql://user:pa/ss@host/db", "pa/ss"),
        ("redis://:hunter2@host", "hunter2"),
        ("http://u:p@host/", ":p@"),
        ('{"password": "hunter two, three"}', "hunter"),
        ('{"password": "hunter two, three"}', "three"),
        ('{"api_key":"abcdefgh"}', "abcdefgh"),
        ("{'secret': 'it\"s quoted'}", "quoted"),
        ('{"text": "{\\"password\\": \\"abcdefgh\\"}"}', "abcdefgh"),
        ("('x-api-key', 'abcdefgh')", "abcdefgh"),
        ("x-api-key: abcdefgh", "abcdefgh"),
        ("PASSWORD=hunter22 next", "hunter22"),
        ("PGPASSWORD='hunter22'", "hunter22"),
        ("AWS_SECRET_ACCESS_KEY=abcdefgh", "abcdefgh"),
        ("TELEGRAM_BOT_TOKEN=abcdefgh", "abcdefgh"),
        ("ANTHROPIC_AUTH_TOKEN=abcdefgh", "abcdefgh"),
        ("access_token=abcdefgh&x=1", "abcdefgh"),
        ("/callback?x=1&api_key=abcdefgh&y=2", "abcdefgh"),
    ],
)
def test_secret_shapes_are_replaced(text, secret):
    """Every shape a secret is known by is replaced, wherever it stands, and stays so."""
    redactor = Redactor()

    clean = redactor.redact(f"before {text} after")

    assert secret not in clean
    assert REDACTED in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert clean == redactor.redact(clean)


@pytest.mark.parametrize(
    "text",
    [
        "task-management-system on disk-throughput",
        "risk-assessment-12345 of sk-learn-contrib",
        "the bearer certificates are here, bearer of bad news",
        "input_tokens: 1234567, max_tokens=4096, tokens_total=123456",
        '{"token": "zxbcdfghjk", "tool": "symptom_log"}',
        "secretary: Elisabeth, the password is wrong, a secret santa",
        "http://127.0.0.1:8100/sse and http://localhost:8100?x=a@b",
        "GET http://127.0.0.1:8100/users/someone@example.org",
        "mail someone@example.org about postgresql://127.0.0.1:5432/db",
        "postgresql://user@127.0.0.1:5432/db",
        "password: short",
        "key=value, monkey=12345678, keyboard: qwertyuiop",
        "2026-03-02T10:11:12Z butler.switchboard INFO dispatched to health in 12 ms",
    ],
)
def test_ordinary_text_is_left_alone(text):
    """What only resembles a secret stays readable."""
    assert text == Redactor().redact(text)


def test_registered_values_are_replaced_everywhere():
    """A known secret is replaced in any surroundings, the longer of two nested ones first."""
    redactor = Redactor()
    redactor.add("abcdef", "abcdef-longer")

    assert "x[redacted]y [redacted]" == redactor.redact("xabcdef-longery abcdef")


@pytest.mark.parametrize("spell", [json.dumps, lambda s: json.dumps(s, ensure_ascii=False)])
def test_registered_value_in_json_is_replaced(spell):
    """Escaping does not hide a secret with quotes, newlines or umlauts."""
    secret = 'pa"ss\\wörd\nline two'
    redactor = Redactor()
    redactor.add(secret)

    clean = redactor.redact(spell({"k": secret}))

    assert "ss" not in clean
    assert "line two" not in clean
    assert {"k": REDACTED} == json.loads(clean)


def test_registered_value_in_a_url_is_replaced():
    """Percent-encoding does not hide a secret."""
    redactor = Redactor()
    redactor.add("a b/c=d")

    assert "?q=[redacted]&r=[redacted]" == redactor.redact("?q=a%20b%2Fc%3Dd&r=a+b%2Fc%3Dd")


def test_lines_of_a_registered_value_are_secret_each():
    """A key of several lines, logged line by line, leaks none of them."""
    redactor = Redactor()
    redactor.add("-----BEGIN KEY-----\nMIIabcdefgh\n-----END KEY-----")

    assert "1: [redacted]" == redactor.redact("1: MIIabcdefgh")


@pytest.mark.parametrize("value", ["", "12345"])
def test_short_values_are_refused(value):
    """A value that would redact ordinary text is refused with its length, and nothing is added."""
    redactor = Redactor()

    with pytest.raises(ValueError, match=f"of {len(value)} characters"):
        redactor.add(value)
    assert "12345" == redactor.redact("12345")


@settings(database=None, derandomize=True)
@given(text=st.text(alphabet="abk:/@-=.sp \n\"'", max_size=200))
def test_redaction_is_stable(text):
    """What is redacted once does not change when it is written again."""
    redactor = Redactor()
    redactor.add("spa-ss")

    once = redactor.redact(text)

    assert once == redactor.redact(once)


@settings(database=None, derandomize=True)
@given(
    before=st.text(alphabet="ab :=\n", max_size=60),
    secret=st.sampled_from(["known-secret", "sk-ant-abcdefgh1", "password=abcdefgh"]),
    after=st.text(alphabet="ab :=\n", min_size=40, max_size=60),
)
def test_clear_cut_lies_in_no_secret(before, secret, after):
    """Both sides of a cut, redacted for themselves, are the whole redacted."""
    redactor = Redactor()
    redactor.add("known-secret")
    text = before + secret + " " + after

    cut = redactor.clear_cut(text, keep=20)

    assert len(text) - cut >= 20
    assert redactor.redact(text) == redactor.redact(text[:cut]) + redactor.redact(text[cut:])


@pytest.mark.parametrize(
    "text", ["a.b." * 50_000, "password " * 20_000, "://a:" * 20_000, 'password="' * 20_000]
)
def test_no_text_takes_long(text):
    """Hostile repetition is redacted in time that grows with its length alone."""
    redactor = Redactor()

    from time import thread_time

    def seconds(size: int) -> float:
        began = thread_time()
        redactor.redact(text[:size])
        return thread_time() - began

    small = max(seconds(len(text) // 4), 0.002)
    assert seconds(len(text)) < small * 12


_KEYS = "apiKey API-KEY password PASSWD passphrase secret secret_access_key auth_token Refresh-Token AccessToken refreshtoken X_TOKEN"


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("", "{'", '"', "x-", "secret", "_TOKEN=")),
            st.sampled_from(_KEYS.split()),
            st.sampled_from(("=", ": ", "': '", '":"', '\\": \\"', " ")),
            st.sampled_from(("hunter22", "abcdef secret", "token=token=", "[redacted]", "short")),
            st.sampled_from(("", "'", '"', ",", "\n")),
        ).map("".join),
        max_size=5,
    ).map("".join)
)
def test_keys_are_found_wherever_they_begin(text):
    """Looking for their words first finds what trying at every place does, as behind an İ."""
    redactor = Redactor()
    assert redactor.redact(f"\u0130\n{text}") == f"\u0130\n{redactor.redact(text)}"
