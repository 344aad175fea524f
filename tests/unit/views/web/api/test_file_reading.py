"""The files of a run over HTTP: the changes by step, and the text of each version that they name."""

from urllib.parse import quote

import pytest

from playhead.views.web.api import file_reading

RUN = "/api/recordings/20261115-101105-edit"


@pytest.fixture
def form(site, edited):
    said = site.ask(f"{RUN}/files")
    assert said.status == 200
    return said.json


def versions(form):
    return {
        entry["id"]: entry
        for step in form["steps"]
        for change in step["changes"]
        for entry in (change["before"], change["after"])
        if entry
    }


def version(site, name):
    return site.ask(f"{RUN}/files/{quote(name, safe='')}")


def test_changes_are_listed_by_the_step_that_made_them(form):
    assert [(one["step"], one["calls"], one["after"]) for one in form["steps"]] == [
        (2, [2], None),
        (2, [], 2),
        (3, [3], None),
        (4, [4], None),
    ]
    first, own, odd, last = form["steps"]
    assert (first["llm"], first["changes"][0]["added"], first["changes"][0]["removed"]) == (1, 1, 1)
    assert own["between_calls"]
    assert own["at_us"] - first["at_us"] == 500_000
    assert {one["path"]: one["how"] for one in odd["changes"]}["notes"] == "deleted"
    assert (odd["git_files"], odd["gaps"], form["gaps"]) == (1, 1, 1)
    assert (last["changes"][0]["before"]["mode"], last["changes"][0]["after"]["mode"]) == (
        "100644",
        "100755",
    )


def test_files_below_git_are_listed_on_request(site, edited):
    odd = site.ask(f"{RUN}/files?everything=true").json["steps"][2]
    assert (odd["git_files"], ".git/index" in {one["path"] for one in odd["changes"]}) == (0, True)


def test_every_version_says_its_text_or_why_there_is_none(site, form):
    said = {}
    for name in versions(form):
        if not name.startswith("hash:") and name != "-":
            told = version(site, name).json
            said[told["content"]] = told
    assert {"text", "link", "binary"} <= set(said)
    assert said["link"]["text"] == "app.py"
    assert said["binary"]["text"] is None
    after = form["steps"][0]["changes"][0]["after"]
    assert version(site, after["id"]).json["text"].splitlines()[1] == "PORT = 9000  # <script>"


def test_names_and_contents_of_strangers_are_data(site, form):
    path = next(one["path"] for one in form["steps"][2]["changes"] if one["path"].startswith("a\n"))
    assert path == "a\n<img src=x onerror=alert(2)>\x1b[31m\\udcff\u202e.html"
    assert site.ask(f"{RUN}/files").headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["0" * 64, "git:" + "0" * 40, "link:6162"])
def test_a_version_that_the_run_does_not_name_is_not_found(site, edited, name):
    said = version(site, name)
    assert (said.status, "before.id" in said.json["error"]["next"]) == (404, True)


@pytest.mark.parametrize(
    "name", ["hash:" + "ab" * 32, "-", "none", "..%2f..%2fetc", "link:6", "A" * 64]
)
def test_only_ids_of_content_are_versions(site, edited, name):
    assert version(site, name).status in (400, 404)


def test_a_blob_that_the_store_lost_is_missing_and_the_changes_are_listed(site, edited, store):
    for pack in (store / "blobs" / "packs").iterdir():
        if pack.suffix == ".pack":
            pack.write_bytes(pack.read_bytes()[:8])
    (store / "blobs" / "index.db").unlink(missing_ok=True)
    form = site.ask(f"{RUN}/files").json
    change = form["steps"][0]["changes"][0]
    assert (change["added"], change["how"]) == (None, "modified")
    assert version(site, change["after"]["id"]).json["content"] == "missing"


def test_a_long_list_of_changes_is_cut_and_the_rest_counted(site, edited, monkeypatch):
    monkeypatch.setattr(file_reading, "MOST_CHANGES", 3)
    monkeypatch.setattr(file_reading, "MOST_COUNTED", 1)
    form = site.ask(f"{RUN}/files").json
    assert sum(len(one["changes"]) for one in form["steps"]) == 3
    assert form["changes_left_out"] == sum(one["changes_left_out"] for one in form["steps"]) == 6
    assert [len(one["changes"]) for one in form["steps"]] == [1, 1, 1, 0]
    assert form["steps"][0]["changes"][0]["added"] is None


def test_a_step_with_many_changes_leaves_room_for_the_steps_after_it(site, edited, monkeypatch):
    monkeypatch.setattr(file_reading, "MOST_PER_STEP", 2)
    form = site.ask(f"{RUN}/files").json
    assert [len(one["changes"]) for one in form["steps"]] == [1, 1, 2, 1]
    assert [one["changes_left_out"] for one in form["steps"]] == [0, 0, 4, 0]


def test_a_run_without_a_workspace_has_no_files(site, forge):
    tape = forge()
    tape.tool("lookup", {}, value=1)
    tape.end()
    form = site.ask(f"/api/recordings/{tape.path.name}/files").json
    assert (form["workspaces"], form["steps"]) == ([], [])
    assert site.ask(f"/api/recordings/{tape.path.name}").json["model"]["file_events"] == 0


def test_the_model_of_a_run_says_that_there_are_files(site, edited):
    assert site.ask(RUN).json["model"]["file_events"] == 4
