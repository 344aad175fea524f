"""A server that shows the runs of a shared store beside its own."""

import shutil

import pytest

from playhead.errors import RemoteError
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import pull
from playhead.remote.pushing import push
from playhead.tape.annotations import read_annotations
from playhead.tape.manifest import read_manifest
from playhead.views.web.access_tokens import AccessTokens
from playhead.views.web.api.shared_runs import SharedRuns

OWNER = {"Authorization": "Bearer owner-token"}
PATH = "/api/recordings/20261115-071105-k3f9"


class Network:
    """The connection to the shared store, which a test can cut."""

    def __init__(self, url):
        self.url = url
        self.is_down = False

    def connect(self):
        network = self

        class Cut(ObjectFolder):
            def get(self, path, largest):
                if network.is_down:
                    raise RemoteError("the network is gone")
                return super().get(path, largest)

            def list(self, prefix):
                if network.is_down:
                    raise RemoteError("the network is gone")
                return super().list(prefix)

        return Cut(self.url, for_writing=True)


@pytest.fixture
def network(tmp_path):
    return Network(f"file://{tmp_path}/shared")


@pytest.fixture
def team(serve, store, refund, forge, network):
    """A server with one run of its own; `refund` is only in the shared store, and `both` is in both."""
    remote = network.connect()
    for path in (refund.path, forge("both", name="both").end()):
        push(path, remote)
    shutil.rmtree(refund.path)
    forge("own", name="own").end()
    shared = SharedRuns(remote.url, store, network.connect)
    return serve(token="owner-token", shared=shared)


def test_runs_of_the_shared_store_are_listed_and_opened(team, network):
    assert team.ask("/api/recordings", **OWNER).json["remote"] == network.url
    found = team.ask("/api/remote", **OWNER).json
    assert [(one["id"], one["here"]) for one in found["runs"]] == [
        ("both", True),
        ("20261115-071105-k3f9", False),
    ]
    assert found["problems"] == []
    few = team.ask("/api/remote?q=ENV%3Dci&status=failed&tag=env&limit=1", **OWNER).json
    assert [one["id"] for one in few["runs"]] == ["20261115-071105-k3f9"]
    second = team.ask("/api/remote?limit=1&cursor=1", **OWNER).json
    assert ([one["id"] for one in second["runs"]], second["next"]) == (
        ["20261115-071105-k3f9"],
        None,
    )
    assert team.ask(PATH, **OWNER).json["summary"]["status"] == "failed"
    assert team.ask(f"{PATH}/files", **OWNER).status == 200
    assert team.ask(f"{PATH}/events?limit=2", **OWNER).status == 200
    assert team.ask("/api/recordings/absent", **OWNER).status == 404
    # The server has not pulled it.
    listed = team.ask("/api/recordings", **OWNER).json["runs"]
    assert sorted(one["id"] for one in listed) == ["both", "own"]


def test_marks_and_comments_on_a_shared_run_are_stored_there(team, network, store, tmp_path):
    ada = {"Authorization": f"Bearer {AccessTokens(store).make('Ada', 'annotate')[0]}"}
    assert team.ask(PATH, "PATCH", body={"note": "seen", "keep": True}, **ada).status == 200
    assert team.ask(f"{PATH}/comments", "POST", body={"text": "twice"}, **ada).status == 200
    pulled = pull("20261115-071105-k3f9", network.connect(), tmp_path / "other")
    manifest = read_manifest(pulled)
    assert (manifest.extra["note"], manifest.keep) == ("seen", True)
    assert [(one.by, one.text) for one in read_annotations(pulled).comments] == [("Ada", "twice")]


def test_a_shared_run_is_neither_deleted_nor_replayed_here(team):
    for method, path in (("DELETE", PATH), ("POST", f"{PATH}/replay")):
        said = team.ask(path, method, body={} if method == "POST" else None, **OWNER)
        assert said.status == 409
        assert "shared store" in said.reason
    assert team.ask("/api/remote", **OWNER).json["total"] == 2


def test_a_shared_store_that_is_away_is_an_error_and_comes_back(team, network):
    assert team.ask(PATH, **OWNER).status == 200
    network.is_down = True
    assert team.ask("/api/remote", **OWNER).reason == "the network is gone"
    assert team.ask(PATH, **OWNER).status == 200  # opened before
    assert team.ask("/api/recordings", **OWNER).json["total"] == 2
    network.is_down = False
    assert team.ask("/api/remote", **OWNER).json["total"] == 2


def test_a_link_to_one_run_does_not_list_the_shared_store(team, store):
    text, _ = AccessTokens(store).make("link", "read", run="20261115-071105-k3f9")
    link = {"Authorization": f"Bearer {text}"}
    assert team.ask(PATH, **link).status == 200
    assert team.ask("/api/remote", **link).status == 403


def test_a_server_without_a_shared_store_lists_none(serve, refund):
    site = serve()
    assert site.ask("/api/remote").json["remote"] is None
    assert site.ask("/api/recordings").json["remote"] is None
