"""The Files view of a run, in a real browser: it follows the playhead, and what strangers named is text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import HERE, Server
from tests.browser.late import Held
from tests.browser.porter import SERVER

from playhead.tape.manifest import read_manifest

pytestmark = pytest.mark.browser

GIT = {"GIT_CONFIG_GLOBAL": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
# Names and contents that a page must not take at their word.
HOSTILE = """
import os, subprocess
subprocess.run(["true"])
nasty = "<script>alert(1)</script><img src=x onerror=alert(2)>\\x1b[31mred\\u202e"
names = [b"<img src=x onerror=alert(3)>.html", b"two\\nlines.md", b"invalid\\xff\\xfe.txt", b"\\x1b[31mred.sh"]
names += [b"__proto__", b"constructor", "\\u202egpj.py".encode(), b'"><svg onload=alert(4)>.json']
for name in names:
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"{nasty}\\n[x](javascript:alert(5))\\n<!-- {nasty}\\n")
open("binary.bin", "wb").write(bytes(range(256)) * 4)
open("long.txt", "w").write("<b>\\n" * 2500)
subprocess.run(["true"])
"""


def playhead(*words: str, cwd: Path | None = None) -> subprocess.Popen:
    argv = [sys.executable, "-m", "playhead", *words]
    return subprocess.Popen(argv, cwd=cwd, env={**os.environ, **GIT})


def wait_for(*started: subprocess.Popen) -> None:
    assert [one.wait(100) for one in started] == [0] * len(started)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict:
    """A store with the run of the porter and one with hostile files, and both as pages of one file."""
    top = tmp_path_factory.mktemp("files")
    home, project, other = top / "home", top / "project", top / "other"
    for folder in (project / "src", project / "config", other):
        folder.mkdir(parents=True)
    (project / "src" / "server.py").write_text(SERVER)
    (project / "notes.txt").write_text("remember the milk\n")
    script = "git init -q . && git add -A && git commit -qm one"
    subprocess.run(["sh", "-c", script], cwd=project, env={**os.environ, **GIT}, check=True)
    option = ("--quiet", "--store", str(home))
    agents = {"porter": (project, str(HERE / "porter.py")), "hostile": (other, "-c", HOSTILE)}
    wait_for(
        *(
            playhead("record", *option, "--name", name, "--", sys.executable, *command, cwd=folder)
            for name, (folder, *command) in agents.items()
        )
    )
    found = {read_manifest(one).name: one.name for one in (home / "runs").iterdir()}
    pages = ((found[name], str(home / f"{name}.html")) for name in agents)
    wait_for(*(playhead("export", run, *option[1:], "--html", page) for run, page in pages))
    return {**found, "home": home}


@pytest.fixture(scope="module")
def site(runs):
    made = Server(runs["home"])
    yield made
    made.stop()


def test_changes_are_on_the_clock_of_the_timeline(site, runs):
    """It starts with the agent, after the imports of the program."""
    run = runs["porter"]
    axis = site.ask(f"/api/recordings/{run}")["model"]["run"]["axis_us"]
    times = [one["at_us"] for one in site.ask(f"/api/recordings/{run}/files")["steps"]]
    assert len(times) > 5
    assert 0 < times[0] < times[-2] <= axis


@pytest.fixture
def porter(tab, site, runs):
    """`porter(theme=…)`: the run's page with its Files view open, at the first change."""

    def open_files(**options):
        shown = tab(site.url, **options)
        page = shown.open(f"/run/{runs['porter']}")
        page.get_by_role("tab", name=re.compile("^Files")).click()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        expect(page.locator(".file-head h2")).to_have_text("src/server.py")
        return shown, page

    return open_files


def row(page, name):
    return page.locator(".file-row.file", has_text=name)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_tree_and_the_diff_are_those_of_the_step(porter, theme):
    shown, page = porter(theme=theme)
    expect(page.locator(".file-row.file")).to_have_text(["Mserver.py+1−1"])
    expect(page.locator(".file-diff del .code")).to_have_text("PORT = 8000  # the port of the demo")
    expect(page.locator(".file-diff ins .code")).to_contain_text("os.environ.get")
    expect(page.locator(".file-step")).to_contain_text("bash")
    expect(page.locator(".file-step")).to_contain_text("asked for by")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".file-step")).to_contain_text("The agent's own code")
    expect(row(page, "memory.json")).to_have_class(re.compile("now"))
    expect(row(page, "server.py")).not_to_have_class(re.compile("now"))
    page.keyboard.press("ArrowRight")
    expect(page.locator(".file-head h2")).to_have_text("src/server.py")
    expect(page.locator(".file-diff ins")).to_have_count(7)
    expect(page.locator(".files-bar .clock")).to_have_text("3 / 8 changes")
    shown.shot(f"files-{theme}")
    page.get_by_label("Previous change (←)").click()
    expect(page.locator(".file-head h2")).to_have_text("memory.json")


