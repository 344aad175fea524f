"""Roles, share links and the audit log of a server for a team."""

import pytest

from playhead import clock
from playhead.errors import UsageError
from playhead.views.web.access_tokens import FILE, AccessTokens, AuditLog

RUN = "20261115-071105-k3f9"
PATH = f"/api/recordings/{RUN}"
OWNER = {"Authorization": "Bearer owner-token"}


@pytest.fixture
def tokens(store):
    return AccessTokens(store)


@pytest.fixture
def team(serve, refund, forge):
    """A server with two runs."""
    forge("other", name="other").end()
    return serve(token="owner-token")


def bearer(tokens, role, **more):
    return {"Authorization": f"Bearer {tokens.make(f'the {role}', role, **more)[0]}"}


@pytest.mark.parametrize(
    ("role", "may"),
    [("read", [200, 403, 403, 403]), ("annotate", [200, 200, 200, 403]), ("admin", [200] * 4)],
)
def test_each_role_may_do_what_it_says_and_no_more(team, tokens, refund, role, may):
    mine = bearer(tokens, role)
    asked = [
        team.ask(PATH, **mine),
        team.ask(PATH, "PATCH", body={"note": "seen"}, **mine),
        team.ask(f"{PATH}/share", "POST", body={}, **mine),
        team.ask(PATH, "DELETE", **mine),
    ]
    assert [one.status for one in asked] == may
    assert team.ask("/api/me", **mine).json == {"name": f"the {role}", "role": role, "run": None}
    refused = [one for one in asked if one.status == 403]
    assert all(f"has the role {role}; this needs" in one.reason for one in refused)
    assert refund.path.exists() == (role != "admin")


def test_comments_have_the_name_of_the_token_and_only_admins_remove_those_of_others(team, tokens):
    def named(name, role):
        return {"Authorization": f"Bearer {tokens.make(name, role)[0]}"}

    ada, bob, eve = named("Ada", "annotate"), named("Bob", "annotate"), named("Eve", "read")
    path = f"{PATH}/comments"
    assert team.ask(path, "POST", body={"text": "It refunds twice."}, **ada).status == 200
    (first,) = team.ask(path, **eve).json["comments"]
    assert (first["by"], first["text"]) == ("Ada", "It refunds twice.")
    assert team.ask(path, "POST", body={"text": "x"}, **eve).status == 403
    assert not team.ask(path, **eve).json["may_comment"]
    refused = team.ask(f"{path}/{first['id']}", "DELETE", **bob)
    assert (refused.status, refused.reason) == (403, "The comment is by Ada.")
    assert team.ask(f"{path}/none", "DELETE", **bob).status == 404
    team.ask(path, "POST", body={"text": "Seen."}, **bob)
    assert [one["by"] for one in team.ask(PATH, **eve).json["summary"]["comments"]] == [
        "Ada",
        "Bob",
    ]
    assert team.ask(f"{path}/{first['id']}", "DELETE", **ada).status == 200
    (second,) = team.ask(path, **bob).json["comments"]
    assert team.ask(f"{path}/{second['id']}", "DELETE", **OWNER).json["comments"] == []
    team.ask(PATH, "PATCH", body={"tags": {"seen": "true"}}, **bob)
    assert team.ask(PATH, **eve).json["summary"]["authors"]["tags.seen"]["by"] == "Bob"


def test_the_owner_has_every_role_and_a_wrong_token_has_none(team, tokens):
    assert team.ask("/api/me", **OWNER).json["role"] == "admin"
    assert team.ask("/api/me", Authorization="Bearer wrong").status == 401
    assert team.ask("/api/me").status == 401


def test_tokens_are_stored_as_hashes_for_their_owner_alone(tokens, store):
    text, made = tokens.make("Ada", "read")
    raw = (store / FILE).read_text()
    assert text not in raw
    assert made.sha256 in raw
    assert oct((store / FILE).stat().st_mode)[-3:] == "600"
    with pytest.raises(UsageError, match="cannot be named"):
        tokens.make("two\nlines", "read")


