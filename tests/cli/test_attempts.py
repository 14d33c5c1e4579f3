"""`practicum rollout`, `verify` and `eval` on the template task, in real boxes."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.cli.template import template_task
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli
    from conftest import ModelEndpoint

KEYS = [
    *("task", "status", "outcome", "reward", "tests", "signals", "findings", "evidence", "reason"),
    *("verifier_version", "fault"),
]
FIX = """\
--- a/stats.py
+++ b/stats.py
@@ -2,7 +2,9 @@


 def mean(values):
-    return sum(values) / (len(values) + 1)
+    if not values:
+        raise ValueError
+    return sum(values) / len(values)


 def largest(values):
"""
HALF = "sed -i 's/ + 1)/)/' stats.py\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The template task on disk."""
    save_task(template_task("mine"), tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize(
    ("agent", "code", "outcome", "reward"),
    [("oracle", 0, "passed", 1.0), ("noop", 1, "failed", -0.2), ("script:half.sh", 1, "partial", 0.55)],
)
def test_rollout(cli: Cli, task: Path, agent: str, code: int, outcome: str, reward: float) -> None:
    """The verdict is the record, and the exit code says what was decided."""
    (task.parent / "half.sh").write_text(HALF)
    done = cli("rollout", task, "--agent", agent, "--json")
    assert done.code == code, done.err
    assert list(done.document) == [*KEYS, "turns"]
    assert all(set(turn) == {"text", "observation"} for turn in done.document["turns"])
    assert (done.document["status"], done.document["outcome"]) == ("valid", outcome)
    assert done.document["reward"] == pytest.approx(reward)
    assert done.document["fault"] is None
    assert set(done.document["tests"]) == {
        *template_task("mine").verification.fail_to_pass,
        "test_frozen.py::test_largest",
    }


def test_rollout_for_people(cli: Cli, task: Path) -> None:
    """Without --json a person sees the outcome, a mark for each test, why it failed and the diff."""
    (task.parent / "half.sh").write_text(HALF)
    done = cli("rollout", task, "--agent", "script:half.sh")
    assert "mine: partial, reward +0.55" in done.out
    assert "✓ test_frozen.py::test_mean[values1-5]" in done.out
    assert "✗ test_frozen.py::test_mean_of_nothing" in done.out
    assert "ZeroDivisionError" in done.out
    assert "+    return sum(values) / (len(values))" in done.out


def test_rollout_tampering(cli: Cli, task: Path) -> None:
    """Changing a visible test is tampering: −1, exit code 1."""
    (task.parent / "cheat.sh").write_text("echo 'def test_mean_of_two(): pass' > test_visible.py\n")
    done = cli("rollout", task, "--agent", "script:cheat.sh", "--json")
    assert done.code == 1
    assert (done.document["outcome"], done.document["reward"]) == ("tampered", -1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agent", "clever"], "'clever' is no policy"),
        (["--agent", "script:none.sh"], "no script 'none.sh'"),
        (["--agent", "policy"], "--policy go together"),
        (["--agent", "http://[::1"], "is not an http address"),
        (["--agent", "http://127.0.0.1:99999/"], "is not an http address"),
        (["--agent", "noop", "--model", "m"], "--model goes with an http address"),
    ],
    ids=str,
)
def test_rollout_bad_agent(cli: Cli, task: Path, arguments: list[str], message: str) -> None:
    """An agent that cannot be had, or an option it would ignore, is refused before any box is made."""
    done = cli("rollout", task, *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    "script",
    [b"", b"  \n", b"echo '</bash>'\n", b"caf\xe9\n", b"a\0b\n", b"x" * 200_000],
    ids=["empty", "blank", "closing tag", "not UTF-8", "NUL", "too long"],
)
def test_rollout_unusable_script(cli: Cli, task: Path, script: bytes) -> None:
    """A script that the action protocol cannot carry is bad input, named by its file."""
    (task.parent / "odd.sh").write_bytes(script)
    done = cli("rollout", task, "--agent", "script:odd.sh")
    assert done.code == 2
    assert done.err.startswith("error: odd.sh cannot be used as a script: ")
    assert len(done.err) < 1000


def test_verify(cli: Cli, task: Path) -> None:
    """A patch and the workspace it leads to get the same verdict; judged twice, the verdicts agree."""
    (task.parent / "fix.diff").write_text(FIX)
    by_patch = cli("verify", task, "--patch", "fix.diff", "--repeat", "2", "--json")
    assert by_patch.code == 0, by_patch.err
    assert list(by_patch.document) == [*KEYS, "repeat"]
    assert by_patch.document["repeat"] == {"k": 2, "outcomes": ["passed", "passed"], "agree": True}
    work = task.parent / "work"
    work.mkdir()
    for path in (task / "environment/workspace").iterdir():
        (work / path.name).write_bytes(path.read_bytes())
    (work / "stats.py").write_text("def mean(v):\n    return sum(v) / len(v)\n\n\ndef largest(v):\n    return max(v)\n")
    (work / "link").symlink_to("/etc/passwd")
    by_folder = cli("verify", task, "--workspace", work, "--json")
    assert by_folder.code == 1
    assert by_folder.document["outcome"] == "partial"
    assert [finding["path"] for finding in by_folder.document["findings"]] == ["link"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of --patch and --workspace"),
        (["--patch", "none.diff"], "none.diff"),
        (["--patch", "bad.diff"], "stats.py"),
        (["--workspace", "nowhere"], "nowhere is not a folder"),
    ],
    ids=str,
)
def test_verify_bad_input(cli: Cli, task: Path, arguments: list[str], message: str) -> None:
    """A submission that cannot be read or does not apply is bad input, with its place."""
    (task.parent / "bad.diff").write_text(FIX.replace("def mean", "def median"))
    done = cli("verify", task, *arguments, "--json")
    assert done.code == 2
    assert message in done.document["error"]["message"]
    assert "Traceback" not in done.err


