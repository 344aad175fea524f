"""Small agents of real SDKs for the tests of mixed replays, faults and forks; each is one file."""

ANTHROPIC = '''
import json, os, smtplib, sys
import anthropic
import playhead

@playhead.tool(effect="read")
def search(query):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"search {query}\\n")
    return f"Order A-17 is late. ({query})"

@playhead.tool
def send_mail(to, text):
    with smtplib.SMTP("127.0.0.1", int(os.environ["SMTP_PORT"])) as smtp:
        smtp.sendmail("a@example.com", [to], f"Subject: order\\n\\n{text}")
    return "sent"

TOOLS = {"search": search, "send_mail": send_mail}
SCHEMAS = [
    {"name": name, "description": name, "input_schema": {"type": "object", "properties": {}}}
    for name in TOOLS
]
client = anthropic.Anthropic(max_retries=int(os.environ.get("RETRIES", "2")))
messages = [{"role": "user", "content": "Where is order A-17?"}]
while True:
    asked = dict(model="claude-sonnet-4-5", max_tokens=99, system="Be polite.",
                 messages=messages, tools=SCHEMAS)
    if os.environ.get("STREAM"):
        with client.messages.stream(**asked) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**asked)
    for block in answer.content:
        if block.type == "text":
            print(block.text, flush=True)
    uses = [block for block in answer.content if block.type == "tool_use"]
    if not uses:
        break
    results = []
    for use in uses:
        try:
            said = TOOLS[use.name](**use.input)
        except OSError as error:
            if not os.environ.get("FORGIVE"):
                raise
            said = TOOLS[use.name](**use.input)
        results.append({"type": "tool_result", "tool_use_id": use.id, "content": str(said)})
    messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
    messages.append({"role": "user", "content": results})
'''

OPENAI = '''
import os
import openai

client = openai.OpenAI(max_retries=2)
answer = client.chat.completions.create(
    model="gpt-5", stream=bool(os.environ.get("STREAM")),
    messages=[{"role": "system", "content": "Be polite."}, {"role": "user", "content": "Say hello."}],
)
if os.environ.get("STREAM"):
    print("".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices))
else:
    print(answer.choices[0].message.content)
second = client.chat.completions.create(
    model="gpt-5", messages=[{"role": "user", "content": "Say goodbye."}],
)
print(second.choices[0].message.content)
'''

PROCESS = '''
import os, subprocess
done = subprocess.run(["git", "--version"], capture_output=True, text=True)
if done.returncode != 0 and os.environ.get("FORGIVE"):
    done = subprocess.run(["git", "--version"], capture_output=True, text=True)
done.check_returncode()
print("git answered", bool(done.stdout))
'''

HTTP = '''
import os, urllib.request
def fetch():
    with urllib.request.urlopen(os.environ["SITE"]) as answer:
        return answer.read()
try:
    body = fetch()
except OSError:
    if not os.environ.get("FORGIVE"):
        raise
    body = fetch()
print(body.decode())
'''
