"""OpenAI's embeddings API, asked by its official client: what the vectors are, and what is refused."""

from __future__ import annotations

import math

import openai
import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.model._dialect import EMBEDDINGS
from harness_core.doubles.model._refusal import Refusal
from harness_core.tests.model.openai_sdk import asked

SMALL = "text-embedding-3-small"
LARGE = "text-embedding-3-large"
GOOD = {"model": SMALL, "input": "hi"}


async def vectors(client: openai.AsyncOpenAI, given, **more) -> list[list[float]]:
    """Of texts, in their order."""
    answer = await client.embeddings.create(**{"model": SMALL, "input": given, **more})
    assert list(range(len(answer.data))) == [each.index for each in answer.data]
    return [each.embedding for each in answer.data]


def cosine(one: list[float], other: list[float]) -> float:
    """How near two vectors of unit length are."""
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


async def test_equal_texts_have_equal_vectors_of_unit_length() -> None:
    """Text and model decide the vector: any other text, model or kind of input has another."""
    async with asked() as (client, _):
        one, other, again = await vectors(client, ["a pain", "a plan", "a pain"])
        (alone,) = await vectors(client, "a pain")
        (tokens,) = await vectors(client, [97, 32, 112])
        tokenised = await vectors(client, [[97, 32, 112], [5]])
        (spelt,) = await vectors(client, "[97, 32, 112]")
        (foreign,) = await vectors(client, "a pain", model="another-model")
    async with asked() as (client, _):
        (tomorrow,) = await vectors(client, "a pain")

    assert one == again == alone == tomorrow
    assert tokens == tokenised[0]
    assert all(
        1536 == len(each) and 1 == pytest.approx(cosine(each, each), abs=1e-5)
        for each in (one, other, tokens, foreign)
    )
    assert all(
        abs(cosine(one, each)) < 0.2 for each in (other, tokens, foreign, tokenised[1], spelt)
    )
    assert abs(cosine(tokens, spelt)) < 0.2


async def test_a_search_finds_a_text_by_its_words() -> None:
    """A product that keeps vectors finds the document that it is asked for, word by word."""
    documents = ["Take it twice a day.", "The clinic is closed on Mondays.", "Bring your card."]
    async with asked() as (client, control):
        kept = dict(zip(documents, await vectors(client, documents), strict=True))
        (wanted,) = await vectors(client, documents[1])
        entries = await control.ledger()

    assert documents[1] == max(kept, key=lambda text: cosine(kept[text], wanted))
    assert [("embeddings", SMALL, ""), ("embeddings", SMALL, "")] == [
        (entry.kind, entry.model, entry.unrehearsed) for entry in entries
    ]


async def test_dimensions_shorten_a_vector() -> None:
    """The shorter vector is the beginning of the longer one at unit length; each model has its own."""
    async with asked() as (client, _):
        (full,) = await vectors(client, "a pain", model=LARGE)
        (short,) = await vectors(client, "a pain", model=LARGE, dimensions=256)

    assert (3072, 256) == (len(full), len(short))
    length = math.sqrt(cosine(full[:256], full[:256]))
    assert [number / length for number in full[:256]] == pytest.approx(short, abs=1e-6)


async def test_both_encodings_hold_the_same_numbers() -> None:
    """Floats, Base64, and what the client asks for by itself."""
    async with asked() as (client, _):
        floats = await vectors(client, "a pain", encoding_format="float")
        plain = await vectors(client, "a pain")
        coded = await vectors(client, "a pain", encoding_format="base64")

    assert isinstance(coded[0], str)
    assert plain == floats


async def test_vectors_are_counted_and_priced() -> None:
    """Usage counts the texts or tokens given; the ledger prices them, an unknown model not at all."""
    async with asked() as (client, control):
        usage = (await client.embeddings.create(model=SMALL, input=["x" * 40, "y" * 4])).usage
        tokens = (await client.embeddings.create(model=SMALL, input=[[1, 2, 3], [4]])).usage
        await client.embeddings.create(model="no-such-model-9", input="x")
        entries = await control.ledger()

    assert (11, 11) == (usage.prompt_tokens, usage.total_tokens)
    assert 4 == tokens.prompt_tokens == entries[1].input_tokens
    assert 11 * 0.02e-6 == pytest.approx(entries[0].usd)
    assert 0 == entries[0].output_tokens
    assert entries[2].usd is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": 3}, "input"),
        ({"input": []}, "input"),
        ({"input": ["x"] * 2049}, "input"),
        ({"input": ["x", ""]}, "input[1]"),
        ({"input": ["x", 3]}, "input[1]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": [[1], ["x"]]}, "input[1][0]"),
        ({"input": [1, "x"]}, "input[0][1]"),
        ({"input": ""}, "input[0]"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": 1537}, "dimensions"),
        ({"model": "text-embedding-ada-002", "dimensions": 8}, "dimensions"),
        ({"encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_a_malformed_request_is_refused_by_field(change, field) -> None:
    """What the provider would refuse is refused, naming the field."""
    body = {key: value for key, value in {**GOOD, **change}.items() if value is not None}

    with pytest.raises(Refusal) as caught:
        EMBEDDINGS.parse(body)

    assert (400, field) == (caught.value.status, caught.value.field)


async def test_the_client_knows_its_errors() -> None:
    """Refusals, planted ones too, are the errors of the client's own kinds."""
    async with asked() as (client, control):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.embeddings.create(**{**GOOD, "dimensions": 9999})
        await control.add_fault(Fault(kind="status", status=429))
        with pytest.raises(openai.RateLimitError):
            await client.embeddings.create(**GOOD)
        await control.add_fault(Fault(kind="cut", after_events=0))
        with pytest.raises(openai.APIConnectionError):
            await client.embeddings.create(**GOOD)

    assert ("dimensions", "invalid_request_error") == (caught.value.param, caught.value.code)


@pytest.mark.parametrize("kind", ["answer", "endless"])
async def test_a_fault_of_what_is_said_waits_for_a_message(kind) -> None:
    """Vectors say nothing: a model that misbehaves in words does so at its next message."""
    async with asked() as (client, control):
        number = await control.add_fault(Fault(kind=kind, text="ha"))
        assert 1 == len(await vectors(client, "hi"))
        assert 0 == await control.fault_met(number)
