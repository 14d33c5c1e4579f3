"""Which tasks a batch holds, and how that follows outcomes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.config.sections import CurriculumConfig
from practicum.tasks.sampler import (
    PATIENCE,
    Curriculum,
    Outcome,
    Place,
    SamplerState,
    choose,
    observe,
    standings,
    value,
    withdraw,
)

GROUP = 8
STRATA = ("easy", "hard", "medium")
NAMES = [f"t{i:02d}" for i in range(18)]
PLACES = {name: Place(STRATA[i % 3], f"kind-{i % 4}") for i, name in enumerate(NAMES)}

few = settings(deadline=None, max_examples=25)  # each example is a whole run

plans = st.builds(
    Curriculum,
    st.just(PLACES),
    size=st.integers(1, 9),
    seed=st.integers(0, 3),
    rules=st.builds(
        CurriculumConfig,
        floor=st.sampled_from([0.0, 0.1, 0.25]),
        solved_after=st.integers(1, 3),
        failed_after=st.integers(1, 3),
        recheck=st.sampled_from([0.0, 0.05, 0.2]),
        look_again=st.integers(1, 8),
        discount=st.sampled_from([0.9, 0.97, 1.0]),
    ),
)
Skill = Callable[[str, int], float]


def rates(fixed: Mapping[str, float]) -> Skill:
    return lambda task, _: fixed[task]


skills = st.fixed_dictionaries({name: st.sampled_from([0.0, 0.5, 1.0]) for name in NAMES}).map(rates)


def attempt(plan: Curriculum, task: str, batch: int, rate: float) -> Outcome:
    rng = random.Random(f"{plan.seed}-{task}-{batch}")
    passed = sum(rng.random() < rate for _ in range(GROUP))
    return Outcome(task, passed, GROUP, passed in (0, GROUP))


def play(
    plan: Curriculum, skill: Skill, batches: int, *, lag: int = 0, state: SamplerState | None = None
) -> tuple[SamplerState, list[list[str]]]:
    """A run of `batches`, in which the outcomes of a batch are known `lag` batches later."""
    state = state or SamplerState()
    first, drawn = state.batch, []
    for batch in range(first, first + batches):
        state, chosen = choose(plan, state)
        drawn.append(chosen)
        if (known := batch - lag) in state.chosen:
            outcomes = [attempt(plan, task, known, skill(task, known)) for task in set(state.chosen[known])]
            state = observe(plan, state, known, outcomes)
    return state, drawn


@given(plan=plans, skill=skills)
@few
def test_a_batch_repeats_no_task_and_is_never_empty(plan: Curriculum, skill: Skill) -> None:
    """As long as there are enough tasks a batch holds each at most once, at most its size, and at least one."""
    for chosen in play(plan, skill, 12)[1]:
        assert 1 <= len(chosen) <= plan.size
        assert len(set(chosen)) == len(chosen)


@given(plan=plans, skill=skills, lag=st.integers(0, 2), at=st.integers(0, 9))
@few
def test_a_resumed_run_chooses_alike(plan: Curriculum, skill: Skill, lag: int, at: int) -> None:
    """A state that went through JSON leads to the same choices and to the same state, bit for bit."""
    whole, drawn = play(plan, skill, 14, lag=lag)
    half, before = play(plan, skill, at, lag=lag)
    again = SamplerState.from_json(json.loads(json.dumps(half.to_json())))
    assert again == half
    rest, after = play(plan, skill, 14 - at, lag=lag, state=again)
    assert before + after == drawn
    assert rest == whole


@given(plan=plans, skill=skills)
@few
def test_unknown_ids_change_nothing(plan: Curriculum, skill: Skill) -> None:
    """Outcomes of tasks that the curriculum does not have are ignored, and so are those without a judged attempt."""
    state, _ = play(plan, skill, 3)
    strange = [Outcome("elsewhere", 3, 8, False), Outcome(NAMES[0], 0, 0, True)]
    known = observe(plan, state, 2, [attempt(plan, NAMES[1], 2, 0.5)])
    assert observe(plan, state, 2, [attempt(plan, NAMES[1], 2, 0.5), *strange]) == known


@given(plan=plans, skill=skills, gone=st.sets(st.sampled_from(NAMES), min_size=1, max_size=17))
@few
def test_withdrawn_tasks_are_not_drawn(plan: Curriculum, skill: Skill, gone: set[str]) -> None:
    """From the next batch on a withdrawn task is drawn no more; with all of them gone nothing is drawn."""
    state, _ = play(plan, skill, 4)
    _, drawn = play(plan, skill, 8, state=withdraw(state, gone))
    assert gone.isdisjoint(task for chosen in drawn for task in chosen)
    assert choose(plan, withdraw(state, NAMES))[1] == []


@given(plan=plans, middling=st.sampled_from([0.3, 0.5, 0.7]))
@few
def test_floors_hold(plan: Curriculum, middling: float) -> None:
    """Every stratum that has tasks which can teach gets its share of the places, to one place."""
    plan = replace(plan, rules=plan.rules.model_copy(update={"solved_after": 99, "failed_after": 99}))
    state = SamplerState()
    got: Counter[str] = Counter()
    for batch in range(1, 41):
        # Easy tasks are always solved, so that but for the floor they would hardly be drawn.
        state, chosen = choose(plan, state)
        got.update(PLACES[task].stratum for task in chosen)
        skill = {"easy": 1.0, "medium": middling, "hard": 0.0}
        state = observe(plan, state, batch - 1, [attempt(plan, t, batch, skill[PLACES[t].stratum]) for t in chosen])
        for stratum in STRATA:
            assert got[stratum] > plan.rules.floor * plan.size * batch - 1 - 1e-6


@given(plan=plans, skill=skills)
@few
def test_no_task_starves(plan: Curriculum, skill: Skill) -> None:
    """No active task waits for longer than the patience, plus the time that others which wait as long need."""
    state = SamplerState()
    rules = plan.rules.model_copy(update={"solved_after": 99, "failed_after": 99})
    plan = replace(plan, rules=rules)
    last = dict.fromkeys(NAMES, -1)
    rounds = -(-len(NAMES) // plan.size)
    for batch in range(12 * rounds):
        state, chosen = choose(plan, state)
        # Floors come first, and may take up to three quarters of the places.
        assert all(batch - seen <= (PATIENCE + 5) * rounds + 5 for seen in last.values())
        last |= dict.fromkeys(chosen, batch)
        state = observe(plan, state, batch, [attempt(plan, task, batch, skill(task, batch)) for task in set(chosen)])


@given(plan=plans, skill=skills)
@few
def test_what_is_set_aside_costs_a_bounded_share(plan: Curriculum, skill: Skill) -> None:
    """Looking again at retired and parked tasks takes no more than its share of the places, to one place."""
    state, spent = SamplerState(), 0
    for batch in range(40):
        aside = {task for task, belief in state.beliefs.items() if belief.standing != "active"}
        some_active = len(aside) < len(NAMES)
        state, chosen = choose(plan, state)
        spent += sum(task in aside for task in chosen) if some_active else 0
        assert spent <= plan.rules.recheck * plan.size * (batch + 1) + 1 + 1e-6
        state = observe(plan, state, batch, [attempt(plan, task, batch, skill(task, batch)) for task in set(chosen)])


def test_what_is_solved_retires_and_what_is_unlearnt_comes_back() -> None:
    """Tasks that always pass stop costing attempts but for rare looks; one that stops passing is active again."""
    plan = Curriculum(PLACES, size=6)
    skill = rates({name: 1.0 if i < 9 else 0.5 for i, name in enumerate(NAMES)})
    state, _ = play(plan, skill, 80)
    assert standings(plan, state)["retired"] == 9
    _, drawn = play(plan, skill, 40, state=state)
    share = sum(name in NAMES[:9] for chosen in drawn for name in chosen) / sum(map(len, drawn))
    assert 0 < share <= plan.rules.recheck + 0.01
    forgotten, _ = play(plan, lambda task, _: 0.5, 120, state=state)
    assert standings(plan, forgotten)["retired"] == 0


def test_the_impossible_is_parked_and_probed_sooner_once_the_policy_is_better() -> None:
    """Tasks that never pass are parked, not dropped; a better policy has them looked at sooner."""
    plan = Curriculum(PLACES, size=6, rules=CurriculumConfig(look_again=40))
    hopeless = NAMES[:6]

    def skill(others: float) -> Skill:
        return lambda task, _: 0.0 if task in hopeless else others

    parked, _ = play(plan, skill(0.3), 100)
    assert standings(plan, parked)["parked"] == 6
    parked = replace(parked, beliefs={**parked.beliefs, **{n: replace(parked.beliefs[n], drawn=99) for n in hopeless}})

    def probes(others: float, batches: int) -> int:
        return sum(
            task in hopeless for chosen in play(plan, skill(others), batches, state=parked)[1] for task in chosen
        )

    assert probes(0.3, 30) == 0
    assert probes(0.7, 30) >= 4
    assert probes(0.3, 60) > 0


def test_partial_progress_is_not_parked() -> None:
    """A task of which no attempt passes, but whose rewards differ, still teaches: it stays active."""
    plan = Curriculum({"a": Place(), "b": Place()}, size=2)
    state = SamplerState()
    for batch in range(12):
        state, _ = choose(plan, state)
        state = observe(plan, state, batch, [Outcome("a", 0, GROUP, False), Outcome("b", 0, GROUP, True)])
    assert state.beliefs["a"].standing == "active"
    assert state.beliefs["b"].standing == "parked"


def test_value_follows_what_a_group_can_teach() -> None:
    """Mixed outcomes count most, then the unknown, then what is nearly solved; the kind informs about the unseen."""
    plan = Curriculum(
        {name: Place("", kind) for name, kind in [("mixed", "m"), ("new", "n"), ("done", "d"), ("kin", "d")]}, 2
    )
    seen = [Outcome("mixed", 4, GROUP, False), Outcome("done", GROUP, GROUP, True)]
    state = observe(plan, SamplerState(), 0, seen)
    mixed, new, done, kin = (value(plan, state, task) for task in ("mixed", "new", "done", "kin"))
    assert mixed > new > done
    assert new > kin > 0
    later = replace(state, batch=200)
    assert abs(value(plan, later, "done") - new) < 0.01


def test_a_small_taskset_fills_a_batch() -> None:
    """With fewer tasks than places, tasks come round again."""
    assert Counter(choose(Curriculum({"a": Place(), "b": Place()}, 5), SamplerState())[1]).total() == 5


def test_fewer_attempts_are_spent_where_nothing_can_be_learnt() -> None:
    """Beside drawing all alike, less than half as many groups have one outcome, when half of the tasks are settled."""
    fixed = {name: (0.5, 1.0, 0.3, 0.0)[i % 4] for i, name in enumerate(NAMES)}

    def wasted(plan: Curriculum) -> float:
        _, drawn = play(plan, rates(fixed), 100)
        groups = [attempt(plan, task, batch, fixed[task]) for batch, chosen in enumerate(drawn) for task in chosen]
        return sum(group.equal for group in groups) / len(groups)

    alike = CurriculumConfig(explore=1.0, floor=0.0, solved_after=99, failed_after=99)
    assert wasted(Curriculum(PLACES, 6)) < 0.5 * wasted(Curriculum(PLACES, 6, rules=alike))