def test_a_token_that_expired_or_was_revoked_is_refused_at_once(team, tokens, monkeypatch):
    short, long = bearer(tokens, "read", expires_s=3600), bearer(tokens, "admin")
    assert [team.ask(PATH, **one).status for one in (short, long)] == [200, 200]
    later = clock.wall_ns() + 3601 * 10**9
    with monkeypatch.context() as patched:
        patched.setattr("playhead.views.web.access_tokens.clock.wall_ns", lambda: later)
        assert [team.ask(PATH, **one).status for one in (short, long)] == [401, 200]
    tokens.revoke("the admin")
    assert [team.ask(PATH, **one).status for one in (short, long)] == [200, 401]


def test_a_share_link_shows_one_run_and_nothing_else(team, tokens, refund):
    made = team.ask(f"{PATH}/share", "POST", body={"expires_s": 600}, **OWNER).json
    entered = team.ask(made["path"])
    assert (entered.status, entered.headers["location"]) == (303, f"/run/{RUN}")
    cookie = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert team.ask(f"/run/{RUN}", **cookie).status == 200
    for path in (PATH, f"{PATH}/events", f"{PATH}/calls/1", f"{PATH}/files", "/static/app.js"):
        assert team.ask(path, **cookie).status == 200, path
    assert team.ask("/api/me", **cookie).json["run"] == RUN
    others = ("/api/recordings", "/api/recordings/other", f"/api/diff?a={RUN}&b=other")
    for path in (*others, "/api/stats", "/api/live", "/api/audit"):
        said = team.ask(path, **cookie)
        assert (said.status, "one run" in said.reason) == (403, True), path
    for method, more in (("DELETE", {}), ("PATCH", {"body": {"note": "x"}})):
        assert team.ask(PATH, method, **more, **cookie).status == 403
    assert team.ask(f"{PATH}/share", "POST", body={}, **cookie).status == 403
    assert refund.path.exists()


def test_a_share_link_does_not_sign_a_team_member_out(team, tokens):
    mine = tokens.make("Ada", "read")[0]
    link = team.ask(f"{PATH}/share", "POST", body={}, **OWNER).json["path"]
    name = team.ask(f"/?token={mine}").headers["set-cookie"].partition("=")[0]
    entered = team.ask(link, Cookie=f"{name}={mine}")
    assert (entered.status, "set-cookie" in entered.headers) == (303, False)


def test_a_link_to_a_run_that_is_not_there_is_not_made(team, tokens):
    assert team.ask("/api/recordings/nowhere/share", "POST", body={}, **OWNER).status == 404
    assert team.ask(f"{PATH}/share", "POST", body={"expires_s": 1}, **OWNER).status == 400
    assert tokens.all() == []


def test_the_audit_log_has_changes_refusals_and_sign_ins_but_no_tokens(team, tokens, store):
    text = tokens.make("Ada", "annotate")[0]
    mine = {"Authorization": f"Bearer {text}"}
    team.ask(f"/run/{RUN}?token={text}")
    team.ask(PATH, **mine)
    team.ask(PATH, "PATCH", body={"note": "seen"}, **mine)
    team.ask(PATH, "DELETE", **mine)
    found = [
        (one["who"], one["role"], one["what"], one["status"], one["address"])
        for one in team.ask("/api/audit", **OWNER).json["lines"]
    ]
    assert found == [
        ("Ada", "annotate", f"sign in at /run/{RUN}", 303, "127.0.0.1"),
        ("Ada", "annotate", f"PATCH {PATH}", 200, "127.0.0.1"),
        ("Ada", "annotate", f"DELETE {PATH}", 403, "127.0.0.1"),
    ]
    assert text not in (store / "audit.jsonl").read_text()
    assert team.ask("/api/audit", **mine).status == 403
    assert len(AuditLog(store).last(2)) == 2


def test_a_damaged_file_of_tokens_is_an_error_and_lets_nobody_in(team, tokens, store):
    mine = bearer(tokens, "admin")
    (store / FILE).write_text('{"version": 1, "tokens": [{"id": 1}]}')
    said = team.ask(PATH, **mine)
    assert (said.status, "not a file of access tokens" in said.reason) == (503, True)
    assert team.ask(PATH, **OWNER).status == 200
    (store / FILE).write_text('{"version": 99, "tokens": []}')
    assert "newer Playhead" in team.ask(PATH, **mine).reason
