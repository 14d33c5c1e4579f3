"""What a policy is shown of a command: text that is the same whenever the command does the same.

Owns: `Observation`, `render_result`, `shorten`.
Invariant: bounded length; no durations, process ids or temporary names are added to what the command said.
Must not know: boxes, policies. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from practicum.sandboxes.contract import CommandResult


@dataclass(frozen=True, slots=True)
class Observation:
    """`text` goes to the policy; `changed` says whether files may have changed, `failed` whether it came to nothing."""

    text: str
    changed: bool = False
    failed: bool = False


def render_result(result: CommandResult, *, timeout_note: str, max_chars: int) -> str:
    """stdout, then stderr, then bracketed notes on what is not plain success.

    Bytes that are not UTF-8 become replacement signs. `timeout_note` is the note for a command that was stopped.
    """
    parts = [part.decode("utf-8", "replace").rstrip("\n") for part in (result.stdout, result.stderr)]
    text = shorten("\n".join(part for part in parts if part), max_chars)
    notes = []
    if result.truncated:
        notes.append("[the output was too long and is not whole]")
    if result.oom_killed:
        notes.append("[out of memory]")
    if result.timed_out:
        notes.append(f"[{timeout_note}]")
    elif result.exit_code != 0:
        notes.append(f"[exit {result.exit_code}]")
    return "\n".join([*([text] if text else []), *notes]) or "[no output]"


def shorten(text: str, max_chars: int) -> str:
    """`text` with its middle left out where it is longer than `max_chars`; two thirds of what stays is the tail.

    The tail is favoured because summaries and the last error stand at the end.
    """
    if len(text) <= max_chars:
        return text
    head = max_chars // 3
    tail = max_chars - head
    return f"{text[:head]}\n[{len(text) - max_chars} characters left out]\n{text[len(text) - tail :]}"
