"""Git repositories, work trees or bare ones, read as data.

Owns: `open_repository`, `Repository`, `Commit`, `ChangedPath`.
Invariant: nothing of the repository is executed, checked out, fetched or written; what is no plain file, or too large,
is told by path and never read; a history is read commit by commit, never whole.
Must not know: what a repository is used for.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from practicum.errors import SubmissionError, TaskError
from practicum.records.tree import File, check_path
from practicum.tasks.gitprocess import DEADLINE_S, MAX_OUTPUT, GitProcess, git_output

MAX_TREE_BYTES = 64 << 20
MAX_FILE_BYTES = 4 << 20
MAX_PATHS = 5000  # changed paths of one commit that are told
_MAX_MESSAGE = 4 << 20
_LFS = b"version https://git-lfs.github.com/spec/"
_FORMAT = "commit %H%x00%P%x00%ad%x00%an%x00%s%x00%b%x00"
_FIX = "name a folder that holds .git, or a bare repository"


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """One path that a commit changed. `status`: A added, M changed, D deleted, T of another type."""

    status: str
    path: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit says of itself. `authored` is ISO 8601 in UTC, so that it sorts as text.

    `changes` are against its only parent (the first one of a merge), the first `MAX_PATHS` of them; `more` says that
    there are others.
    """

    sha: str
    parents: tuple[str, ...]
    authored: str
    author: str
    subject: str
    body: str
    changes: tuple[ChangedPath, ...] = ()
    more: bool = False


class _Entry(NamedTuple):
    path: str
    mode: str
    sha: str
    size: int


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository. `git_dir` is where its objects are; `deadline_s` bounds each wait for git."""

    path: Path
    git_dir: Path
    deadline_s: float = DEADLINE_S

    def resolve(self, revision: str = "HEAD") -> str:
        """The full id of the commit that `revision` names. Raises `TaskError` where there is none."""
        arguments = ["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
        if not revision or revision.startswith("-") or any(ord(char) < 32 for char in revision):
            raise TaskError(f"{self.path}: {revision!r} names no commit")
        with GitProcess(self.git_dir, arguments, deadline_s=self.deadline_s) as git:
            said = git.rest(max_bytes=1000)
            if git.status() != 0 or not said.strip():
                raise TaskError(
                    f"{self.path}: {revision!r} names no commit that is there",
                    fix="fetch it, or take a full clone instead of a shallow one",
                )
            return said.decode().strip()

    def tree(
        self, revision: str = "HEAD", *, max_bytes: int = MAX_TREE_BYTES, max_file_bytes: int = MAX_FILE_BYTES
    ) -> tuple[dict[str, File], dict[str, str]]:
        """The files of a commit, and by path what kind of thing each of the others is.

        Kinds: `symbolic link`, `submodule`, `git-lfs pointer`, `larger than N bytes`, `unusable
        name` (not UTF-8, or one that would lead outside the tree). Raises `TaskError` where the files that would be
        read come to more than `max_bytes`.
        """
        sha = self.resolve(revision)
        files: dict[str, File] = {}
        irregular: dict[str, str] = {}
        wanted: list[_Entry] = []
        for entry in self._entries(sha):
            kind = _irregular(entry, max_file_bytes)
            if kind is not None:
                irregular[entry.path] = kind
            else:
                wanted.append(entry)
        total = sum(entry.size for entry in wanted)
        if total > max_bytes:
            raise TaskError(f"{self.path} at {sha[:12]}: its files come to {total} bytes, more than {max_bytes}")
        for entry, data in self._blobs(wanted):
            if data.startswith(_LFS) and len(data) < 1024:
                irregular[entry.path] = "git-lfs pointer"
            else:
                files[entry.path] = File(data, 0o755 if int(entry.mode, 8) & 0o111 else 0o644)
        return files, irregular

    def commits(
        self,
        revision: str = "HEAD",
        *,
        limit: int | None = None,
        merges: bool = False,
        paths: Sequence[str] = (),
    ) -> Iterator[Commit]:
        """Commits from `revision` backwards, `limit` at most, newest first; without merges unless asked for.

        `paths` keeps those that changed something there. Read as they are asked for: closing the iterator ends git.
        """
        arguments = [
            *("log", "-z", "--name-status", "--no-renames", "--root", "--no-show-signature", "--no-color"),
            *("--no-ext-diff", "--no-textconv", "--encoding=UTF-8", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"),
            "--diff-merges=first-parent" if merges else "--no-merges",
            *([] if limit is None else [f"--max-count={limit}"]),
            *(f"--format={_FORMAT}", self.resolve(revision), "--", *paths),
        ]
        with GitProcess(self.git_dir, arguments, deadline_s=self.deadline_s) as git:
            yield from _read_commits(git.pieces(b"\0", max_bytes=_MAX_MESSAGE))
            if git.status() != 0:
                raise git.failure()

    def diff(self, before: str, after: str, *, paths: Sequence[str] = (), max_bytes: int = MAX_OUTPUT) -> str:
        """The unified diff from one commit to another, renames as removal and addition; of `paths` where given.

        Binary differences are only named. Raises `TaskError` for one of more than `max_bytes`, or not in UTF-8.
        """
        arguments = [
            *("diff-tree", "-p", "-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
            *("--full-index", "--src-prefix=a/", "--dst-prefix=b/", self.resolve(before), self.resolve(after)),
            *("--", *paths),
        ]
        said = git_output(self.git_dir, arguments, max_bytes=max_bytes, deadline_s=self.deadline_s)
        try:
            return said.decode()
        except UnicodeDecodeError:
            raise TaskError(f"{self.path}: the difference {before[:12]}..{after[:12]} is not UTF-8 text") from None

    def show(self, revision: str, path: str, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The content of one file of a commit. Raises `TaskError` where it is not there, no file or larger."""
        arguments = ["ls-tree", "-z", "-l", "--full-tree", self.resolve(revision), "--", path]
        said = git_output(self.git_dir, arguments, deadline_s=self.deadline_s)
        entries = [entry for entry in map(_entry, filter(None, said.split(b"\0"))) if entry.path == path]
        if not entries:
            raise TaskError(f"{self.path} at {revision[:40]}: there is no {path!r}")
        kind = _irregular(entries[0], max_bytes)
        if kind is not None:
            raise TaskError(f"{self.path} at {revision[:40]}: {path!r} cannot be read: {kind}")
        return next(data for _, data in self._blobs(entries))

    def _entries(self, sha: str) -> Iterator[_Entry]:
        arguments = ["ls-tree", "-r", "-z", "-l", "--full-tree", sha]
        said = git_output(self.git_dir, arguments, deadline_s=self.deadline_s)
        seen: set[str] = set()
        for entry in map(_entry, filter(None, said.split(b"\0"))):
            if entry.path in seen:
                raise TaskError(f"{self.path} at {sha[:12]}: {entry.path!r} is there twice")
            seen.add(entry.path)
            yield entry

    def _blobs(self, entries: Sequence[_Entry]) -> Iterator[tuple[_Entry, bytes]]:
        with GitProcess(self.git_dir, ["cat-file", "--batch"], deadline_s=self.deadline_s, with_input=True) as git:
            for entry in entries:
                git.ask(entry.sha.encode())
                header = git.until(b"\n", max_bytes=200) or b""
                if header.split()[1:] != [b"blob", str(entry.size).encode()]:
                    raise TaskError(f"{self.path}: the object of {entry.path!r} is damaged: {header!r}")
                yield entry, git.exactly(entry.size + 1)[:-1]


