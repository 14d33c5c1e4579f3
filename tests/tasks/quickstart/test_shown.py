"""Tasks of one turn: what is to repair stands in the instruction."""

from __future__ import annotations

from practicum.policies.demonstrator import demonstration
from practicum.policies.protocol import EditProblem, apply_edit, parse_action
from practicum.tasks.quickstart import FamilySpec, generate_family

SPEC = FamilySpec(seed=2, train=30, validation=3, test=5, shown=True)


def test_the_instruction_shows_the_file() -> None:
    """Each instruction ends with the file to repair; all else is as where it must be looked for."""
    plain = generate_family(FamilySpec(seed=2, train=30, validation=3, test=5))
    for task, hidden in zip(generate_family(SPEC), plain, strict=True):
        source = task.files[task.provenance["edit"]["path"]].data.decode()
        assert task.instruction.endswith(f":\n{source}")
        assert (task.files, task.verification, task.solution) == (hidden.files, hidden.verification, hidden.solution)


def test_a_demonstration_is_one_action() -> None:
    """It is the repair, a mistaken edit that applies, or giving up."""
    tools = set()
    for task in generate_family(SPEC):
        path = task.provenance["edit"]["path"]
        (text,) = demonstration(task, seed=1, correct_rate=1.0)
        assert apply_edit(task.files[path].data, parse_action(text).arguments) == task.solution["gold.py"].data
        (text,) = demonstration(task, seed=1, correct_rate=0.01)
        action = parse_action(text)
        tools.add(action.tool)
        if action.tool == "edit":
            assert not isinstance(apply_edit(task.files[path].data, action.arguments), EditProblem)
    assert tools == {"edit", "submit"}
