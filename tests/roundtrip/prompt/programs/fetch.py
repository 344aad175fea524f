"""Fetches a page; forgives the network one failure if it is told so."""

import os
import urllib.request


def fetch():
    with urllib.request.urlopen(os.environ["SITE"]) as answer:
        return answer.read()


try:
    body = fetch()
except OSError:
    if not os.environ.get("FORGIVE"):
        raise
    body = fetch()
print(len(body))