def open_repository(path: Path | str, *, deadline_s: float = DEADLINE_S) -> Repository:
    """The repository at `path` itself (a work tree's top, or a bare one), never one of a folder above.

    Raises `TaskError` where there is none, or no git to read it with.
    """
    root = Path(path)
    inside = root / ".git"
    if not root.is_dir():
        raise TaskError(f"{root}: there is no such folder")
    git_dir = root
    if inside.is_dir():
        git_dir = inside
    elif inside.is_file():  # of a linked work tree or submodule
        word, _, target = inside.read_bytes()[:4096].decode(errors="replace").strip().partition(": ")
        if word != "gitdir":
            raise TaskError(f"{inside} does not say where the repository is", fix=_FIX)
        git_dir = root / target
    if not (git_dir / "HEAD").is_file():
        raise TaskError(f"{root} is not a git repository", fix=_FIX)
    repository = Repository(root, git_dir.resolve(), deadline_s)
    with GitProcess(repository.git_dir, ["rev-parse", "--git-dir"], deadline_s=deadline_s) as git:
        git.rest(max_bytes=10_000)
        if git.status() != 0:
            raise TaskError(f"{root} is not a git repository that git can read: {git.failure().message}", fix=_FIX)
    return repository


def _entry(line: bytes) -> _Entry:
    about, _, name = line.partition(b"\t")
    mode, _, sha, size = about.decode().split()
    return _Entry(_name(name), mode, sha, int(size) if size.isdigit() else -1)


def _name(name: bytes) -> str:
    """A path as text; one that is not UTF-8 with its odd bytes written out, so that it can be told."""
    return name.decode(errors="backslashreplace")


def _irregular(entry: _Entry, max_file_bytes: int) -> str | None:
    mode = int(entry.mode, 8)
    if stat.S_ISLNK(mode):
        return "symbolic link"
    if not stat.S_ISREG(mode):
        return "submodule"
    try:
        check_path(entry.path)
    except SubmissionError:
        return "unusable name"
    if "\\x" in entry.path or ".git" in entry.path.lower().split("/"):
        return "unusable name"
    return f"larger than {max_file_bytes} bytes" if entry.size > max_file_bytes else None


def _read_commits(pieces: Iterator[bytes]) -> Iterator[Commit]:
    """Commits from the pieces of `git log -z --name-status` in `_FORMAT`."""
    header: list[str] = []
    changes: list[ChangedPath] = []
    more = False
    for piece in pieces:
        if piece.startswith(b"commit "):
            if header:
                yield _commit(header, changes, more)
            fields = [piece.removeprefix(b"commit "), *(next(pieces, b"") for _ in range(5))]
            header, changes, more = [field.decode(errors="replace") for field in fields], [], False
        elif status := piece.strip():
            path = next(pieces, b"")
            if len(changes) < MAX_PATHS:
                changes.append(ChangedPath(status[:1].decode(errors="replace"), _name(path)))
            else:
                more = True
    if header:
        yield _commit(header, changes, more)


def _commit(header: list[str], changes: list[ChangedPath], more: bool) -> Commit:
    sha, parents, authored, author, subject, body = header
    return Commit(sha, tuple(parents.split()), authored, author, subject, body.strip(), tuple(changes), more)
