"""Where in the host's code something was asked."""

import asyncio
import json
import sys

from playhead.recording import where


def here():
    return where.fragment(sys._getframe(1))


def test_a_place_is_a_file_a_line_and_a_function():
    line, place = sys._getframe().f_lineno, json.loads(here())
    assert place.endswith(f"test_where.py:{line} test_a_place_is_a_file_a_line_and_a_function")


def test_paths_below_the_working_folder_are_shown_from_there(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert where.shown(str(tmp_path / "agent.py")) == "agent.py"
    assert where.shown("/elsewhere/agent.py") == "/elsewhere/agent.py"
    assert json.loads(where.quoted(str(tmp_path / "a" / "b.py"), 3, "f")) == "a/b.py:3 f"


def test_two_lines_of_one_function_are_two_places():
    first = here()
    second = here()
    assert first != second


def test_a_file_name_that_is_no_unicode_is_json_to_every_reader():
    namespace = {"here": here}
    exec(compile("def f():\n    return here()", "odd\udcff.py", "exec"), namespace)
    assert json.loads(namespace["f"]()).startswith("odd\\udcff.py:2 f")


def test_code_made_as_the_program_goes_does_not_make_us_grow(monkeypatch):
    monkeypatch.setattr(where, "_MOST", 50)
    for number in range(200):
        namespace = {"here": here}
        exec(f"def f{number}():\n    return here()\nplace = f{number}()", namespace)
        assert json.loads(namespace["place"]).endswith(f" f{number}")
    assert len(where._seen) <= 51


def test_the_asker_is_the_users_own_code_and_no_librarys():
    found = []

    class Encoder(json.JSONEncoder):
        def default(self, value):
            found.append(where.asker())

    json.dumps([object()], cls=Encoder)
    assert found[0].f_code.co_name == "default"

    def called_by_asyncio():
        found.append(where.asker())

    async def main():
        asyncio.get_running_loop().call_soon(called_by_asyncio)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert found[1].f_code.co_name == "called_by_asyncio"


def test_libraries_are_told_from_the_users_own():
    assert where.is_foreign(json.__file__)
    assert where.is_foreign(where.__file__)
    assert where.is_foreign(sys.modules["pytest"].__file__)
    assert where.is_foreign("<string>")
    assert not where.is_foreign(__file__)
