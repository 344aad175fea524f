"""A callback runs when a module has been imported, and the host's import never fails by it."""

import importlib
import importlib.machinery
import sys
import threading
import zipfile

import pytest

from playhead.host.importing import before_import, forget, when_imported

NAME = "watched_module"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]


def test_a_module_that_is_there_calls_back_at_once():
    heard = []
    when_imported("json", heard.append)
    assert heard == [sys.modules["json"]]


def test_a_module_that_comes_later_calls_back_after_its_own_code(folder):
    (folder / f"{NAME}.py").write_text("value = 1")
    heard = []
    when_imported(NAME, lambda module: heard.append(module.value))
    before_import(NAME, lambda: heard.append("before"))
    module = importlib.import_module(NAME)
    assert heard == ["before", 1]
    assert "exec_module" not in vars(module.__loader__)
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    importlib.reload(module)
    assert heard == ["before", 1]


def test_a_callback_that_was_forgotten_is_not_called(folder):
    (folder / f"{NAME}.py").write_text("")
    heard = []
    when_imported(NAME, heard.append)
    finders = len(sys.meta_path)
    forget(heard.append)

    def callback(module):
        heard.append(module)

    when_imported(NAME, callback)
    forget(callback)
    importlib.import_module(NAME)
    assert len(heard) <= 1
    assert len(sys.meta_path) <= finders


def test_a_module_that_fails_to_import_fails_as_ever_and_may_be_tried_again(folder):
    path = folder / f"{NAME}.py"
    path.write_text("raise KeyError('no')")
    heard = []
    when_imported(NAME, heard.append)
    with pytest.raises(KeyError):
        importlib.import_module(NAME)
    assert heard == []
    path.write_text("value = 'long enough to be another size'")
    importlib.invalidate_caches()
    module = importlib.import_module(NAME)
    assert heard == [module]


def test_a_module_that_does_not_exist_is_not_found_as_ever():
    when_imported(f"{NAME}_missing", print)
    try:
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"{NAME}_missing")
    finally:
        forget(print)


def test_a_callback_that_raises_does_not_fail_the_import(folder, capsys):
    (folder / f"{NAME}.py").write_text("value = 1")

    def broken(*_):
        raise RuntimeError("ours")

    when_imported(NAME, broken)
    before_import(NAME, broken)
    assert importlib.import_module(NAME).value == 1
    when_imported("json", broken)
    err = capsys.readouterr().err
    assert f"{NAME} is not recorded: RuntimeError('ours')." in err


def test_one_loader_for_many_modules_calls_back_for_the_right_one(folder, monkeypatch):
    archive = folder / "many.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(f"{NAME}_a.py", f"import {NAME}_b\nvalue = 'a'")
        made.writestr(f"{NAME}_b.py", "value = 'b'")
    monkeypatch.syspath_prepend(str(archive))
    heard = []
    when_imported(f"{NAME}_a", lambda module: heard.append(module.value))
    assert importlib.import_module(f"{NAME}_a").value == "a"
    assert heard == ["a"]


@pytest.mark.parametrize("kind", ["no exec_module", "slots"])
def test_a_strange_loader_is_left_alone(kind, monkeypatch):
    class Old:
        def load_module(self, name):
            return sys.modules.setdefault(name, type(sys)(name))

    class Slotted:
        __slots__ = ()

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.value = 1

    loader = Old() if kind == "no exec_module" else Slotted()

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != f"{NAME}_strange":
                return None
            return importlib.machinery.ModuleSpec(name, loader)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    heard = []
    when_imported(f"{NAME}_strange", heard.append)
    if kind == "slots":
        importlib.import_module(f"{NAME}_strange")
    else:
        with pytest.warns(ImportWarning):
            importlib.import_module(f"{NAME}_strange")
    sys.modules.pop(f"{NAME}_strange", None)
    forget(heard.append)


def test_threads_that_import_at_the_same_time_are_all_served(folder):
    heard = []
    for number in range(8):
        (folder / f"{NAME}_{number}.py").write_text(f"value = {number}")
        when_imported(f"{NAME}_{number}", lambda module: heard.append(module.value))
    threads = [
        threading.Thread(target=importlib.import_module, args=(f"{NAME}_{number}",))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard) == list(range(8))
