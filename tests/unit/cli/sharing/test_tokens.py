"""`playhead token` and `playhead share`: tokens, links, and errors that say what to do."""

import json

import pytest

from playhead.views.web.access_tokens import AccessTokens


@pytest.fixture
def run(forge):
    forge("2026-refund", name="refund").end()


def test_a_token_is_printed_once_listed_without_its_text_and_revoked(store, run, playhead):
    made = playhead("token", "create", "Ada", "--role", "annotate", "--store", store)
    text = made.out.strip()
    assert AccessTokens(store).access_of(text).role == "annotate"
    assert "Ada: annotate, does not expire" in made.err
    listed = playhead("token", "list", "--store", store)
    assert "annotate" in listed.out
    assert text not in listed.out
    assert playhead("token", "revoke", "Ada", "--store", store).code == 0
    assert AccessTokens(store).access_of(text) is None
    assert "No tokens" in playhead("token", "list", "--store", store).out
    log = playhead("token", "log", "--store", store).out.splitlines()
    assert ["create token" in log[0], "revoke token" in log[1]] == [True, True]
    again = playhead("token", "revoke", "Ada", "--store", store)
    assert (again.code, "There is no token 'Ada'" in again.err) == (2, True)


def test_a_link_names_the_server_and_opens_one_run(store, run, playhead):
    asked = ("share", "2026-refund", "--store", store)
    nowhere = playhead(*asked)
    assert (nowhere.code, "No server of this store is running" in nowhere.err) == (2, True)
    made = playhead(*asked, "--url", "https://team.example/", "--expires", "1d", "--json")
    found = json.loads(made.out)
    address, _, text = found["url"].partition("?token=")
    assert address == "https://team.example/run/2026-refund"
    access = AccessTokens(store).access_of(text)
    assert (access.role, access.run) == ("read", "2026-refund")
    assert found["expires_at"] > found["made_at"]
    listed = playhead("token", "list", "--store", store).out
    assert f"expires {found['expires_at'][:10]} " in listed
    assert playhead("share", "nowhere", "--store", store, "--url", "http://x").code == 2
