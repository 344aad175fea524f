"""Which files of a workspace are the program, so that a replay runs their current content."""

import os

import pytest

from playhead.workspace.scratch.program_files import program_files


@pytest.fixture
def folder(tmp_path):
    for name in ("app.py", "tools.py", "data.json", "src/pack/main.py", "src/pack/__init__.py"):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import tools\n" if name == "app.py" else "")
    return tmp_path / "work"


def found(folder, *command):
    known = [os.fsencode(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    return {
        os.fsdecode(path)
        for path in program_files(command, str(folder), str(folder), known, str(folder))
    }


@pytest.mark.parametrize(
    "command",
    [
        ("uvicorn", "app:app", "--port", "0"),
        ("gunicorn", "-w", "2", "app:make_app()"),
        ("/usr/local/bin/hypercorn", "app:app"),
        ("granian", "--interface", "asgi", "app:app"),
        ("celery", "-A", "app", "worker"),
        ("flask", "--app=app", "run"),
        ("python", "app.py"),
    ],
)
def test_a_server_that_names_a_module_runs_its_current_code(folder, command):
    assert found(folder, *command) == {"app.py", "tools.py"}


def test_a_module_is_found_in_the_folder_that_an_option_names(folder):
    assert found(folder, "uvicorn", "--app-dir", "src", "pack.main:app") >= {"src/pack/main.py"}


def test_a_console_script_runs_the_current_code_of_the_module_that_it_imports(
    folder, tmp_path, monkeypatch
):
    script = tmp_path / "bin" / "my-agent"
    script.parent.mkdir()
    script.write_text("#!/usr/bin/python3\nimport sys\nfrom pack.main import main\nmain()\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert "src/pack/main.py" in found(folder, "my-agent", "--fast")


@pytest.mark.parametrize(
    "line",
    [
        "python app.py --fast",
        "exec python3 ./app.py  # the agent",
        'for n in 1 2; do python "app.py" "$n" < data.json; done',
        "sh inner.sh",
    ],
)
@pytest.mark.parametrize("command", [("./run",), ("bash", "run"), ("sh", "-c", "./run; date")])
def test_the_programs_that_a_shell_script_runs_have_their_current_code(folder, command, line):
    (folder / "run").write_text(f"#!/usr/bin/env bash\ncat data.json\n{line}\n")
    (folder / "inner.sh").write_text("python app.py\n")
    files = found(folder, *command)
    assert files >= {"app.py", "tools.py"}
    assert "data.json" not in files


def test_a_script_that_a_python_of_the_run_executed_has_its_current_code(folder):
    known = [b"app.py", b"tools.py", b"data.json", b"src/pack/main.py"]
    (folder / "run.sh").write_text('cd "$PLACE"; python "$AGENT"\n')
    files = program_files(
        ("./run.sh",), str(folder), str(folder), known, str(folder), pythons=["main.py", "-c"]
    )
    assert files == {b"run.sh", b"src/pack/main.py"}
    # A runner runs code of the project in ways that are not known: all of it is code.
    files = program_files(
        ("uv", "run", "agent"), str(folder), str(folder), known, str(folder), pythons=["app.py"]
    )
    assert files == set(known)


def test_files_that_a_foreign_program_works_on_are_data(folder):
    assert found(folder, "some-editor", "--message", "change it: now") == set()
