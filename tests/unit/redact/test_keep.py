"""Values that the user wants to keep."""

from playhead.redact import Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


def redactor(*keep):
    return Redactor(key=b"k", variables={"APP_PIN_SECRET": "correct-horse-battery"}, keep=keep)


def test_a_kept_field_stays_and_the_others_do_not():
    clean = redactor("Password").clean({"password": "hunter2hunter2", "api_key": "hunter2hunter2"})
    assert clean["password"] == "hunter2hunter2"
    assert clean["api_key"].startswith("redacted")


def test_a_kept_kind_stays():
    assert JWT in redactor("jwt").clean_text(f"seen {JWT} here")
    assert JWT not in redactor().clean_text(f"seen {JWT} here")


def test_a_kept_variable_is_not_a_secret():
    assert redactor("app_pin_secret").clean_text("correct-horse-battery") == "correct-horse-battery"
    assert redactor().clean_text("correct-horse-battery").startswith("redacted-variable-")


def test_a_kept_header_stays():
    assert redactor("cookie").clean_header("Cookie", "a=b") == ["Cookie", "a=b"]
    assert redactor().clean_header("Cookie", "a=b")[1].startswith("a=redacted")
