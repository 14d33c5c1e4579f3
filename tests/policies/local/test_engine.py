"""The local engine: what it samples, with which log-probabilities, and how requests meet."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
import torch

from practicum.errors import PolicyError, PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator, Request
from practicum.policies.local.model import Cache, Decoder, next_logprobs


def request(session: str, prompt: Sequence[int], *, most: int = 8, seed: int = 0, temperature: float = 1.0) -> Request:
    return Request(session, tuple(prompt), SamplingParams(most, temperature, stop_ids=(7,), seed=seed))


def scored(model: Decoder, prompt: Sequence[int], sampled: Sampled) -> list[float]:
    """Log-probabilities of what was sampled, by one uncached pass over everything."""
    with torch.no_grad():
        values: list[float] = next_logprobs(model, torch.tensor([[*prompt, *sampled.ids]]))[
            0, len(prompt) - 1 :
        ].tolist()
    return values


def assert_same(one: Sampled, other: Sampled) -> None:
    assert (one.ids, one.stop_reason, one.version) == (other.ids, other.stop_reason, other.version)
    assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_logprobs_are_those_of_the_model(model: Decoder) -> None:
    """Rows of any length in one batch each carry the log-probabilities that one uncached pass gives them."""
    prompts = [[1, 2, 3], [4], list(range(8, 30)), [1, 2, 3]]
    batch = [request(str(i), prompt, most=4 + i, seed=i) for i, prompt in enumerate(prompts)]
    for one, sampled in zip(batch, Generator(model).generate(batch), strict=True):
        assert scored(model, one.prompt, sampled) == pytest.approx(sampled.logprobs, abs=1e-4)
        assert len(sampled.ids) <= one.params.max_tokens
        assert (sampled.stop_reason == "stop") == (sampled.ids[-1] == 7)
        assert 7 not in sampled.ids[:-1]


def test_logprobs_are_exact_for_an_untouched_model() -> None:
    """With weights as they are drawn, cached and uncached log-probabilities agree within 1e-5."""
    from practicum.policies.local.model import ModelShape

    model = Decoder(ModelShape(vocabulary=40, layers=2, width=32, heads=4, context=48))
    (sampled,) = Generator(model).generate([request("a", [1, 2, 3], most=20)])
    assert scored(model, [1, 2, 3], sampled) == pytest.approx(sampled.logprobs, abs=1e-5)


def test_reuse_across_turns_changes_nothing(model: Decoder) -> None:
    """A session that goes on from its cache samples what a fresh generator does from the same ids."""
    kept = Generator(model)
    prompts = {"a": (1, 2, 3), "b": (4, 5)}
    for turn in range(3):
        batch = [request(name, prompt, most=5, seed=turn) for name, prompt in prompts.items()]
        for one, here, there in zip(batch, kept.generate(batch), Generator(model).generate(batch), strict=True):
            assert_same(here, there)
            prompts[one.session] = (*one.prompt, *here.ids, 9, 10 + turn)


def test_a_rewritten_prompt_is_fed_anew(model: Decoder) -> None:
    """Only the common beginning is taken from the cache: a prompt that changed gives what it gives afresh."""
    kept = Generator(model)
    kept.generate([request("a", [1, 2, 3, 4, 5])])
    for prompt in ([1, 2, 9, 4, 5, 6], [1, 2], [8]):
        assert_same(kept.generate([request("a", prompt)])[0], Generator(model).generate([request("a", prompt)])[0])


def test_equal_prompts_are_independent(model: Decoder) -> None:
    """Requests with one prompt share its cost, not its fate: each follows its own seed and its own limit."""
    batch = [request(str(i), [1, 2, 3], most=3 + i, seed=i) for i in range(5)]
    together = Generator(model).generate(batch)
    assert len({sampled.ids[:3] for sampled in together}) > 1
    for one, sampled in zip(batch, together, strict=True):
        assert_same(sampled, Generator(model).generate([one])[0])


def test_equal_prompts_and_seeds_are_equal(model: Decoder) -> None:
    """Same prompt and same seed, same ids."""
    one, other = Generator(model).generate([request("a", [1, 2], seed=3), request("b", [1, 2], seed=3)])
    assert one.ids == other.ids


def test_greedy(model: Decoder) -> None:
    """At temperature 0 each id is the likeliest, whatever the seed, and its log-probability that at temperature 1."""
    batch = [request("a", [1, 2, 3], seed=1, temperature=0.0), request("b", [1, 2, 3], seed=2, temperature=0.0)]
    one, other = Generator(model).generate(batch)
    assert one == other
    ids = [1, 2, 3]
    for ident in one.ids:
        with torch.no_grad():
            assert int(model.logits(model(torch.tensor([ids]))[0, -1]).argmax()) == ident
        ids.append(ident)
    assert scored(model, [1, 2, 3], one) == pytest.approx(one.logprobs, abs=1e-4)


def test_samples_follow_the_distribution(model: Decoder) -> None:
    """Over many seeds, first ids occur as often as the tempered softmax says."""
    count, temperature = 4000, 2.0
    batch = [request(str(i), [1, 2, 3], most=1, seed=i, temperature=temperature) for i in range(count)]
    drawn = torch.tensor([sampled.ids[0] for sampled in Generator(model).generate(batch)])
    with torch.no_grad():
        expected = (model.logits(model(torch.tensor([[1, 2, 3]]))[0, -1]) / temperature).softmax(-1)
    observed = torch.bincount(drawn, minlength=len(expected)) / count
    # Five standard deviations of a share, and a little for shares near 0.
    assert bool(((observed - expected).abs() < 5 * (expected * (1 - expected) / count).sqrt() + 1e-3).all())


@pytest.mark.parametrize(
    "bad",
    [
        request("x", []),
        request("x", [1] * 41),
        request("x", [1], most=0),
        request("x", [40]),
        request("x", [-1]),
    ],
    ids=["empty", "too long", "no tokens", "unknown id", "negative id"],
)
def test_what_cannot_be_continued_is_refused(model: Decoder, bad: Request) -> None:
    """An empty or too long prompt, or an id outside the vocabulary, is refused before anything runs."""
    with pytest.raises(PolicyRefused):
        Generator(model).generate([bad])


def test_the_whole_context_can_be_used(model: Decoder) -> None:
    """A prompt and its sample may fill the context to the last place, beside rows that end far earlier."""
    batch = [request("a", [1] * 40, most=8), request("b", [2], most=47, seed=5)]
    for one, sampled in zip(batch, Generator(model).generate(batch), strict=True):
        assert scored(model, one.prompt, sampled) == pytest.approx(sampled.logprobs, abs=1e-4)


def test_broken_weights_are_an_error(model: Decoder) -> None:
    """A model whose logits are not finite samples nothing."""
    with torch.no_grad():
        model.norm.weight.fill_(float("nan"))
    with pytest.raises(PolicyError, match="not finite"):
        Generator(model).generate([request("a", [1])])


def test_new_weights_drop_the_caches(model: Decoder) -> None:
    """After `load`, samples carry the new version and come from the new weights alone."""
    kept = Generator(model)
    (first,) = kept.generate([request("a", [1, 2, 3])])
    fresh = Decoder(model.shape, seed=9)
    kept.load(fresh.state_dict(), 4)
    prompt = [1, 2, 3, *first.ids]
    (second,) = kept.generate([request("a", prompt)])
    assert second.version == 4
    assert_same(second, Generator(fresh, version=4).generate([request("a", prompt)])[0])


@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_rows_come_and_go(model: Decoder, max_rows: int) -> None:
    """With fewer rows than requests, those that end make place, and everybody gets what they get alone."""
    rng = random.Random(max_rows)
    batch = [request(str(i), [rng.randrange(40) for _ in range(1 + i % 7)], most=1 + i % 5, seed=i) for i in range(12)]
    generator = Generator(model, max_rows=max_rows)
    for one, sampled in zip(batch, generator.generate(batch), strict=True):
        assert_same(sampled, Generator(model).generate([one])[0])
    assert generator.running == 0


def test_a_prompt_that_is_running_is_not_fed_again(model: Decoder) -> None:
    """A request that begins like one under way takes over its cache, and samples what it samples alone."""
    generator = Generator(model)
    long = request("a", range(1, 20), most=6, seed=1)
    generator.begin([long])
    generator.step()
    fed: list[int] = []
    plain = model.step

    def counted(ids: torch.Tensor, cache: Cache, counts: torch.Tensor) -> torch.Tensor:
        fed.append(int(counts.sum()))
        return plain(ids, cache, counts)

    model.step = counted  # type: ignore[method-assign]
    late = request("b", [*range(1, 18), 30, 31], most=6, seed=2)
    (number,) = generator.begin([late])
    assert fed == [2]
    found: dict[int, Sampled] = {}
    while generator.running:
        found |= generator.step()
    del model.step
    assert_same(found[number], Generator(model).generate([late])[0])


def test_what_nobody_will_continue_is_not_kept(model: Decoder) -> None:
    """Only sessions that are open leave a cache behind."""

    async def scenario() -> list[str]:
        engine = LocalEngine(Generator(model))
        one = request("", [1], most=2)
        with engine.session("a"):
            await asyncio.gather(*(engine.sample(one.prompt, one.params, session=name) for name in "ab"))
            return list(engine.generator._held)

    assert asyncio.run(scenario()) == ["a"]


# --- the engine: requests that meet ---------------------------------------------------------------------------------


async def converse(engine: LocalEngine, name: str, turns: int, seed: int) -> list[Sampled]:
    prompt: tuple[int, ...] = (1, 2, 3 + seed % 3)
    said: list[Sampled] = []
    with engine.session(name):
        for turn in range(turns):
            await asyncio.sleep(0)
            one = request(name, prompt, most=4, seed=10 * seed + turn)
            said.append(await engine.sample(one.prompt, one.params, session=name))
            prompt = (*prompt, *said[-1].ids, 9)
    return said


async def talk(model: Decoder, order: Sequence[int], turns: Sequence[int]) -> dict[int, list[Sampled]]:
    engine = LocalEngine(Generator(model))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = {i: group.create_task(converse(engine, f"s{i}", turns[i], i)) for i in order}
    return {i: task.result() for i, task in tasks.items()}


def test_order_of_arrival_changes_nothing(model: Decoder) -> None:
    """The same sessions with the same seeds say exactly the same, in whatever order they came."""
    turns = [1, 3, 2, 3, 1, 2]
    first = asyncio.run(talk(model, range(6), turns))
    for seed in range(3):
        order = random.Random(seed).sample(range(6), 6)
        assert asyncio.run(talk(model, order, turns)) == first


def test_company_changes_nothing(model: Decoder) -> None:
    """A session says the same alone as among others, up to rounding of its log-probabilities."""
    together = asyncio.run(talk(model, range(5), [2] * 5))
    alone = asyncio.run(talk(model, [3], [2] * 5))
    for one, other in zip(together[3], alone[3], strict=True):
        assert_same(one, other)


class Watched(Generator):
    """A generator that remembers who met in each batch."""

    def __init__(self, model: Decoder) -> None:
        super().__init__(model)
        self.batches: list[list[str]] = []

    def generate(self, requests: Sequence[Request]) -> list[Sampled]:
        self.batches.append([one.session for one in requests])
        return super().generate(requests)


def test_a_batch_waits_for_every_open_session(model: Decoder) -> None:
    """Requests wait until all open sessions have one pending, and a session that closes is waited for no more."""

    async def scenario() -> list[list[str]]:
        generator = Watched(model)
        engine = LocalEngine(generator)
        one = request("", [1], most=2)
        async with asyncio.timeout(10):
            with engine.session("a"), engine.session("b"):
                first = asyncio.create_task(engine.sample(one.prompt, one.params, session="a"))
                await asyncio.sleep(0.02)
                assert not first.done()
                with engine.session("c"):
                    second = asyncio.create_task(engine.sample(one.prompt, one.params, session="b"))
                    await asyncio.sleep(0.02)
                    assert not second.done()
                await asyncio.gather(first, second)
        return generator.batches

    assert asyncio.run(scenario()) == [["a", "b"]]


async def converse_at_once(model: Decoder, names: Sequence[int], turns: int, *, max_rows: int) -> list[list[Sampled]]:
    """Conversations that come one after another into an engine that does not wait for anybody."""
    engine = LocalEngine(Generator(model, max_rows=max_rows), continuous=True)

    async def late(i: int) -> list[Sampled]:
        await asyncio.sleep(0.003 * i)
        return await converse(engine, f"s{i}", turns, i)

    async with asyncio.timeout(30):
        return list(await asyncio.gather(*(late(i) for i in names)))


@pytest.mark.parametrize("max_rows", [1, 3, 64])
def test_coming_and_going_changes_nothing(model: Decoder, max_rows: int) -> None:
    """Continuously batched, each conversation says what it says alone, whoever runs beside it and however many can."""
    together = asyncio.run(converse_at_once(model, range(7), 3, max_rows=max_rows))
    for i, said in enumerate(together):
        for one, other in zip(said, asyncio.run(talk(model, [i], [3] * 7))[i], strict=True):
            assert_same(one, other)


def test_nobody_is_waited_for(model: Decoder) -> None:
    """Continuously batched, a request is answered though other open sessions ask nothing."""

    async def scenario() -> Sampled:
        engine = LocalEngine(Generator(model), continuous=True)
        one = request("", [1], most=2)
        async with asyncio.timeout(10):
            with engine.session("a"), engine.session("absent"):
                return await engine.sample(one.prompt, one.params, session="a")

    assert_same(asyncio.run(scenario()), Generator(model).generate([request("", [1], most=2)])[0])


def test_new_weights_wait_for_what_runs(model: Decoder) -> None:
    """What began under old weights ends under them; what asks meanwhile is answered by the new ones."""
    fresh = sharper(Decoder(model.shape, seed=9))

    async def scenario() -> list[Sampled]:
        engine = LocalEngine(Generator(model), continuous=True)
        long, short = request("", [1, 2], most=30, seed=1), request("", [3], most=3, seed=2)
        async with asyncio.timeout(30):
            first = asyncio.create_task(engine.sample(long.prompt, long.params, session="a"))
            while not engine.generator.running:  # noqa: ASYNC110  nothing tells when a row has begun
                await asyncio.sleep(0)
            loading = asyncio.create_task(engine.load(fresh.state_dict(), 7))
            await asyncio.sleep(0)
            second = asyncio.create_task(engine.sample(short.prompt, short.params, session="b"))
            await loading
            return [await first, await second]

    old = Decoder(model.shape)
    old.load_state_dict(model.state_dict())
    before, after = asyncio.run(scenario())
    assert (before.version, after.version) == (0, 7)
    assert_same(before, Generator(old).generate([request("", [1, 2], most=30, seed=1)])[0])
    assert_same(after, Generator(fresh, version=7).generate([request("", [3], most=3, seed=2)])[0])


def sharper(model: Decoder) -> Decoder:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8.0)
    return model


def test_one_bad_request_fails_alone(model: Decoder) -> None:
    """A prompt that cannot be continued is refused, and the others of its batch are answered."""

    async def scenario() -> list[Sampled | BaseException]:
        engine = LocalEngine(Generator(model))
        good, bad = request("", [1], most=2), request("", [99], most=2)

        async def ask(name: str, one: Request) -> Sampled:
            with engine.session(name):
                return await engine.sample(one.prompt, one.params, session=name)

        async with asyncio.timeout(10):
            asked = [ask("a", good), ask("b", bad), ask("c", good)]
            return await asyncio.gather(*asked, return_exceptions=True)

    first, refused, third = asyncio.run(scenario())
    assert isinstance(refused, PolicyRefused)
    assert isinstance(first, Sampled)
    assert first == third


class Broken(Generator):
    """A generator with a bug in it."""

    def step(self) -> dict[int, Sampled]:
        raise RuntimeError("a bug")


@pytest.mark.parametrize("continuous", [False, True])
def test_a_failing_batch_answers_all(model: Decoder, continuous: bool) -> None:
    """Whatever goes wrong in a batch reaches each of its requests; none waits for ever."""

    async def scenario() -> list[Sampled | BaseException]:
        engine = LocalEngine(Broken(model), continuous=continuous)
        one = request("", [1])
        async with asyncio.timeout(10):
            return await asyncio.gather(
                *(engine.sample(one.prompt, one.params, session=name) for name in "ab"), return_exceptions=True
            )

    results = asyncio.run(scenario())
    assert [type(result) for result in results] == [RuntimeError, RuntimeError]


def test_a_session_asks_once_at_a_time(model: Decoder) -> None:
    """A second request of a session whose first is unanswered is refused, and the first is answered."""

    async def scenario() -> Sampled:
        engine = LocalEngine(Generator(model))
        one = request("", [1], most=2)
        async with asyncio.timeout(10):
            with engine.session("a"), engine.session("b"):
                first = asyncio.create_task(engine.sample(one.prompt, one.params, session="a"))
                await asyncio.sleep(0)
                with pytest.raises(PolicyRefused, match="'a'"):
                    await engine.sample(one.prompt, one.params, session="a")
                await engine.sample(one.prompt, one.params, session="b")
                return await first

    assert len(asyncio.run(scenario()).ids) >= 1


def test_a_request_that_is_given_up(model: Decoder) -> None:
    """A cancelled request neither holds up the others nor blocks its session's next."""

    async def scenario() -> Sampled:
        engine = LocalEngine(Generator(model))
        one = request("", [1], most=2)
        async with asyncio.timeout(10):
            with engine.session("a"), engine.session("b"):
                given_up = asyncio.create_task(engine.sample(one.prompt, one.params, session="a"))
                await asyncio.sleep(0)
                given_up.cancel()
                await asyncio.sleep(0)
                other = asyncio.create_task(engine.sample(one.prompt, one.params, session="b"))
                again = asyncio.create_task(engine.sample(one.prompt, one.params, session="a"))
                await other
                return await again

    assert len(asyncio.run(scenario()).ids) >= 1
