"""A Dockerfile is honoured in full or refused by instruction and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import TaskError
from practicum.records.recipe import Copy, Env, Recipe, Requirements, Run, User, Workdir
from practicum.records.tree import File
from practicum.tasks.dockerfile import Image, read_dockerfile
from practicum.tasks.dockerwords import Unset, words
from practicum.tasks.harbor import load_task, save_task

HASH = "sha256:" + "a" * 64
CONTEXT = {
    "a.txt": File(b"a"),
    "conf/x.cfg": File(b"x"),
    "conf/deep/y.cfg": File(b"y", 0o755),
    "requirements.txt": File(f"idna==3.20 --hash={HASH}\n".encode()),
    "loose.txt": File(b"idna==3.20\n"),
    "workspace/m.py": File(b"pass"),
}


def read(text: str) -> Image:
    return read_dockerfile(text, "Dockerfile", CONTEXT)


def steps(text: str) -> tuple[Any, ...]:
    layer = read("FROM python:3.12\n" + text).layer
    assert isinstance(layer, Recipe)
    return layer.steps


def refusal(text: str) -> str:
    with pytest.raises(TaskError) as caught:
        read(text)
    return str(caught.value)


def test_each_instruction_arrives() -> None:
    """What a Dockerfile says is there as steps, in order, with the folder of the time."""
    found = steps(
        "WORKDIR /srv\nWORKDIR app\nENV A=1 B='two words'\nCOPY a.txt .\nCOPY --chmod=755 a.txt /bin/a\n"
        'USER agent\nRUN ["ls", "-l"]\nRUN make all\n'
    )
    assert found[:3] == (Workdir("/srv"), Workdir("/srv/app"), Env((("A", "1"), ("B", "two words"))))
    assert found[3] == Copy({"a.txt": File(b"a")}, "/srv/app")
    assert found[4] == Copy({"a.txt": File(b"a", 0o755)}, "/bin/a", alone=True)
    assert found[5:] == (User("agent"), Run(("ls", "-l")), Run(("/bin/sh", "-c", "make all")))


def test_comments_continuations_and_documents() -> None:
    """Comments and empty lines within an instruction vanish; a here-document goes to the shell, or is the script."""
    found = steps(
        "RUN echo a && \\\n# why\n\n  echo b \\\n && echo '# c'\n# end\nRUN cat <<EOF > /x\n# kept \\\n  $A\nEOF\n"
    )
    assert found[0].command[2] == "echo a &&   echo b  && echo '# c'"
    assert found[1].command[2] == "cat <<EOF > /x\n# kept \\\n  $A\nEOF\n"
    (run,) = steps("RUN <<-EOF\n\tset -e\n\ttrue\n\tEOF\n")
    assert run.command[2] == "set -e\ntrue\n"
    assert "line 2: the here-document EOF has no end" in refusal("FROM python\nRUN cat <<EOF\nx\n")


def test_variables() -> None:
    """ARG and ENV give values with defaults and alternatives; RUN sees ARGs; the base's own variables come later."""
    found = steps(
        'ARG V=2\nARG UNSET\nENV P=/opt/v$V PATH=/opt/$V:$PATH Q="${NOT:-x} \\$HOME"\nWORKDIR ${P}/${V:+in}\nRUN true\n'
    )
    assert found[0] == Env((("P", "/opt/v2"), ("PATH", "/opt/2:${PATH}"), ("Q", "x $$HOME")))
    assert found[1] == Workdir("/opt/v2/in")
    assert found[2].args == (("V", "2"),)
    assert steps("ENV LONG a  value with = signs\n") == (Env((("LONG", "a value with = signs"),)),)
    text = refusal("FROM python\nARG V\nWORKDIR /x/$V\n")
    assert "line 3" in text
    assert "$V" in text


def test_a_variable_of_the_base_is_not_known_while_reading() -> None:
    """A place that depends on the base's environment is refused rather than read as empty."""
    assert "uses $A" in refusal("FROM python\nENV A=$PATH\nWORKDIR $A\n")


def test_images() -> None:
    """`python` and its ages from 3.11 are this machine's layer; any other name is that of an imported image."""
    for image in ("python", "python:3", "python:3.12-slim", "docker.io/library/python:3.11.4-bookworm"):
        assert read(f"FROM {image} AS base\n").layer == "python"
    assert read("FROM ghcr.io/org/tool:1.2\n").layer == "ghcr.io/org/tool:1.2"
    assert read("FROM python:3.9\n").layer == "python:3.9"
    assert read("ARG TAG=3.13\nFROM python:${TAG}\n").layer == "python"
    assert "no FROM" in refusal("# nothing\n")
    assert "$TAG" in refusal("ARG TAG\nFROM python:$TAG\n")


def test_copies() -> None:
    """A folder gives what is in it, patterns give what they match, several sources need no folder sign."""
    assert steps("COPY conf /etc/conf\n")[0].files == {"x.cfg": File(b"x"), "deep/y.cfg": File(b"y", 0o755)}
    assert set(steps("COPY *.txt /t/\n")[0].files) == {"a.txt", "requirements.txt", "loose.txt"}
    assert set(steps("COPY conf/*.cfg a.txt /t\n")[0].files) == {"x.cfg", "a.txt"}
    assert set(steps("COPY . /all\n")[0].files) == set(CONTEXT)
    assert read("FROM python\nCOPY conf a.txt /t/\nRUN true\n").used == {"a.txt", "conf/x.cfg", "conf/deep/y.cfg"}


