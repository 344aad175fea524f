"""Every page is read by axe-core in both themes: nothing serious stands in the way of a keyboard or a screen reader."""

from pathlib import Path

import axe_playwright_python
import pytest

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
FIND = """async () => {
  const found = await axe.run();
  const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.failureSummary}`);
  return { passed: found.passes.length, problems: serious.flatMap(told) };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(tab, server, team, theme):
    shown = tab(server.url, theme=theme)
    found = {}
    for path in (
        "/",
        f"/run/{team}",
        "/compare",
        f"/compare?a={team}&b={team}",
        "/stats",
        "/batch",
    ):
        page = shown.open(path)
        page.evaluate(AXE)
        found[path] = page.evaluate(FIND)
        assert found[path]["passed"] > 5, "axe has read nothing"
    assert {path: one["problems"] for path, one in found.items() if one["problems"]} == {}
