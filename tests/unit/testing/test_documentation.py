"""The examples of docs/scripted-llm.md do what the page says."""

import json
import re
from pathlib import Path

import pytest
import tomllib

from playhead.testing import Cut, Failure, Reply, ToolCall, load_script
from playhead.testing.scripted_llm.script_file import _REPLY
from playhead.testing.site import READY_ROUTES

PAGE = (Path(__file__).parents[3] / "docs" / "scripted-llm.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = [source for language, source in BLOCKS if language == "python"]


@pytest.mark.parametrize("source", PROGRAMS, ids=range(len(PROGRAMS)))
def test_every_program_on_the_page_runs(source):
    exec(compile(source, "docs/scripted-llm.md", "exec"), {})


def test_the_scripts_on_the_page_are_what_the_page_says():
    scripts = dict(BLOCKS)
    look, overloaded, cut, last = load_script(tomllib.loads(scripts["toml"])).replies
    assert look.tool_calls == (ToolCall(name="ls", arguments={"path": "."}),)
    assert overloaded.error == Failure(status=529, retry_after=0.5)
    assert cut.cut == Cut(after=4, mid_event=True)
    assert last == Reply(text="There are two files.", chunk_delay=0.02)
    assert len(load_script(json.loads(scripts["json"])).replies) == 4


def test_every_field_and_every_route_is_on_the_page():
    assert [field for field in _REPLY if f"`{field}`" not in PAGE] == []
    routes = {route.rstrip("/") for route in READY_ROUTES}
    assert [route for route in routes if f"`{route}" not in PAGE] == []
