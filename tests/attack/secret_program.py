"""The program of the secret matrix: sends every payload through every channel. `secret_program.py PORT PAYLOADS`.

`PAYLOADS` is a JSON file with a list of `{"id", "form", "text", "raw"}`; `raw` is base64. The server at PORT answers
`/ID` with that payload, in pieces where its form is `split`.
"""

import asyncio
import base64
import contextlib
import json
import logging
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from pathlib import Path

import aiohttp
import httpx
import requests

import playhead

PORT = int(sys.argv[1])
PAYLOADS = json.loads(Path(sys.argv[2]).read_text())
HOME = f"http://127.0.0.1:{PORT}"
ENCODED = ("gzip", "br", "zstd", "deflate")
TEXTS = [one for one in PAYLOADS if one["form"] not in ENCODED]
ONE_LINE = [one for one in TEXTS if one["form"] != "split" and "\n" not in one["text"]]


@playhead.tool
def tool(argument):
    return {"said": argument}


@playhead.tool
def failing_tool(argument):
    raise ValueError(argument)


def raw_of(one):
    return base64.b64decode(one["raw"])


def pieces_of(one):
    """Everything but plain texts is sent in pieces, in addition to the channels that send it whole."""
    raw = raw_of(one)
    if one["form"] == "plain":
        return [raw]
    third = len(raw) // 3
    return [raw[:third], raw[third : 2 * third], raw[2 * third :]]


def encoding_of(one):
    return {"content-encoding": one["form"]} if one["form"] in ENCODED else {}


def http_bodies():
    with httpx.Client() as client, requests.Session() as session:
        for one in PAYLOADS:
            url, headers = f"{HOME}/{one['id']}", encoding_of(one)
            client.get(url)
            session.post(f"{HOME}/sink", data=raw_of(one), headers=headers)
            client.post(f"{HOME}/sink", content=iter(pieces_of(one)), headers=headers)
            with client.stream("GET", url) as answer:
                for _ in answer.iter_raw():
                    pass
            with urllib.request.urlopen(url) as answer:
                answer.read()


async def async_bodies():
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for one in PAYLOADS:
            async with session.get(f"{HOME}/{one['id']}") as answer:
                await answer.read()
            async with session.post(
                f"{HOME}/sink", data=raw_of(one), headers=encoding_of(one)
            ) as answer:
                await answer.read()


def http_heads():
    with httpx.Client() as client:
        for one in ONE_LINE:
            client.get(f"{HOME}/head/{one['id']}", headers={"x-note": one["text"]})
            client.get(f"{HOME}/sink?q={urllib.parse.quote(one['text'])}")


def sockets():
    server = socket.create_server(("127.0.0.1", 0))

    def echo():
        while True:
            there, _ = server.accept()
            with there:
                while block := there.recv(65536):
                    there.sendall(block)

    threading.Thread(target=echo, daemon=True).start()
    for one in TEXTS:
        with socket.create_connection(server.getsockname()) as here:
            for piece in pieces_of(one):
                here.sendall(piece)
            here.shutdown(socket.SHUT_WR)
            while here.recv(65536):
                pass


def tools():
    for one in TEXTS:
        tool(one["text"])
        with contextlib.suppress(ValueError):
            failing_tool(one["text"])


def processes():
    for form in dict.fromkeys(one["form"] for one in TEXTS):
        lines = "\n".join(one["text"] for one in TEXTS if one["form"] == form) + "\n"
        subprocess.run(["cat"], input=lines.encode(), capture_output=True, check=True)
    for at in range(0, len(ONE_LINE), 40):
        words = [one["text"] for one in ONE_LINE[at : at + 40]]
        subprocess.run(["true", *words], check=True)


def database():
    with sqlite3.connect(":memory:") as rows:
        rows.execute("create table t (a text)")
        for one in TEXTS:
            rows.execute("insert into t values (?)", (one["text"],))
        rows.execute("select a from t").fetchall()


def output():
    log = logging.getLogger("agent")
    log.addHandler(logging.StreamHandler())
    for one in TEXTS:
        if one["form"] == "split":
            for piece in pieces_of(one):
                sys.stdout.write(piece.decode("utf-8", "replace"))
                sys.stdout.flush()
                sys.stderr.write(piece.decode("utf-8", "replace"))
                sys.stderr.flush()
            sys.stdout.write("\n")
            sys.stderr.write("\n")
        else:
            print(one["text"])
            log.warning("%s", one["text"])


CHANNELS = {
    "http_bodies": 5 * len(PAYLOADS),
    "async_bodies": 2 * len(PAYLOADS),
    "http_heads": 3 * len(ONE_LINE),
    "sockets": 2 * len(TEXTS),
    "tools": 3 * len(TEXTS),
    "processes": 2 * len(TEXTS) + len(ONE_LINE),
    "database": 2 * len(TEXTS),
    "output": 2 * len(TEXTS),
}

if __name__ == "__main__":
    for name in CHANNELS:
        work = globals()[name]
        asyncio.run(work()) if asyncio.iscoroutinefunction(work) else work()
    Path("cells.json").write_text(json.dumps(CHANNELS))
