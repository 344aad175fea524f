"""A hooked Python that asks a model itself, and then has a program that is not hooked ask one."""

import json
import os
import subprocess
import sys
import urllib.request

own = os.environ["ANTHROPIC_BASE_URL"]
asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Parent?"}]}
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
request = urllib.request.Request(own + "/v1/messages", json.dumps(asked).encode(), headers)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["content"][0]["text"])
native = os.path.join(os.path.dirname(__file__), "native.py")
child = subprocess.run([sys.executable, "-S", native, "Child?"], stdout=subprocess.PIPE, check=True)
print(child.stdout.decode().strip())
print(own)
