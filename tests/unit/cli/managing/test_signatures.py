"""`seal --sign`, and what `verify` says about signatures."""

import json
import os
import subprocess

import pytest


@pytest.fixture
def key(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    made = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", made], check=True)
    return made


def sealed(forge, playhead, store, key):
    tape = forge()
    tape.tool("lookup", {"n": 1}, value=2)
    run = tape.end()
    ended = playhead("seal", run.name, "--sign", key, "--store", store)
    assert ended.code == 0, ended.err
    return run


def test_verify_names_the_key_and_a_known_signer(forge, playhead, store, key):
    run = sealed(forge, playhead, store, key)
    said = playhead("verify", run.name, "--store", store)
    assert said.code == 0
    assert "signed by an unknown key, SHA256:" in said.out.replace("\n", " ")
    public = key.with_suffix(".pub").read_text()
    (key.parent / "allowed_signers").write_text(f"alice@example.com {public}")
    assert (
        "signed by alice@example.com (SHA256:" in playhead("verify", run.name, "--store", store).out
    )
    (row,) = json.loads(playhead("verify", run.name, "--json", "--store", store).out)
    assert row["signature"]["signer"] == "alice@example.com"
    assert row["signature"]["good"] is True


def test_a_rewritten_command_does_not_fit_the_signature(forge, playhead, store, key):
    run = sealed(forge, playhead, store, key)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["command"] = ["rm", "-rf", "/"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    said = playhead("verify", run.name, "--store", store)
    assert said.code == 4
    assert "the signature is WRONG" in said.out


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN SSH SIGNATURE-----\nAAAA\n"])
def test_a_signature_that_is_none_is_wrong(forge, playhead, store, key, content):
    run = sealed(forge, playhead, store, key)
    (run / "signature.sig").write_text(content)
    said = playhead("verify", run.name, "--store", store)
    assert (said.code, "WRONG" in said.out) == (4, True)


def test_a_link_in_the_place_of_a_signature_is_not_followed(forge, playhead, store, key):
    run = sealed(forge, playhead, store, key)
    os.replace(run / "signature.sig", run / "other")
    os.symlink(run / "other", run / "signature.sig")
    said = playhead("verify", run.name, "--store", store)
    assert (said.code, "cannot be read" in said.out.replace("\n", " ")) == (4, True)


def test_a_file_that_is_not_a_key_cannot_sign(forge, playhead, store, key):
    run = forge().end()
    (store / "text").write_text("not a key")
    said = playhead("seal", run.name, "--sign", store / "text", "--store", store)
    assert said.code == 2
    assert "cannot sign" in said.err
