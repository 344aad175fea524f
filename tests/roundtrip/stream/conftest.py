"""What the tests of servers and of streams share."""

import shutil
import subprocess

import pytest


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("There is no openssl here.")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    made = ["openssl", *words, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(made, check=True, capture_output=True)
    return str(cert), str(key)
