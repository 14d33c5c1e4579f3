"""Batch invariance: what a request is answered has the same bits in any company, in any order, from any cache."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
import torch

from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local import steady
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator, Request
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.steady import PIECE, ROWS, is_steady, kin, lay_out, product

SHAPES = {
    "one head a key": ModelShape(vocabulary=90, layers=2, width=64, heads=2, context=700),
    "shared keys": ModelShape(vocabulary=101, layers=2, width=96, heads=6, kv_heads=2, context=700),
    "odd sizes": ModelShape(vocabulary=37, layers=1, width=72, heads=3, inner=50, context=700),
}


@pytest.fixture(params=sorted(SHAPES))
def varied(request: pytest.FixtureRequest) -> Decoder:
    model = Decoder(SHAPES[request.param], seed=4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)  # sharper than as drawn: last digits reach the ids
    if not Generator(model).invariant:
        pytest.skip("this host's kernels give rows other bits in other company, and Generator.invariant says so")
    return model


def conversations(vocabulary: int, seed: int) -> dict[str, list[Request]]:
    """Sessions of up to three turns, some of which begin alike. Later turns go on from what is sampled before them."""
    rng = random.Random(f"steady {seed}")
    shared = tuple(rng.randrange(vocabulary) for _ in range(rng.choice([9, 70, 480])))
    made: dict[str, list[Request]] = {}
    for number in range(7):
        begin = shared[: rng.choice([0, 5, len(shared)])]
        own = tuple(rng.randrange(vocabulary) for _ in range(rng.choice([1, 2, 3, 30, 129])))
        made[f"s{number}"] = [
            Request(
                f"s{number}",
                (*begin, *own) if turn == 0 else own[: 1 + turn],
                SamplingParams(rng.randint(1, 9), rng.choice([0.0, 0.7, 1.0]), (5,), seed=rng.randrange(99)),
                keep=rng.random() < 0.6,
            )
            for turn in range(rng.randint(1, 3))
        ]
    return made


def following(asked: Request, answered: Sampled, fresh: Request) -> Request:
    """The next turn: all that was said, then what `fresh` holds."""
    return Request(fresh.session, (*asked.prompt, *answered.ids, *fresh.prompt), fresh.params, fresh.keep)


def alone(model: Decoder, turns: list[Request]) -> list[Sampled]:
    """Each turn in a generator of its own, its prompt fed whole."""
    asked, said = turns[0], Generator(model).generate(turns[:1])
    for turn in turns[1:]:
        asked = following(asked, said[-1], turn)
        said += Generator(model).generate([asked])
    return said


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule_gives_the_same_bits(varied: Decoder, seed: int) -> None:
    """Whatever begins when, beside whom, is cancelled or kept: each request is answered as it is alone, bit for bit."""
    rng = random.Random(f"schedule {seed}")
    talks = conversations(varied.shape.vocabulary, seed)
    generator = Generator(varied, max_rows=5)
    waiting = {name: turns[0] for name, turns in talks.items()}
    running: dict[int, Request] = {}
    said: dict[str, list[Sampled]] = {name: [] for name in talks}
    given_up: set[str] = set()
    while waiting or running:
        chosen = rng.sample(sorted(waiting), min(len(waiting), generator.room, rng.choice([0, 1, 2, 5])))
        begun = [waiting.pop(name) for name in chosen]
        running |= dict(zip(generator.begin(begun), begun, strict=True))
        if running and rng.random() < 0.03:
            number = rng.choice(sorted(running))
            generator.cancel(number)
            given_up.add(running.pop(number).session)
        for number, sampled in generator.step().items():
            asked = running.pop(number)
            said[asked.session].append(sampled)
            rest = talks[asked.session][len(said[asked.session]) :]
            if rest:
                waiting[asked.session] = following(asked, sampled, rest[0])
    for name, turns in talks.items():
        expected = alone(varied, turns)
        assert said[name] == (expected[: len(said[name])] if name in given_up else expected)


def test_continuous_engine_repeats_bit_for_bit(varied: Decoder) -> None:
    """A continuously batched engine answers each request the same, whenever it comes, in any number of rows."""
    talks = conversations(varied.shape.vocabulary, 11)

    async def talk(engine: LocalEngine, turns: list[Request], late: float) -> list[Sampled]:
        await asyncio.sleep(late)
        asked, said = turns[0], list[Sampled]()
        with engine.session(turns[0].session):
            for turn in turns:
                asked = following(asked, said[-1], turn) if said else turn
                said.append(await engine.sample(asked.prompt, asked.params, session=asked.session))
        return said

    async def everybody(rows: int, late: Callable[[], float]) -> list[list[Sampled]]:
        engine = LocalEngine(Generator(varied, max_rows=rows), continuous=True)
        async with asyncio.timeout(120):
            return list(await asyncio.gather(*(talk(engine, turns, late()) for turns in talks.values())))

    expected = [alone(varied, turns) for turns in talks.values()]
    for rows in (1, 3, 64):
        rng = random.Random(rows)
        assert asyncio.run(everybody(rows, lambda rng=rng: rng.uniform(0, 0.02))) == expected  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(20))
def test_kin_begin_alike(seed: int) -> None:
    """Each row that is read has one place, in a group whose first row begins with the same ids, all of them its own."""
    rng = random.Random(f"kin {seed}")
    stems = [tuple(rng.randrange(9) for _ in range(rng.randint(1, 3 * PIECE))) for _ in range(3)]
    begins = [
        None if rng.random() < 0.1 else (*rng.choice(stems), *(rng.randrange(9) for _ in range(rng.randint(0, PIECE))))
        for _ in range(rng.randint(1, 30))
    ]
    found = kin(begins)
    if found is None:
        return
    assert found.length % PIECE == 0
    assert found.rows.shape[1] >= ROWS
    where = found.rows.flatten().tolist()
    for row, (begin, place) in enumerate(zip(begins, found.place.tolist(), strict=True)):
        if begin is not None:
            first = int(found.rows[place // found.rows.shape[1], 0])
            assert where[place] == row
            assert first == row or len(begin) >= found.length
            assert (begins[first] or ())[: found.length] == begin[: found.length]


def test_kin_are_found_where_they_save() -> None:
    """Groups are read together at the length that saves most; without a group of some length nothing is."""
    stem = tuple(range(2 * PIECE))
    found = kin([(*stem, 1), (*stem, 2), (*stem, 3), (*stem[:PIECE], 4), None])
    assert found is not None
    assert found.length == 2 * PIECE
    assert kin([stem, stem[::-1]]) is None
    assert kin([(1, 2), (1, 2)]) is None


@pytest.mark.parametrize(("inside", "outside"), [(24, 40), (640, 33), (1537, 20)])
def test_products_are_those_of_the_weights(inside: int, outside: int) -> None:
    """Laid out or not, and in however many pieces the sum is made, a product is the plain one up to rounding."""
    generator = torch.Generator().manual_seed(inside)
    rows, weight = torch.randn((8, inside), generator=generator), torch.randn((outside, inside), generator=generator)
    expected = (rows.double() @ weight.double().t()).float()
    for each in (weight, lay_out(weight)):
        assert torch.equal(each, weight)
        torch.testing.assert_close(product(rows, each), expected, rtol=1e-4, atol=1e-3)


def test_a_host_that_is_not_steady_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a product of few rows takes another kernel, the check by doing says so."""
    weight = torch.randn((33, 64), generator=torch.Generator().manual_seed(0))
    held = is_steady([weight], 4, 2, 32)

    def moody(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return product(rows, weight) if len(rows) > 8 else product(rows.double(), weight.double()).float()

    monkeypatch.setattr(steady, "product", moody)
    assert not is_steady([weight], 4, 2, 32)
    monkeypatch.undo()
    assert is_steady([weight], 4, 2, 32) == held
