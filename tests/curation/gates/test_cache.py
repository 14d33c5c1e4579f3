"""Kept results are believed only where they are what was written, and what was decided on."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.curation.gates.cache import FILE, Cache, decided_on
from practicum.curation.gates.contract import Case, Settings, Surroundings
from practicum.curation.gates.gold import GATE as GOLD
from practicum.curation.gates.noop import GATE as NOOP
from practicum.curation.gates.schema import GATE as SCHEMA
from practicum.curation.ledger import Decided, Ledger
from practicum.errors import StoreError
from practicum.records.assessment import GateResult
from practicum.records.tree import digest_of
from practicum.trajectories.chain import ORIGIN

if TYPE_CHECKING:
    from curation.gates.conftest import Shop


class _Verifier:
    version = "1"


class _Shop:
    verifier = _Verifier()


class _Bench:
    workshop = _Shop()

    @staticmethod
    def layer_of(layer: object) -> str:
        return f"digest of {layer}"


@pytest.fixture
def case(shop: Shop) -> Case:
    task = shop()
    return Case(task, _Bench(), Settings(), Surroundings([task]))  # type: ignore[arg-type]


def fill(folder: Path, case: Case) -> str:
    """Keep three results, of which the second failed; gives the head."""
    cache = Cache(folder)
    cache.put(case, SCHEMA, GateResult("schema", True, "well formed", {"files": 1}))
    cache.put(case, GOLD, GateResult("gold", False, "the gold does not pass", {"passed": 0}))
    cache.put(case, NOOP, GateResult("noop", True, "doing nothing fails", {"failed": 1}))
    assert cache.head
    return cache.head


def alter(folder: Path) -> None:
    path = folder / FILE
    path.write_bytes(path.read_bytes().replace(b'"passed": false', b'"passed": true'))


def found(cache: Cache, case: Case) -> list[bool | None]:
    results = (cache.get(case, gate) for gate in (SCHEMA, GOLD, NOOP))
    return [None if result is None else result.passed for result in results]


def test_what_was_kept_is_used(tmp_path: Path, case: Case) -> None:
    """An untouched file gives everything back, and reaches what was decided on."""
    head = fill(tmp_path, case)
    for reaches in (head, ORIGIN, None):
        again = Cache(tmp_path, reaches=reaches)
        assert found(again, case) == [True, False, True]
        assert (again.altered, again.reached, again.head) == (0, True, head)


def test_an_altered_result_is_not_used(tmp_path: Path, case: Case) -> None:
    """With it goes what follows, since that hangs on it; what stands before it stays. The file is whole afterwards."""
    fill(tmp_path, case)
    alter(tmp_path)
    again = Cache(tmp_path)
    assert found(again, case) == [True, None, None]
    assert again.altered == 2
    again.put(case, GOLD, GateResult("gold", False, "the gold does not pass", {"passed": 0}))
    assert found(Cache(tmp_path), case) == [True, False, None]


def test_an_altered_result_with_its_digest_is_not_used(tmp_path: Path, case: Case) -> None:
    """The line after it shows that it was altered, whatever it says of itself."""
    fill(tmp_path, case)
    alter(tmp_path)
    path = tmp_path / FILE
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    row = {key: value for key, value in lines[1]["data"].items() if key != "digest"}
    lines[1]["data"]["digest"] = digest_of(row)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = Cache(tmp_path)
    assert found(again, case) == [True, None, None]
    assert again.altered == 2


def test_a_chain_made_anew_is_not_what_was_decided_on(tmp_path: Path, case: Case) -> None:
    """Whoever alters a result and works out all digests again is found out by the head that the ledger holds."""
    decided = fill(tmp_path / "decided", case)
    cache = Cache(tmp_path / "forged")
    for gate in (SCHEMA, GOLD, NOOP):
        cache.put(case, gate, GateResult(gate.name, True, "of course", {"sure": 1}))
    assert found(Cache(tmp_path / "forged"), case) == [True, True, True]
    again = Cache(tmp_path / "forged", reaches=decided)
    assert found(again, case) == [None, None, None]
    assert (again.altered, again.reached, again.head) == (3, False, ORIGIN)


def test_the_ledger_names_the_head(tmp_path: Path) -> None:
    """The newest decision that names one counts."""
    ledger = tmp_path / "ledger.jsonl"
    assert decided_on(ledger) is None
    for head in ("a", "b", None):
        evidence: dict[str, Any] = {"checks": head} if head else {}
        Ledger(ledger).record([Decided("gate:all", "t", "0" * 64, "admitted", str(head), evidence)])
    assert decided_on(ledger) == "b"


def test_two_checks_may_keep_results_in_one_file(tmp_path: Path, case: Case) -> None:
    """What another process has added meanwhile is followed, not broken."""
    one, two = Cache(tmp_path), Cache(tmp_path)
    one.put(case, SCHEMA, GateResult("schema", True, "well formed", {"files": 1}))
    two.put(case, GOLD, GateResult("gold", True, "passes", {"passed": 1}))
    one.put(case, NOOP, GateResult("noop", True, "fails", {"failed": 1}))
    assert found(Cache(tmp_path), case) == [True, True, True]


def test_files_of_another_version_are_begun_anew(tmp_path: Path, case: Case) -> None:
    """Lines that are in no chain are as good as altered."""
    (tmp_path / FILE).write_text(json.dumps({"schema": 1, "key": "k", "gate": "gold", "passed": True}) + "\n")
    assert Cache(tmp_path).altered == 1
    fill(tmp_path, case)
    assert found(Cache(tmp_path), case) == [True, False, True]


def test_a_full_disk_says_how_to_go_on(tmp_path: Path, case: Case) -> None:
    """The advice fits the command: there is nothing to resume, it is run again. What was kept before stays."""
    fill(tmp_path, case)
    cache = Cache(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / FILE).stat().st_size + 10, before[1]))
    try:
        with pytest.raises(StoreError, match="no room") as caught:
            cache.put(case, GOLD, GateResult("gold", True, "passes", {"passed": 1}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "run it again" in str(caught.value.fix)
    assert "--resume" not in str(caught.value.fix)
    assert found(Cache(tmp_path), case) == [True, False, True]
