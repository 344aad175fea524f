import re

from playhead.views.html_comparison import differences


def shown(before: str, after: str) -> list[str]:
    """Lines with their signs; what is folded is in the HTML all the same."""
    html = differences(before, after)
    found = re.findall(r"diff-sign\">(.)</span><span>([^<]*)</span>|diff-fold\">([^<]*)<", html)
    return [f"{sign}{line}" if sign else f"[{fold}]" for sign, line, fold in found]


def test_lines_that_went_and_came_stand_where_they_were():
    assert shown("a\nb\nc", "a\nB\nc") == [" a", "−b", "+B", " c"]


def test_what_is_far_from_a_change_is_folded():
    lines = [str(number) for number in range(20)]
    after = [*lines[:10], "new", *lines[10:]]
    assert shown("\n".join(lines), "\n".join(after)) == [
        "[7 unchanged lines]",
        *(f" {number}" for number in range(10)),
        "+new",
        *(f" {number}" for number in range(10, 13)),
        "[7 unchanged lines]",
        *(f" {number}" for number in range(13, 20)),
    ]


def test_markup_of_a_tape_is_text():
    assert "<script>" not in differences("<script>", "</div><script>alert(1)</script>")


def test_the_longest_texts_are_cut_and_that_is_said():
    html = differences("a\n" * 50_000, "b\n" * 50_000)
    assert len(html) < 200_000
    assert "Only the first 20,000 characters." in html
