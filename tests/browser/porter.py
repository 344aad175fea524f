"""A coding agent, recorded: it edits files by shell commands and by its own code, step by step.

Run by `playhead record` in a project folder. Speaks to a scripted model over real HTTP.
"""

import json
import os
import subprocess
from pathlib import Path

import httpx

import playhead
from playhead.testing import Reply, ScriptedLLM, ToolCall, Usage

SERVER = '''\
"""A small web server."""

import os
from http.server import HTTPServer, SimpleHTTPRequestHandler

PORT = 8000  # the port of the demo


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of a folder."""

    def log_message(self, form: str, *args: object) -> None:
        print(f"{self.address_string()} {form % args}")


def main() -> None:
    server = HTTPServer(("127.0.0.1", PORT), Handler)
    print("listening on", PORT)
    server.serve_forever()


if __name__ == "__main__":
    main()
'''
STEPS = [
    (
        "The port must come from the environment.",
        """sed -i 's/^PORT = 8000.*/PORT = int(os.environ.get("PORT", "8080"))/' src/server.py""",
    ),
    (
        "A health check for the load balancer.",
        r"""python3 - <<'PY'
from pathlib import Path
path = Path("src/server.py")
text = path.read_text()
text = text.replace(
    "    def log_message",
    '    def do_GET(self) -> None:\n        if self.path == "/healthz":\n            '
    'self.send_response(204)\n            self.end_headers()\n            return\n'
    '        super().do_GET()\n\n    def log_message',
)
path.write_text(text)
PY""",
    ),
    (
        "Now a test, and the settings of the tools.",
        r"""mkdir -p tests
printf '%s\n' 'import urllib.request' '' '' 'def test_health(server):' \
  '    with urllib.request.urlopen(f"{server}/healthz") as answer:' \
  '        assert answer.status == 204  # no content' > tests/test_health.py
printf '{\n  "name": "demo",\n  "ports": [8080],\n  "debug": false\n}\n' > config/settings.json""",
    ),
    (
        "I commit, and put the logo and a shortcut into place.",
        """git add -A && git commit -qm 'Health check'
head -c 300 /dev/zero > logo.bin && printf 'secret' > .env
ln -s src/server.py serve && chmod +x src/server.py && rm notes.txt""",
    ),
]


# Which steps are left out, by number: a second run that went another way.
LEFT_OUT = os.environ.get("PORTER_LEAVES_OUT", "")
DONE = [step for number, step in enumerate(STEPS, 1) if str(number) not in LEFT_OUT]


def plan(request):
    step = DONE[request.turn - 1] if request.turn <= len(DONE) else None
    if step is None:
        return Reply(
            text="Done: the port, the health check and a test.", usage=Usage(input=900, output=30)
        )
    return Reply(
        text=step[0],
        tool_calls=[ToolCall(name="bash", arguments={"command": step[1]})],
        usage=Usage(input=700, output=60),
    )


@playhead.tool
def bash(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main() -> None:
    messages = [{"role": "user", "content": "Make the port configurable and add a health check."}]
    with ScriptedLLM(plan) as llm, httpx.Client(base_url=llm.url, timeout=30) as client:
        while True:
            body = {"model": "claude-sonnet-5-5", "max_tokens": 500, "messages": messages}
            said = client.post("/v1/messages", json=body).json()["content"]
            messages.append({"role": "assistant", "content": said})
            uses = [one for one in said if one["type"] == "tool_use"]
            if not uses:
                break
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": one["id"],
                    "content": bash(**one["input"]) or "ok",
                }
                for one in uses
            ]
            messages.append({"role": "user", "content": results})
            Path("memory.json").write_text(json.dumps({"messages": len(messages)}) + "\n")
    for name in os.environ.get("NASTY", "").split("|"):
        if name:
            Path(name).write_text(f"{name}\n")


if __name__ == "__main__":
    main()
