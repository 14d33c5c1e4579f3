"""The one error vocabulary of practicum.

Owns: every exception that crosses a boundary between parts, named by the boundary.
Invariant: each error is either *infrastructure* (the attempt is masked, never scored) or
*data* (somebody's input or output is wrong and the message says what and how to fix it).
Must not know: anything else in the package.

    PracticumError
    ├── ConfigError            data            a key, value or combination that cannot be run
    ├── TaskError              data            a task directory or task set that cannot be used
    ├── SubmissionError        data            a patch that does not apply or leaves the editable paths
    ├── PolicyError            infrastructure  the policy did not answer
    │   └── PolicyRefused      data            the policy answered that it will not, or cannot, do this
    ├── SandboxError           infrastructure  a box is gone, or its state is unknown
    │   ├── CreateFailed       infrastructure  there is no box
    │   │   └── LayerFailed    data            what a layer is to be made from does not make one
    │   ├── SandboxDied        infrastructure  the box ended while it was leased
    │   │   ├── BoxOutOfMemory data            what ran in the box used up its memory, which ended the box
    │   │   └── WarmEnded      data            what ran in the box ended the process that is kept ready there
    │   ├── SandboxTimeout     infrastructure  the box did not answer before the deadline
    │   ├── UnsupportedControl infrastructure  a control was asked for that cannot be had here
    │   ├── BoxPathError       data            an answer about a path inside the box
    │   └── SnapshotRefused    data            a snapshot or reset was asked for while a command runs
    ├── VerifierError          infrastructure  the judge itself failed; nothing was decided
    │   └── CanaryDeviated     infrastructure  the judge no longer gives verdicts that are known beforehand
    ├── ScheduleError          infrastructure  the scheduler could not give what was waited for
    │   ├── WaitTimedOut       infrastructure  no permit or turn came before the deadline
    │   └── AttemptTimedOut    infrastructure  an attempt had not come to an end before its deadline
    ├── StoreError             infrastructure  a record could not be written or read
    │   └── StartRefused       infrastructure  recorded turns and a saved workspace disagree, or one is missing
    └── TrainerError           infrastructure  an update could not be made
        ├── StepRefused        data            a step was not taken; the weights are as they were
        └── NothingLearned     data            a run ended without a single update
"""

from __future__ import annotations

from typing import ClassVar, Literal

Category = Literal["infrastructure", "data"]


class PracticumError(Exception):
    """Base of all errors that practicum raises on purpose.

    `message` names the thing that is wrong; `fix`, where there is one, says what to do about it.
    """

    category: ClassVar[Category] = "data"

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message

    @property
    def kind(self) -> str:
        """The name under which this error is counted in `faults`."""
        return type(self).__name__

    @property
    def exit_code(self) -> int:
        """Process exit code: 2 for bad input, 3 for an infrastructure fault."""
        return 2 if self.category == "data" else 3

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries by pickle; keyword arguments would be lost otherwise.
        return _rebuild, (type(self), self.message, self.fix)


def _rebuild(kind: type[PracticumError], message: str, fix: str | None) -> PracticumError:
    return kind(message, fix=fix)


class ConfigError(PracticumError):
    """A configuration key, value or combination that cannot be run."""


class TaskError(PracticumError):
    """A task directory or task set that cannot be used."""


class SubmissionError(PracticumError):
    """A submission that does not apply or touches what it must not."""


class PolicyError(PracticumError):
    """The policy did not answer."""

    category: ClassVar[Category] = "infrastructure"


class PolicyRefused(PolicyError):
    """The policy answered that it cannot do what was asked (for example no token ids)."""

    category: ClassVar[Category] = "data"


class SandboxError(PracticumError):
    """A box is gone or its state is unknown; never shown to a policy as command output."""

    category: ClassVar[Category] = "infrastructure"


class CreateFailed(SandboxError):
    """There is no box."""


class LayerFailed(CreateFailed):
    """What a layer is to be made from (a command, a lock) does not make one, however often it is tried."""

    category: ClassVar[Category] = "data"


class SandboxDied(SandboxError):
    """The box ended while it was leased."""


class BoxOutOfMemory(SandboxDied):
    """What ran in the box used up the box's own memory, which ended the box: its doing, not the host's."""

    category: ClassVar[Category] = "data"


class WarmEnded(SandboxDied):
    """What ran in the box ended, or changed, the process that is kept ready there to be copied."""

    category: ClassVar[Category] = "data"


class SandboxTimeout(SandboxError):
    """The box did not answer before the deadline of the call."""


class UnsupportedControl(SandboxError):
    """A control was asked for that this provider cannot enforce on this host."""


class BoxPathError(SandboxError):
    """An answer about a path inside the box: missing, a folder, too large, or outside it."""

    category: ClassVar[Category] = "data"


class SnapshotRefused(SandboxError):
    """A snapshot or a reset was asked for while a command runs in the box."""

    category: ClassVar[Category] = "data"


class VerifierError(PracticumError):
    """The judge itself failed: the submission has no verdict yet."""

    category: ClassVar[Category] = "infrastructure"


class CanaryDeviated(VerifierError):
    """The judge, or a task that it reads, is not what it was: no verdict since the last good look is trusted."""


class ScheduleError(PracticumError):
    """The scheduler could not give what was waited for."""

    category: ClassVar[Category] = "infrastructure"


class WaitTimedOut(ScheduleError):
    """No permit or turn came before the deadline."""


class AttemptTimedOut(ScheduleError):
    """An attempt had not come to an end before its deadline."""


class StoreError(PracticumError):
    """A record could not be written or read back."""

    category: ClassVar[Category] = "infrastructure"


class StartRefused(StoreError):
    """An episode cannot go on from where it stood: what was recorded of it does not agree, or is not there."""


class TrainerError(PracticumError):
    """An update could not be made."""

    category: ClassVar[Category] = "infrastructure"


class StepRefused(TrainerError):
    """A step was not taken: loss or gradient were not finite, or out of proportion. The weights are as they were."""

    category: ClassVar[Category] = "data"


class NothingLearned(TrainerError):
    """A run or a resume ended without a single update."""

    category: ClassVar[Category] = "data"


def category_of(kind: str) -> Category | None:
    """The category of the error that is counted as `kind`; None where no error of practicum has that name."""
    todo: list[type[PracticumError]] = [PracticumError]
    while todo:
        each = todo.pop()
        if each.__name__ == kind:
            return each.category
        todo += each.__subclasses__()
    return None
