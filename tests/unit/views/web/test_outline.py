import json

from playhead.testing import Reply, ToolCall
from playhead.views.web.outline import IN_FLIGHT, MOMENT, WORDS, outline


def rows(told):
    """The columns as one dict a row, with texts for their numbers."""
    columns, strings = told["columns"], told["strings"]
    made = []
    for at, ref in enumerate(told["refs"]):
        row = {name: column[at] for name, column in columns.items()}
        for name in ("boundary", "name", "brief", "fail", "how"):
            row[name] = strings[row[name]]
        row |= {"ref": ref, "kind": told["kinds"][row["kind"]], "lane": told["lanes"][row["lane"]]}
        made.append(row)
    return made


def refund(forge):
    tape = forge()
    turn = tape.turn("refund", "pay the money back")
    use = ToolCall(name="issue_refund", arguments={"order": "A-1009"})
    llm = tape.llm("Refund it.", Reply(text="**Refunding** now.", tool_calls=[use]), parent=turn)
    tool = tape.call(
        "tool", "issue_refund", {"arguments": {"order": "A-1009"}}, parent=turn, cause=llm
    )
    http = tape.call("http", "POST shop/payments", {"method": "POST"}, parent=tool, lane="main/1")
    tape.now += 0.5
    tape.outcome(http, status=200)
    tape.outcome(tool, value={"refund": "R-77"})
    tape.seam(turn, "paid", {"amount": 49.9})
    return tape, turn


def test_rows_stand_in_the_order_of_the_tree_with_what_was_said_and_seams_of_their_own(forge, told):
    tape, turn = refund(forge)
    tape.turn_end(turn)
    tape.end()
    made = rows(outline(told(tape)))
    assert [(row["kind"], row["depth"], row["name"]) for row in made] == [
        ("turn", 0, "refund"),
        ("person", 1, "person"),
        ("call", 1, "claude-sonnet-4-5"),
        ("call", 2, "issue_refund"),
        ("call", 3, "POST shop/payments"),
        ("seam", 1, "paid"),
    ]
    assert [row["above"] for row in made] == [-1, 0, 0, 2, 3, 0]
    assert made[1]["brief"] == "Refund it."
    assert made[2]["brief"] == "Refunding now."
    assert made[3]["brief"] == '(order="A-1009") → {"refund": "R-77"}'
    assert made[4]["lane"] == "main/1"


def test_each_row_says_what_it_goes_back_to(forge, told):
    tape, _ = refund(forge)
    tape.end()
    made = rows(outline(told(tape)))
    because = {row["name"]: (row["because"], WORDS[row["word"]]) for row in made}
    assert because["POST shop/payments"] == (3, "inside")
    assert because["issue_refund"] == (2, "asked for by")
    assert because["claude-sonnet-4-5"] == (0, "part of")
    assert because["refund"][0] == -1


def test_times_are_microseconds_and_what_never_ended_is_in_flight(forge, told):
    tape, _ = refund(forge)
    made = {row["name"]: row for row in rows(outline(told(tape)))}
    assert made["refund"]["took"] == IN_FLIGHT
    assert made["POST shop/payments"]["took"] == 500_000
    assert made["paid"]["took"] == MOMENT
    assert made["paid"]["at"] == made["POST shop/payments"]["at"] + 500_000


def test_a_killed_run_names_its_last_seam_and_what_was_in_flight(forge, told):
    tape, _ = refund(forge)
    lost = tape.tool("slow", {}) + 0
    flying = tape.call("tool", "never_ends", {"arguments": {}})
    made = outline(told(tape))
    assert made["run"]["status"] == "interrupted"
    assert made["last_seam"] == "paid"
    assert made["in_flight"] == [f"{tape.pid}:{flying}"]
    assert f"{tape.pid}:{lost}" not in made["in_flight"]


def test_a_failure_is_on_its_row(forge, told):
    tape = forge()
    tape.tool("pay", {}, error=ValueError("no money"))
    tape.end()
    (row,) = rows(outline(told(tape)))
    assert row["fail"] == "ValueError: no money"


def test_an_empty_run_has_empty_columns(forge, told):
    tape = forge()
    tape.end()
    made = outline(told(tape))
    assert made["refs"] == []
    assert set(map(len, made["columns"].values())) == {0}
    json.dumps(made)


def test_what_was_printed_stands_beside_the_steps_with_its_colours_alone(forge, told):
    tape = forge()
    for now, stream, text in (
        (0, "stdout", "a"),
        (0.01, "stdout", "\x1b[31mb\x1b[0m\n"),
        (1, "stderr", "\x1b]0;title\x07\x1b[2Kc"),
    ):
        tape.now = now
        tape.event("output", {"stream": stream, "text": text})
    tape.end()
    assert outline(told(tape))["printed"] == [
        [0, "stdout", "a\x1b[31mb\x1b[0m\n"],
        [1_000_000, "stderr", "c"],
    ]