def test_a_diff_has_the_colours_of_its_language(porter):
    page = porter()[1]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".s-keyword", has_text="def").first).to_be_visible()
    expect(page.locator("ins .s-string", has_text='"/healthz"')).to_be_visible()
    expect(page.locator("ins .s-number", has_text="204")).to_be_visible()
    page.locator(".diff-fold").first.click()
    expect(page.locator(".s-string", has_text="A small web server.")).to_be_visible()


def test_a_file_is_compared_with_the_start_and_shown_whole(porter):
    page = porter()[1]
    page.keyboard.press("End")
    row(page, "server.py").click()
    expect(page.locator(".file-name")).to_contain_text("last changed by #")
    page.keyboard.press("v")
    expect(page.locator(".file-diff ins")).to_have_count(8)
    expect(page.locator(".file-name")).to_contain_text("mode 644 → 755")
    page.get_by_role("button", name="Whole file").click()
    expect(page.locator(".file-diff ins, .file-diff del")).to_have_count(0)
    expect(page.locator(".file-diff .diff-line")).to_have_count(30)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".file-head h2")).to_have_text("src/server.py")


def test_what_cannot_be_compared_says_why(porter):
    page = porter()[1]
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    for name, words in {
        "logo.bin": "A binary file.",
        ".env": "named like a secret",
        "serve": "src/server.py",
        "notes.txt": "remember the milk",
    }.items():
        row(page, name).last.click()
        expect(page.locator(".file-body")).to_contain_text(words)
    expect(page.locator(".file-step")).to_contain_text("below .git")


def test_the_slider_follows_the_playhead_and_moves_it(porter):
    page = porter()[1]
    slider = page.get_by_label("Step that changed files")
    expect(slider).to_have_value("1")
    page.get_by_label("To the end").click()
    expect(slider).to_have_value("8")
    page.get_by_label("To the beginning").click()
    expect(slider).to_have_value("0")
    expect(page.locator(".file-body")).to_contain_text("Nothing has changed yet")
    page.get_by_label("Speed").select_option("64")
    page.get_by_role("button", name="Play (space)").click()
    expect(slider).to_have_value("8")
    slider.fill("3")
    expect(page.locator(".file-row.now")).to_contain_text("server.py")
    page.locator(".file-step .crumb").first.click()
    expect(page.locator(".tree .row.selected")).to_contain_text("bash")
    page.keyboard.press("d")
    expect(slider).to_have_value("3")


def test_a_diff_that_arrives_late_does_not_replace_what_is_shown_since(porter):
    page = porter()[1]
    versions = re.compile("/files/[^/]+$")
    late = Held(page, versions.pattern, most=2).during(lambda: page.keyboard.press("End"))
    page.keyboard.press("Home")
    expect(page.locator(".file-body")).to_contain_text("Nothing has changed yet")
    late.release()
    expect(page.locator(".file-body")).to_contain_text("Nothing has changed yet")


def test_a_step_has_a_tab_with_its_diffs(tab, site, runs):
    page = tab(site.url).open(f"/run/{runs['porter']}")
    page.locator(".row.group-tool", has_text="test_health").click()
    page.get_by_role("tab", name="Files 2").click()
    expect(page.locator(".step-file .section-title")).to_have_text(
        ["config/settings.json", "tests/test_health.py"]
    )
    expect(page.locator(".step-file ins")).to_have_count(11)
    expect(page.locator(".s-key", has_text='"ports"')).to_be_visible()


def test_an_address_names_the_change_and_the_file(porter, tab, site):
    page = porter()[1]
    page.keyboard.press("ArrowRight")
    row(page, "server.py").click()
    address = page.url
    again = tab(site.url).open(address.removeprefix(site.url))
    expect(again.locator(".file-head h2")).to_have_text("src/server.py")
    expect(again.locator(".files-bar .clock")).to_have_text("2 / 8 changes")


