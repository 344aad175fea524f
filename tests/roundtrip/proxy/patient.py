"""As native.py: asks once, waits for a line, asks again, and leaves the answers in a file."""

import json
import os
import sys
import urllib.request

url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
with open(sys.argv[1], "w") as answers:
    for text in ("First?", "Second?"):
        said = [{"role": "user", "content": text}]
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": said}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            print(json.load(answer)["content"][0]["text"], file=answers, flush=True)
        sys.stdin.readline()
