"""Names that hold secrets, and names that only sound like it."""

import pytest

from playhead.redact.names import is_secret_name, is_secret_variable, may_hold


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "x-api-key", "api_key"),
        *("apiKey", "OPENAI_API_KEY", "access_token", "refreshToken", "id_token", "token"),
        *("csrf-token", "client_secret", "password", "db_password", "passwd", "pwd", "passphrase"),
        *("private_key", "aws_secret_access_key", "credentials", "x-amz-security-token", "GH_PAT"),
        *("STRIPE_KEY", "DATABASE_DSN", "ocp-apim-subscription-key", "signing_key"),
    ],
)
def test_a_field_of_this_name_holds_a_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("key", "keys", "primary_key", "public_key", "keyboard", "monkey", "tokens", "max_tokens"),
        *("input_tokens", "next_page_token", "nextToken", "eos_token", "tokenizer", "author"),
        *("secretary", "pass", "passed", "path", "pattern", "cookies_enabled", "PATH", "STATUS"),
        *("max_token", "first_token", "api", "id", "PUBLIC_KEY", "credential_type"),
    ],
)
def test_a_field_of_this_name_holds_none(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["PGPASSWORD", "GITHUB_TOKEN", "API_KEY", "APIKEY", "SENTRY_DSN", "SMTP_PASS", "mySecret"],
)
def test_a_variable_of_this_name_holds_a_secret(name):
    assert is_secret_variable(name)


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "PATH", "SSH_AUTH_SOCK", "KEYBOARD", "HOME"])
def test_a_variable_of_this_name_holds_none(name):
    assert not is_secret_variable(name)


def test_a_number_is_a_secret_only_under_a_password():
    assert may_hold("password", 123456)
    assert may_hold("pin_secret", 1234)
    assert not may_hold("time_to_first_token", 0.25)
    assert not may_hold("token", 12345678)
    assert not may_hold("password", True)
    assert not may_hold("password", None)


def test_a_word_in_a_list_of_tokens_is_no_secret():
    assert not may_hold("token", "Hello")
    assert not may_hold("token", "a whole line of words")
    assert may_hold("token", "abcdefghij")
    assert may_hold("token", "Bearer abcdefghij")
