import base64
import hashlib
import html
import json
import re
import zlib

import pytest

from playhead.views.web.viewer_files import (
    CONTENT_SECURITY_POLICY,
    bundle,
    standalone,
    static_files,
)

NASTY = '</script><script>alert(1)</script><!-- " \ud800'


def test_every_file_that_the_page_asks_for_is_there():
    files = static_files()
    page = files["index.html"][1].decode()
    asked = re.findall(r'(?:src|href)="/static/([^"]+)"', page)
    assert {"app.js", "base.css", "icon.svg"} <= set(asked) <= set(files)
    for name, (_, raw) in files.items():
        for module in (
            re.findall(r'from "\./([^"]+)"', raw.decode()) if name.endswith(".js") else ()
        ):
            assert module in files


def test_no_script_uses_what_reads_markup_or_runs_text():
    for name, (_, raw) in static_files().items():
        if name.endswith(".js"):
            said = re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc",
                raw.decode(),
            )
            assert said is None, f"{name}: {said}"


def test_the_policy_lets_nothing_in_that_is_not_ours():
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    page = static_files()["index.html"][1].decode()
    assert re.search(r"<script(?![^>]*src=)|<style| on\w+=|style=", page) is None


def test_a_page_of_one_file_holds_its_data_and_nothing_in_it_ends_a_block():
    made = standalone({"start": {"page": "run"}, "outline": {"name": NASTY}}, title=NASTY)
    blocks = re.findall(r'<script type="text/plain" data-block="(\w+)">([^<]*)</script>', made)
    read = {name: json.loads(zlib.decompress(base64.b64decode(raw))) for name, raw in blocks}
    assert read == {"start": {"page": "run"}, "outline": {"name": NASTY}}
    assert made.count("alert(1)") == 1
    assert html.escape(NASTY) in made


def test_the_policy_of_a_page_of_one_file_names_its_script_and_style_by_hash():
    made = standalone({"start": {}})
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', made)[1]
    script = re.search(r'<script type="module">(.*)</script>\n</body>', made, re.DOTALL)[1]
    style = re.search(r"<style>(.*)</style>", made, re.DOTALL)[1]
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy


def test_modules_become_one_script_in_which_names_never_meet():
    sources = {
        "app.js": 'import { a as one } from "./x.js";\nconst hidden = one();\nexport const b = 1;',
        "x.js": "const hidden = 1;\nexport function a() { return hidden; }",
    }
    made = bundle("app.js", sources.__getitem__)
    assert made.index("const $x") < made.index("const $app")
    assert "const { a: one } = $x;" in made
    assert "return { a };" in made


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"app.js": 'import x from "./x.js";'}, "cannot bundle"),
        ({"app.js": "export default 1;"}, "cannot bundle"),
        (
            {"app.js": 'import { x } from "./x.js";', "x.js": 'import { y } from "./app.js";'},
            "import each other",
        ),
    ],
)
def test_what_cannot_be_bundled_is_said(sources, said):
    with pytest.raises(ValueError, match=said):
        bundle("app.js", sources.__getitem__)


def channel(value: float) -> float:
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    red, green, blue = (channel(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_text_can_be_read_on_what_is_behind_it(theme):
    style = static_files()["base.css"][1].decode()
    blocks = re.findall(r"color-scheme: \w+;(.*?)\n\s*\}", style, re.DOTALL)
    assert len(blocks) == 3
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[theme]))
    pairs = [(text, back) for text in ("text", "quiet") for back in ("back", "soft", "select")]
    pairs += [(name, f"{name}-soft") for name in ("good", "bad", "odd", "accent")]
    pairs += [("said", "back"), ("accent", "back"), ("bad", "back"), ("accent", "select")]
    pairs += [("good", "add"), ("bad", "del")]
    low = [(pair, contrast(colours[pair[0]], colours[pair[1]])) for pair in pairs]
    assert [one for one in low if one[1] < 4.5] == []
