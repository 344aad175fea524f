"""A small agent that speaks as `claude -p --output-format stream-json --verbose` does.

AGENT_SIZE: so much more text. AGENT_FAILS_AT, AGENT_STOPS_AT, AGENT_WAITS_AT: `work2` for the second
iteration of the stage work; waiting lasts until a signal ends it. AGENT_SESSION: the session that all
iterations continue. AGENT_WRITES: a file that gets a line in each iteration.
"""

import json
import os
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)
prompt = sys.stdin.read() or " ".join(sys.argv[1:])
here = os.environ["PLAYHEAD_STAGE"] + os.environ["PLAYHEAD_ITERATION"]
MODEL = "claude-sonnet-4-5"


def say(**members):
    known = os.environ.get("AGENT_SESSION", f"session-{os.getpid()}")
    session = {"session_id": known, "uuid": os.urandom(4).hex()}
    print(json.dumps({**members, **session}), flush=True)


def block(number, content):
    message = {"id": number, "role": "assistant", "model": MODEL, "content": [content]}
    message |= {"stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    say(type="assistant", parent_tool_use_id=None, message=message)


say(type="system", subtype="init", cwd=os.getcwd(), model=MODEL, claude_code_version="2.1.325")
block("m1", {"type": "text", "text": f"{here}: {prompt.strip()}"})
block("m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}})
result = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}
say(type="user", parent_tool_use_id=None, message={"role": "user", "content": [result]})
if os.environ.get("AGENT_WRITES"):
    with open(os.environ["AGENT_WRITES"], "a") as file:
        file.write(f"{here}\n")
if os.environ.get("AGENT_WAITS_AT") == here:
    signal.pause()
block("m2", {"type": "text", "text": "Done." + "x" * int(os.environ.get("AGENT_SIZE", "0"))})
usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 30}
failed = os.environ.get("AGENT_FAILS_AT") == here
said = "API Error: 529 overloaded" if failed else "Done."
end = {"is_error": failed, "result": said, "num_turns": 2, "total_cost_usd": 0.01, "usage": usage}
say(type="result", subtype="success", **end)
if os.environ.get("AGENT_STOPS_AT") == here:
    with open(os.environ["PLAYHEAD_STATUS"], "w") as status:
        json.dump(
            {"decision": "stop", "reason": os.environ.get("AGENT_REASON", "all done")}, status
        )
sys.exit(failed)