def test_eval(cli: Cli, task: Path) -> None:
    """`eval` counts what was judged, with an interval; a policy that fails is a result, not an error."""
    done = cli("eval", task, "--policy", "oracle", "--samples", "2", "--json")
    assert done.code == 0, done.err
    keys = ["tasks", "samples", "passed", "rate", "low", "high", "unscorable", "invalid", "reward"]
    assert list(done.document) == keys
    assert done.document["reward"] == 1.0
    assert (done.document["tasks"], done.document["samples"], done.document["passed"]) == (1, 2, 2)
    noop = cli("eval", task, "--policy", "noop")
    assert noop.code == 0
    assert "0 of 1 attempts at 1 tasks passed: 0.0%" in noop.out


def test_a_judge_of_ones_own(cli: Cli, task: Path, model_endpoint: ModelEndpoint) -> None:
    """`--judge` shapes a pass in `rollout`, `verify` and `eval`; what a patch alone cannot tell is named as missing."""
    (task.parent / "fix.diff").write_text(FIX)
    signals = '\n[practicum.reward]\nband = 0.2\nsignals = ["judge", "turns"]\n'
    (task / "task.toml").write_text((task / "task.toml").read_text() + signals)
    judge = ["--judge", model_endpoint.url]
    rolled = cli("rollout", task, "--agent", "oracle", *judge, "--json").document
    assert rolled["reward"] == pytest.approx(1 - 0.2 * (1 - (0.5 * 0.5 + 1) / 1.5))
    verified = cli("verify", task, "--patch", "fix.diff", *judge)
    assert "signal: judge 0.50 (weight 0.5)" in verified.out
    assert "signal missing: turns: the attempt's turns are not known" in verified.out
    alone = cli("verify", task, "--patch", "fix.diff", "--json").document
    assert alone["reward"] == 1.0
    assert alone["evidence"]["signals_missing"]["judge"] == "no model judge is configured"
    assert cli("eval", task, "--policy", "oracle", *judge, "--json").document["reward"] == rolled["reward"]
    model_endpoint.status = 400
    down = cli("eval", task, "--policy", "oracle", *judge)
    assert down.code == 0
    assert "signal missing from 1 verdicts: judge: PolicyRefused" in down.out


def test_a_judge_that_would_not_be_asked(cli: Cli, task: Path) -> None:
    """`--judge` for a task that lists no such signal is refused, as is what is no judge."""
    for judge, said in (("http://127.0.0.1:9/v1", "it would never be asked"), ("none.toml", "No such file")):
        done = cli("rollout", task, "--agent", "oracle", "--judge", judge)
        assert done.code == 2
        assert said in done.err


class _Chat(http.server.BaseHTTPRequestHandler):
    """Answers every conversation with the same repair, then submits."""

    def do_POST(self) -> None:
        if self.path.startswith("/refuse"):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(400)
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        command = "sed -i 's/(len(values) + 1)/len(values) if values else int(str())/' stats.py"
        text = "<submit>" if spoken else f"<bash>{command}</bash>"
        answer = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A chat endpoint on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Chat) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_eval_over_http(cli: Cli, task: Path, endpoint: str) -> None:
    """A chat endpoint is driven through the same loop, over several turns."""
    done = cli("eval", task, "--policy", endpoint, "--model", "m", "--json")
    assert done.code == 0, done.err
    assert done.document["passed"] == 1


def test_eval_when_the_endpoint_refuses(cli: Cli, task: Path, endpoint: str) -> None:
    """Attempts whose policy gives nothing are unscorable: exit code 3, and no rate is made up."""
    done = cli("eval", task, "--policy", endpoint.replace("/v1", "/refuse"), "--json")
    assert done.code == 3
    assert (done.document["samples"], done.document["unscorable"]) == (0, 1)
    assert [done.document[name] for name in ("rate", "low", "high")] == [None] * 3
    assert "refused with status 400" in done.err
    told = cli("eval", task, "--policy", endpoint.replace("/v1", "/refuse"))
    assert told.out.startswith("none of 1 attempts could be judged\n")


def test_eval_gives_up_on_a_policy_that_never_answers(cli: Cli, task: Path, endpoint: str) -> None:
    """Where all of many attempts got no answer, the rest are not tried one by one."""
    done = cli("eval", task, "--policy", endpoint.replace("/v1", "/refuse"), "--samples", "50", "--json")
    assert done.code == 3
    assert "refused with status 400" in done.document["error"]["message"]


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped(task: Path, signum: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM end a command cleanly: one line, the shell's exit code, no process left in a box."""
    mark = f"31.{os.getpid()}{signum.value}"
    (task.parent / "slow.sh").write_text(f"touch started; exec sleep {mark}\n")
    command = [sys.executable, "-m", "practicum", "rollout", str(task), "--agent", "script:slow.sh"]
    with subprocess.Popen(
        command, cwd=task.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while not _running(mark):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signum)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err.strip() == "stopped cleanly"
    assert not _running(mark)


def _running(mark: str) -> bool:
    """Whether a process with `mark` among its arguments is alive."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False
