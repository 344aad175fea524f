"""Reports of one file: nothing runs, nothing is fetched, and they carry the viewer's own style."""

import base64
import hashlib
import re

import pytest

from playhead.views.html_page import boundary_mark, page, table
from playhead.views.web.viewer_files import static_files

NASTY = "</title><script>alert(1)</script>"


@pytest.fixture
def made() -> str:
    return page(NASTY, "Compare", ["<h1>Same</h1>"])


def test_a_report_has_the_viewers_colours_and_parts(made):
    for name in ("base.css", "pages.css"):
        assert static_files()[name][1].decode() in made
    assert 'class="topbar"' in made
    assert "color-scheme: dark" in made


def test_a_report_runs_and_fetches_nothing(made):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', made)[1]
    style = re.search(r"<style>(.*?)</style>", made, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy
    assert re.search(r"<script|<link|<img| on\w+=| style=|url\(|@import", made) is None


def test_columns_say_what_a_narrow_screen_can_do_without():
    made = table("t", ("tape", "cost#?", "took#"), [["a", "1", "2"]])
    assert '<th scope="col" class="n extra">cost</th>' in made
    assert '<td>a</td><td class="n extra">1</td><td class="n">2</td>' in made


def test_a_boundary_that_nobody_knows_names_no_class_of_its_own():
    assert boundary_mark('x" onclick="alert(1)') == '<span class="mark mark-note"></span>'
    assert boundary_mark("mcp") == boundary_mark("tool")
