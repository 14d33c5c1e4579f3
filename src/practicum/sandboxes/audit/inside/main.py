"""Carries out probes in the box: each in a child of its own, findings as JSON on standard output.

Owns: `main`: `{"ids", "facts"}` on standard input, `{id: [status, observed]}` on standard output.
Invariant: what a probe does to its process dies with it; one that hangs or is killed has a finding all the same.
Must not know: what the probes try.
"""

import json
import os
import select
import signal
import sys
import traceback

from . import cross, disks, files, kernel, network, privilege, resources, visibility  # noqa: F401  they declare their probes
from .registry import PROBES, Facts, Finding, Probe, blocked, unclear

CHILD_S = 8.0


def carry_out(probe: Probe, facts: Facts) -> Finding:
    """The finding of one probe, made in a child."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        try:
            finding = probe.function(facts)
        except Exception as error:  # noqa: BLE001  a probe that fails has found nothing out
            place = traceback.extract_tb(error.__traceback__)[-1]
            finding = unclear(
                f"the probe failed: {error!r} (line {place.lineno} of {os.path.basename(place.filename)})"
            )
        os.write(tell, json.dumps([finding.status, finding.observed[:1000]]).encode())
        os._exit(0)
    os.close(tell)
    ready, _, _ = select.select([told], [], [], CHILD_S)
    text = os.read(told, 65536) if ready else b""
    if not ready:
        os.kill(pid, signal.SIGKILL)
    os.close(told)
    _, status = os.waitpid(pid, 0)
    if text:
        return Finding(*json.loads(text))
    if not ready:
        return unclear(f"no answer within {CHILD_S:g} s")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return blocked(f"killed by {name}") if probe.kills else unclear(f"killed by {name}")
    return unclear(f"ended with {os.waitstatus_to_exitcode(status)} and said nothing")


def main() -> None:
    order = json.load(sys.stdin)
    answer = {}
    for id in order["ids"]:
        finding = carry_out(PROBES[id], order["facts"])
        answer[id] = [finding.status, finding.observed]
    print(json.dumps(answer), flush=True)
