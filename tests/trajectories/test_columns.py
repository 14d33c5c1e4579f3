"""Trajectories survive being stored, whatever they hold."""

from __future__ import annotations

import dataclasses
import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import StoreError
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.tree import Change, File
from practicum.records.verdict import Finding, Signal, Status, Submission, Verdict
from practicum.trajectories.columns import from_table, pack, to_table, unpack

texts = st.text(st.one_of(st.characters(), st.sampled_from("\0\ufdd0\ud800\udfff\ufffd0a")), max_size=12)
floats = st.floats(allow_nan=False)
ids = st.integers(0, 2**31)
numbers = st.dictionaries(texts, floats, max_size=3)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), floats, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=4,
)
findings = st.lists(st.builds(Finding, texts, texts, texts, st.sampled_from(["note", "tamper"])), max_size=2).map(tuple)
files = st.builds(File, st.binary(max_size=12), st.sampled_from([0o644, 0o755, 0]))
changes = st.builds(Change, texts, st.sampled_from(["add", "edit", "delete"]), st.none() | files)
submissions = st.builds(Submission, st.lists(changes, max_size=2).map(tuple), findings)
signals = st.builds(Signal, texts, floats, floats, floats)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    statuses: list[Status] = ["valid", "invalid", "unscorable"]
    status = draw(st.sampled_from(statuses))
    valid = status == "valid"
    return Verdict(
        status=status,
        outcome=draw(st.sampled_from(["passed", "partial", "failed", "build_failed", "tampered"])) if valid else None,
        reward=draw(floats) if valid else None,
        tests=draw(st.dictionaries(texts, st.sampled_from(["passed", "failed", "missing"]), max_size=2)),
        signals=tuple(draw(st.lists(signals, max_size=2))),
        findings=draw(findings),
        evidence=draw(st.dictionaries(texts, json_values, max_size=2)),
        reason=draw(st.none() | texts),
        verifier_version=draw(texts),
    )


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    rows: list[Turn] = []
    seen: tuple[int, ...] = ()
    for index in range(draw(st.integers(0, 3))):
        start = draw(st.sampled_from([seen, seen[:-1], ()]))
        prompt = start + tuple(draw(st.lists(ids, max_size=3)))
        sampled = tuple(draw(st.lists(ids, max_size=3)))
        rows.append(
            Turn(
                index=index,
                prompt_ids=prompt,
                sampled_ids=sampled,
                logprobs=tuple(draw(floats) for _ in sampled),
                policy_version=draw(st.integers(0, 9)),
                stop_reason=draw(st.sampled_from(["stop", "length"])),
                text=draw(texts),
                action=Action(draw(texts), draw(st.dictionaries(texts, texts, max_size=2))),
                observation=draw(texts),
                snapshot_before=draw(texts),
                snapshot_after=draw(texts),
                timing=draw(numbers),
                failed=draw(st.none() | st.booleans()),
            )
        )
        seen = prompt + sampled
    return tuple(rows)


trajectories = st.builds(
    Trajectory,
    id=texts,
    group_id=texts,
    task_id=texts,
    task_digest=texts,
    turns=turns(),
    stop_reason=st.sampled_from(["submitted", "turn_limit", "fault", "cancelled"]),
    fault=st.none() | st.builds(Fault, texts, texts),
    submission=st.none() | submissions,
    verdict=st.none() | verdicts(),
    cost=numbers,
    seed=st.integers(-(2**63), 2**63 - 1),
)


def through_parquet(batch: list[Trajectory]) -> list[Trajectory]:
    buffer = io.BytesIO()
    pq.write_table(to_table(batch, phase="rl", update=3), buffer)
    buffer.seek(0)
    return from_table(pq.read_table(buffer))


@settings(max_examples=60, deadline=None)
@given(st.lists(trajectories, max_size=3))
def test_round_trip(batch: list[Trajectory]) -> None:
    """What is stored reads back equal: NUL, surrogates, binary files, infinities and all."""
    assert through_parquet(batch) == batch


@given(texts)
def test_packed_text_is_utf8_and_comes_back(text: str) -> None:
    """Any string packs into UTF-8 without loss, and text without surrogates is stored as it is."""
    packed = pack(text)
    assert unpack(packed) == text
    packed.encode()
    if not any(0xD800 <= ord(c) <= 0xDFFF or c == "\ufdd0" for c in text):
        assert packed == text


def example() -> Trajectory:
    first = Turn(0, (1, 2), (3, 4), (-0.1, -1e-300), 5, "stop", "", Action("bash"), "", "", "")
    second = dataclasses.replace(first, index=1, prompt_ids=(1, 2, 3, 4, 9), policy_version=4)
    return Trajectory("t", "g", "task", "d", (first, second), "submitted")


def test_extending_prompts_are_stored_as_suffixes() -> None:
    """A prompt that extends the turn before costs only what it adds."""
    rows = to_table([example()], phase="rl", update=0).to_pylist()[0]["turns"]
    assert [(row["prompt_kept"], row["prompt_suffix"]) for row in rows] == [(0, [1, 2]), (4, [9])]


def test_what_an_older_file_does_not_say_is_unknown() -> None:
    """Files without the column that tells failed actions are read; whether theirs failed is not made up."""
    turn = dataclasses.replace(example().turns[0], failed=True)
    table = to_table([dataclasses.replace(example(), turns=(turn,))], phase="rl", update=0)
    rows = table.to_pylist()
    for row in rows:
        for each in row["turns"]:
            del each["failed"]
    [older] = from_table(pa.Table.from_pylist(rows))
    assert older.turns == (dataclasses.replace(turn, failed=None),)


def test_flat_columns_answer_the_common_questions() -> None:
    """The columns people filter on are there without opening a turn."""
    faulted = dataclasses.replace(
        example(), fault=Fault("SandboxDied", "gone"), verdict=Verdict("valid", "passed", 1.0), seed=7
    )
    row = to_table([faulted], phase="rl", update=3).to_pylist()[0]
    expected = {
        "phase": "rl",
        "update": 3,
        "fault_kind": "SandboxDied",
        "status": "valid",
        "outcome": "passed",
        "reward": None,  # masked: an infrastructure fault is never a reward
        "n_turns": 2,
        "n_tokens": 4,
        "policy_version": 4,
        "seed": 7,
    }
    assert {name: row[name] for name in expected} == expected


def test_log_probabilities_keep_their_bits() -> None:
    """Log-probabilities come back bit for bit, not-a-number and negative zero among them."""
    odd = (math.nan, -0.0, 5e-324, -1.0000000000000002)
    turn = dataclasses.replace(example().turns[0], sampled_ids=(1, 2, 3, 4), logprobs=odd)
    [back] = through_parquet([dataclasses.replace(example(), turns=(turn,))])
    assert [x.hex() for x in back.turns[0].logprobs] == [x.hex() for x in odd]


def test_what_no_column_can_hold_is_refused() -> None:
    """A seed beyond 64 bits and evidence that is no JSON are a `StoreError` that says so."""
    with pytest.raises(StoreError, match="cannot be stored"):
        to_table([dataclasses.replace(example(), seed=2**64)], phase="rl", update=0)
    verdict = Verdict("valid", "passed", 1.0, evidence={"bytes": b""})
    with pytest.raises(StoreError, match="evidence in the verdict of t is not JSON"):
        to_table([dataclasses.replace(example(), verdict=verdict)], phase="rl", update=0)
