"""Stands for an agent that is not Python: started with -S, so that no hook of ours gets in."""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid

print(os.environ.get("NOTE") or os.urandom(2).hex(), file=sys.stderr, flush=True)
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
session = str(uuid.uuid4())
probe = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/api/hello", method="HEAD")
urllib.request.urlopen(probe).close()
for text in sys.argv[1:]:
    asked = {
        "model": "claude-opus-5-5",
        "max_tokens": 99,
        "metadata": {"user_id": json.dumps({"session_id": session})},
        "messages": [{"role": "user", "content": f"{text} (in {os.getcwd()})"}],
    }
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(url, json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            print(json.load(answer)["content"][0]["text"])
    except urllib.error.HTTPError as error:
        print(error.status)
