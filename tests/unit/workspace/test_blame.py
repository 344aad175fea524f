"""Blame against a model: a session of edits of which the test knows who wrote each line."""

from __future__ import annotations

import random
import shlex
from collections import Counter
from dataclasses import dataclass, field

import pytest
from tests.unit.workspace.conftest import Session

from playhead.errors import TapeDamaged
from playhead.story.files.file_steps import FileStep
from playhead.story.files.line_origins import LineOrigins

# A line of the model: its text, and the step that wrote it (0: before the run).
Lines = list[tuple[str, int]]
# Lines that code repeats all the time.
_COMMON = ("", "    pass", "    return None", "}")


@dataclass
class Model:
    """The files of a repository, changed together with the real ones by shell commands."""

    chance: random.Random
    files: dict[str, Lines]
    committed: dict[str, Lines] = field(default_factory=dict)
    stashed: dict[str, Lines] | None = None

    def step(self, number: int) -> str:
        """Change the model, and give the command that does the same to the files."""
        if self.stashed is not None:
            self.files, self.stashed = self.stashed, None
            return "git stash pop -q"
        name = self.chance.choice(sorted(self.files))
        ways = (
            *(self.insert, self.insert, self.insert, self.replace, self.replace, self.remove),
            *(self.append, self.create, self.move, self.commit, self.stash, self.revert),
        )
        return self.chance.choice(ways)(name, number)

    def text(self, number: int) -> str:
        if self.chance.random() < 0.15:
            return self.chance.choice(_COMMON)
        return f"    value_{number}_{self.chance.randrange(10**6)} = call({number})"

    def insert(self, name: str, number: int) -> str:
        lines = self.files[name]
        at = self.chance.randrange(len(lines))
        new = [self.text(number) for _ in range(self.chance.randint(1, 4))]
        lines[at + 1 : at + 1] = [(one, number) for one in new]
        quoted = shlex.quote("\n".join(new) + "\n")
        return f"printf %s {quoted} > ../part; sed -i '{at + 1}r ../part' {name}"

    def replace(self, name: str, number: int) -> str:
        lines = self.files[name]
        at = self.chance.randrange(len(lines))
        text = f"    changed_{number} = call()"
        lines[at] = (text, number)
        return f"sed -i {shlex.quote(f'{at + 1}s/.*/{text}/')} {name}"

    def remove(self, name: str, number: int) -> str:
        lines = self.files[name]
        if len(lines) < 8:
            return self.append(name, number)
        at = self.chance.randrange(len(lines) - 3)
        del lines[at : at + 3]
        return f"sed -i '{at + 1},{at + 3}d' {name}"

    def append(self, name: str, number: int) -> str:
        text = self.text(number)
        self.files[name].append((text, number))
        return f"printf '%s\\n' {shlex.quote(text)} >> {name}"

    def create(self, _name: str, number: int) -> str:
        new = [self.text(number) for _ in range(8)]
        self.files[f"new{number}.py"] = [(one, number) for one in new]
        body = "\n".join(new)
        return f"cat > new{number}.py <<'END'\n{body}\nEND"

    def move(self, name: str, number: int) -> str:
        self.files[f"moved{number}.py"] = self.files.pop(name)
        return f"mv {name} moved{number}.py"

    def commit(self, _name: str, number: int) -> str:
        self.committed = {name: list(lines) for name, lines in self.files.items()}
        return f"git add -A && git commit -qm step{number}"

    def stash(self, _name: str, _number: int) -> str:
        self.stashed = {name: list(lines) for name, lines in self.files.items()}
        self.files = {name: list(lines) for name, lines in self.committed.items()}
        return "git add -A && git stash -q"

    def revert(self, name: str, number: int) -> str:
        if name not in self.committed:
            return self.commit(name, number)
        self.files[name] = list(self.committed[name])
        return f"git checkout -q HEAD -- {name}"


@pytest.mark.parametrize("seed", [3, 5, 14])
def test_blame_names_the_right_step_of_at_least_98_lines_in_100_and_no_wrong_one(
    session: Session, seed: int
) -> None:
    chance = random.Random(seed)
    names = [f"f{number}.py" for number in range(6)]
    model = Model(chance, {name: [] for name in names})
    for name in names:
        model.files[name] = [
            (f"line {line} of {name}" if line % 7 else "", 0) for line in range(60)
        ]
        text = "".join(f"{one}\n" for one, _ in model.files[name])
        (session.folder / name).write_text(text)
    model.commit("", 0)
    session.shell("git add -A; git commit -qm files")
    session.marks.start("1:0")
    session.marks.end("1:0")
    for number in range(1, 121):
        session.call(model.step(number))
    history = session.stop()
    assert history.gaps == 0
    steps = [FileStep(effect=one, calls=(), after=None, llm=None) for one in history.effects]
    found: Counter[str] = Counter()
    wrong = []
    for name, lines in model.files.items():
        blamed = LineOrigins(history, steps).blame(name.encode())
        assert [one.text for one in blamed] == [text for text, _ in lines]
        for one, (text, writer) in zip(blamed, lines, strict=True):
            possible = [_number(step) for step in one.candidates]
            found["right" if possible == [writer] else "open"] += 1
            if writer not in possible:
                wrong.append((name, one.number, text, f"written by {writer}, not {possible}"))
    assert not wrong
    assert found["right"] >= 0.98 * found.total()


def test_a_file_that_replaces_another_keeps_its_origins(session: Session) -> None:
    session.call("printf 'a1\\na2\\na3\\n' > a.txt")
    session.call("printf 'b1\\nb2\\nb3\\n' > b.txt")
    # The two exchange their names, in a step that writes a file of the same size.
    session.call("mv a.txt t; mv b.txt a.txt; mv t b.txt; printf 'c1\\nc2\\nc3\\n' > c.txt")
    session.call("printf 'd1\\nd2\\n' > d.txt; cp src/m1.py m1.py")
    session.call("mv d.txt c.txt; mv m1.py src/m2.py; mv src/m3.py src/m4.py")
    history = session.stop()
    steps = [FileStep(effect=one, calls=(), after=None, llm=None) for one in history.effects]
    origins = LineOrigins(history, steps)
    found = {
        name: [_number(one.step) for one in origins.blame(name)]
        for name in (b"a.txt", b"b.txt", b"c.txt")
    }
    assert found == {b"a.txt": [2, 2, 2], b"b.txt": [1, 1, 1], b"c.txt": [4, 4]}
    # A copy is written by the step that made it; a tracked file was there before the run.
    assert {_number(one.step) for one in origins.blame(b"src/m2.py")} == {4}
    assert {_number(one.step) for one in origins.blame(b"src/m4.py")} == {0}


def test_blame_refuses_a_tape_that_changes_a_file_which_was_never_there(session: Session) -> None:
    session.call("echo one > new.txt")
    session.call("echo two >> new.txt")
    history = session.stop()
    steps = [FileStep(effect=one, calls=(), after=None, llm=None) for one in history.effects]
    lines = LineOrigins(history, steps).blame(b"new.txt")
    assert [one.text for one in lines] == ["one", "two"]
    with pytest.raises(TapeDamaged, match="contradicts itself"):
        LineOrigins(history, steps[1:]).blame(b"new.txt")


def _number(step: FileStep | None) -> int:
    if step is None or not step.effect.calls:
        return 0
    return int(step.effect.calls[0].partition(":")[2])