def test_a_phone_shows_slider_tree_and_diff(porter):
    shown, page = porter(size=(390, 844))
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".file-tree")).to_be_visible()
    row(page, "notes.txt").click()
    expect(page.locator(".file-diff del")).to_be_in_viewport()
    shown.shot("files-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("tab", name=re.compile("^Steps")).click()
    expect(page.locator(".tree")).to_be_visible()
    expect(page.locator(".detail")).to_be_hidden()


def test_a_page_of_one_file_has_the_files_too(tab, runs):
    shown = tab(f"file://{runs['home']}", theme="dark")
    page = shown.open("/porter.html")
    page.get_by_role("tab", name=re.compile("^Files")).click()
    page.keyboard.press("End")
    row(page, "server.py").click()
    page.keyboard.press("v")
    expect(page.locator(".file-diff ins")).to_have_count(8)
    assert "view=files" in page.url
    shown.shot("files-exported")


@pytest.mark.parametrize("place", ["server", "file"])
def test_hostile_names_and_contents_are_text_and_nothing_else(tab, site, runs, place):
    shown = tab(site.url if place == "server" else f"file://{runs['home']}")
    page = shown.open(f"/run/{runs['hostile']}" if place == "server" else "/hostile.html")
    page.get_by_role("tab", name=re.compile("^Files")).click()
    page.keyboard.press("End")
    names = page.locator(".file-row.file .name").all_inner_texts()
    assert len(names) == 10
    assert {"two␊lines.md", "␛[31mred.sh", "__proto__", "\\u202egpj.py"} <= set(names)
    for index in range(len(names)):
        page.locator(".file-row.file").nth(index).click()
        expect(page.locator(".file-head h2")).to_have_text(names[index])
        expect(page.locator(".file-body > *").first).to_be_visible()
    page.get_by_role("button", name="Whole file").click()
    row(page, "lines.md").click()
    expect(page.locator(".file-diff")).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("button", name="This step").click()
    row(page, "long.txt").click()
    expect(page.locator(".file-diff ins")).to_have_count(2000)
    page.get_by_role("button", name="500 more lines").click()
    expect(page.locator(".file-diff ins")).to_have_count(2500)
    heights = "nodes => nodes.map(node => node.offsetHeight)"
    assert len(set(page.locator(".file-diff ins").evaluate_all(heights))) == 1
    assert page.locator("#app img, #app svg[onload], #app script, #app b").count() == 0
    shown.shot(f"files-hostile-{place}")


SOURCES = {
    "a.py": 'x = """open\nstill\n""" + f\'{y}\' # end\n@deco\nclass A(B): pass',
    "a.js": "const a = `one\ntwo` /* c\nd */ + 0x1f; // end\nf(/x/)",
    "a.sh": "echo ${HOME#x} $1 'it' # not $x",
    "a.html": "<a href=\"x\">&amp; <!-- c\n --> <b\nclass='y'>t</b>",
    "a.md": "# t\n```\ncode *x*\n```\n- **b** [l](u) `c` * [",
    "a.toml": '[t]\nk = """a\nb"""\nd = 1 # x\nu = "http://x#y"',
    "a.sql": "SELECT 1 -- c\n/* x */ FROM t WHERE a='b'",
    "a.rs": "fn f<'a>(x: &'a str) {}",
    "a.json": '{"a": [1, true, "b"], "__proto__": "\\u0000"',
    "b.py": '"' * 3000 + "\\" * 3000 + "'" * 3000,
    "c.js": "`" * 1999 + "\n" + "/*" * 3000 + "😀\ud800 \x00",
}


def test_tokens_are_the_text_they_were_made_of(tab, site):
    page = tab(site.url).open("/batch")
    script = """async (sources) => {
      const { languageOf, tokens } = await import("/static/syntax.js");
      return Object.entries(sources).filter(([path, text]) => {
        const lines = text.split("\\n");
        const made = tokens(lines, languageOf(path, text));
        return made.some((line, at) => line.map((one) => one[1]).join("") !== lines[at]);
      }).map(([path]) => path);
    }"""
    assert page.evaluate(script, SOURCES) == []


def test_a_difference_keeps_both_texts_whatever_their_length(tab, site):
    page = tab(site.url).open("/batch")
    script = """async () => {
      const { compared } = await import("/static/diff.js");
      const random = (seed) => () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
      const wrong = [];
      for (const [size, letters] of [[0, 2], [1, 1], [40, 3], [400, 5], [3000, 4], [6000, 1e9]]) {
        const next = random(size + 7);
        const a = Array.from({ length: size }, () => String(Math.floor(next() * letters)));
        const b = a.filter(() => next() > 0.1).flatMap((one) => (next() > 0.9 ? [one, "new" + next()] : [one]));
        const all = compared(a, b);
        const side = (skip) => all.filter((one) => one.kind !== skip).map((one) => one.text).join();
        if (side("new") !== a.join() || side("gone") !== b.join()) wrong.push(size);
        if (letters === 1e9 && all.filter((one) => one.kind !== "same").length > 1500) wrong.push("long");
      }
      return wrong;
    }"""
    assert page.evaluate(script) == []