def test_a_copied_lock_is_installed_without_running_it() -> None:
    """`pip install -r` of a copied file with hashes becomes packages; without hashes it is refused by line."""
    for command in (
        "pip install -r requirements.txt",
        "python3 -m pip install --no-cache-dir -r ./requirements.txt -q",
    ):
        (_, step) = steps(f"COPY requirements.txt ./\nRUN {command}\n")
        assert isinstance(step, Requirements)
        assert [(p.name, p.hashes) for p in step.packages] == [("idna", (HASH,))]
    text = refusal("FROM python\nCOPY loose.txt /\nRUN pip install -r /loose.txt\n")
    assert "line 3: /loose.txt line 1: the requirement idna==3.20 has no hash" in text
    other = steps("COPY requirements.txt ./\nRUN pip install --index-url x -r requirements.txt\n")[1]
    assert isinstance(other, Run)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADD https://example.org/x /x", ["line 2", "ADD https://example.org/x", "use COPY"]),
        ("HEALTHCHECK CMD true", ["line 2", "HEALTHCHECK", "no service"]),
        ("FROM python AS two", ["line 2", "second stage"]),
        ("CMD python app.py", ["CMD", "remove it"]),
        ("EXPOSE 80", ["no network"]),
        ("SHELL [\"bash\"]", ["SHELL"]),
        ("FROMM x", ["FROMM"]),
        ("USER postgres", ["USER postgres", "USER agent"]),
        ("USER root:agent", ["USER root:agent"]),
        ("RUN --mount=type=cache,target=/x true", ["RUN --mount", "without options"]),
        ("COPY --from=build /x /x", ["COPY --from=build", "--chmod only"]),
        ("COPY gone.txt /x", ["'gone.txt' is not there"]),
        ("COPY ../x /x", ["outside the folder"]),
        ("COPY a.txt /tmp/a", ["/tmp/a", "empty in each box"]),
        ("COPY a.txt", ["COPY a.txt"]),
        ("COPY <<EOF /x\nhi\nEOF", ["here-document"]),
        ("WORKDIR /a b", ["WORKDIR /a b"]),
        ("ENV A='x", ["a quote ' has no end"]),
        ("ENV A=${B#x}", ["`${B#x}`"]),
        ("ENV 1A=x", ["ENV 1A=x"]),
        ("WORKDIR /a\nCOPY workspace /b", ["WORKDIR ends as /a"]),
        ("COPY workspace /a\nRUN true", ["line 3", "after the COPY of the workspace"]),
        ("RUN <<EOF\n#!/usr/bin/python3\nEOF", ["line 2", "interpreter of its own"]),
    ],
)  # fmt: skip
def test_what_is_outside_the_subset_is_refused(text: str, expected: list[str]) -> None:
    """Whatever cannot be honoured names itself and its line, and says what to write instead."""
    found = refusal(f"FROM python\n{text}\n")
    assert all(word in found for word in expected), found


def test_nothing_stands_before_from() -> None:
    """An instruction before FROM is refused."""
    assert "line 1: the instruction `RUN true` cannot be honoured: there is no FROM" in refusal("RUN true\n")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_quoting_protects_any_text(text: str) -> None:
    """A value in single quotes arrives as it is, now or when it is expanded later."""
    quoted = "'" + text.replace("'", "'\"'\"'") + "'"
    assert words(quoted, lambda _: None) == [text]
    (late,) = words(quoted, lambda _: None, late=True)
    assert late.replace("$$", "$") == text


def test_unset_is_never_empty() -> None:
    """A variable without value is an error, or stays for later."""
    with pytest.raises(Unset, match="HOME"):
        words("$HOME/x", lambda _: None)
    assert words("$HOME/x", lambda _: None, late=True) == ["${HOME}/x"]


def test_a_task_carries_its_recipe_there_and_back(tmp_path: Path) -> None:
    """A task with RUN and COPY is read, has another digest than without, and is the same after being written."""
    for name, text in {
        "task.toml": '[practicum.tests]\nrunner = "pytest"\nfiles = ["t.py"]\nfail_to_pass = ["t.py::t"]\n',
        "instruction.md": "Do.\n",
        "environment/Dockerfile": "FROM python:3.12\nCOPY conf /etc/x\nRUN true\nWORKDIR /app\nCOPY workspace/ .\n",
        "environment/conf/a": "1",
        "environment/workspace/m.py": "",
        "tests/t.py": "",
    }.items():
        path = tmp_path / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    task = load_task(tmp_path / "t")
    assert isinstance(task.layer, Recipe)
    assert task.workspace == "/app"
    save_task(task, tmp_path / "again" / "t")
    again = load_task(tmp_path / "again" / "t")
    assert (again.digest, again.layer) == (task.digest, task.layer)
    (tmp_path / "t" / "environment" / "conf" / "a").write_text("2")
    assert load_task(tmp_path / "t").digest != task.digest
    (tmp_path / "t" / "environment" / "unused").write_text("")
    with pytest.raises(TaskError, match="unused cannot be honoured"):
        load_task(tmp_path / "t")
