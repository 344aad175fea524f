"""Small programs that send one request and write one file, each in another language or by another way past hooks.

Each reads SERVER, PORT and OUTSIDE from its environment. Only those whose interpreter or compiler is installed are
made.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = {
    "client.js": """
require("fs").appendFileSync(process.env.OUTSIDE + "/node.log", "x\\n");
const asked = require("http").request(process.env.SERVER + "/node", {method: "POST"}, (answer) =>
  answer.on("data", (data) => process.stdout.write("node " + data)));
asked.end("x");
""",
    "client.c": r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char text[4096];
    int got, size = 0;
    if (argc > 1) { /* a daemon */
        if (fork()) return 0;
        setsid();
        if (fork()) return 0;
        close(0), close(1), close(2);
    }
    snprintf(text, sizeof text, "%s/c.log", getenv("OUTSIDE"));
    FILE *log = fopen(text, "a");
    if (log) fputs("x\n", log), fclose(log);
    int made = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {AF_INET, htons(atoi(getenv("PORT"))), {htonl(INADDR_LOOPBACK)}};
    if (connect(made, (void *)&to, sizeof to)) return 1;
    dprintf(made, "POST /c HTTP/1.0\r\nContent-Length: 1\r\n\r\nx");
    while ((got = read(made, text + size, sizeof text - 1 - size)) > 0) size += got;
    text[size] = 0;
    printf("c %s", strstr(text, "\r\n\r\n") + 4);
    return 0;
}
""",
    "client.go": """
package main
import ("fmt"; "io"; "net/http"; "os"; "strings")
func main() {
    log, _ := os.OpenFile(os.Getenv("OUTSIDE")+"/go.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
    log.WriteString("x\\n")
    answer, err := http.Post(os.Getenv("SERVER")+"/go", "text/plain", strings.NewReader("x"))
    if err != nil { os.Exit(1) }
    body, _ := io.ReadAll(answer.Body)
    fmt.Print("go ", string(body))
}
""",
    "client.rs": """
use std::io::{Read, Write};
fn main() {
    let path = format!("{}/rust.log", std::env::var("OUTSIDE").unwrap());
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    log.write_all(b"x\\n").unwrap();
    let to = format!("127.0.0.1:{}", std::env::var("PORT").unwrap());
    let mut made = std::net::TcpStream::connect(to).unwrap();
    made.write_all(b"POST /rust HTTP/1.0\\r\\nContent-Length: 1\\r\\n\\r\\nx").unwrap();
    let mut text = String::new();
    made.read_to_string(&mut text).unwrap();
    println!("rust {}", text.lines().last().unwrap());
}
""",
    "client.pl": r"""
use IO::Socket::INET;
open(my $log, ">>", "$ENV{OUTSIDE}/perl.log"); print $log "x\n"; close $log;
my $made = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ENV{PORT}) or exit 1;
print $made "POST /perl HTTP/1.0\r\nContent-Length: 1\r\n\r\nx";
my @lines = <$made>; print "perl $lines[-1]";
""",
    "client.rb": """
require "net/http"
File.open("#{ENV['OUTSIDE']}/ruby.log", "a") { |log| log.puts "x" }
puts "ruby " + Net::HTTP.post(URI(ENV["SERVER"] + "/ruby"), "x").body
""",
    "client.php": r"""<?php
file_put_contents(getenv("OUTSIDE") . "/php.log", "x\n", FILE_APPEND);
$made = stream_socket_client("tcp://127.0.0.1:" . getenv("PORT"));
fwrite($made, "POST /php HTTP/1.0\r\nContent-Length: 1\r\n\r\nx");
$lines = explode("\n", trim(stream_get_contents($made))); echo "php " . end($lines) . "\n";
""",
    "tcp.sh": r"""
echo x >> "$OUTSIDE/bash.log"
exec 3<>/dev/tcp/127.0.0.1/$PORT || exit 1
printf 'POST /bash HTTP/1.0\r\nContent-Length: 1\r\n\r\nx' >&3
while IFS= read -r line <&3; do last=$line; done; echo "bash $last"
""",
    "nc.sh": r"""
printf 'POST /nc HTTP/1.0\r\nContent-Length: 1\r\n\r\nx' | nc -N 127.0.0.1 $PORT | tail -1
""",
    "plain.py": """
import os, urllib.request
open(os.environ["OUTSIDE"] + "/python.log", "a").write("x\\n")
print("python", urllib.request.urlopen(os.environ["SERVER"] + "/python", b"x").read().decode().strip())
""",
    "ctypes_.py": """
import ctypes, os, struct
open(os.environ["OUTSIDE"] + "/ctypes.log", "a").write("x\\n")
libc = ctypes.CDLL(None)
made, port = libc.socket(2, 1, 0), int.from_bytes(struct.pack(">H", int(os.environ["PORT"])), "little")
assert libc.connect(made, struct.pack("=HHI8x", 2, port, 0x0100007F), 16) == 0
text = b"POST /ctypes HTTP/1.0\\r\\nContent-Length: 1\\r\\n\\r\\nx"
libc.send(made, text, len(text), 0)
room = ctypes.create_string_buffer(4096)
while libc.recv(made, room, 4096, 0) > 0: pass
print("ctypes ok")
""",
    "pycurl_.py": """
import io, os, pycurl
open(os.environ["OUTSIDE"] + "/pycurl.log", "a").write("x\\n")
room, made = io.BytesIO(), pycurl.Curl()
made.setopt(made.URL, os.environ["SERVER"] + "/pycurl")
made.setopt(made.POSTFIELDS, "x")
made.setopt(made.WRITEDATA, room)
made.perform()
print("pycurl", room.getvalue().decode().strip())
""",
}


def make_programs(folder: Path, python: str = sys.executable) -> dict[str, list[str]]:
    """Name → command line. All paths are full ones, so that no shim on PATH is found."""
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    at = {one: str(folder / one) for one in SOURCES}
    found = {
        "python": [python, at["plain.py"]],
        "python -I": [python, "-I", at["plain.py"]],
        "python -S": [python, "-S", at["plain.py"]],
        "ctypes": [python, at["ctypes_.py"]],
        "bash": ["/bin/bash", at["tcp.sh"]],
    }
    if _compiled(["cc", "-w", "-static", "-o", f"{folder}/c", at["client.c"]]):
        found |= {"c": [f"{folder}/c"], "daemon": [f"{folder}/c", "daemon"]}
    if _compiled(["go", "build", "-o", f"{folder}/go", at["client.go"]], CGO_ENABLED="0"):
        found["go"] = [f"{folder}/go"]
    rust = ["rustc", "-C", "target-feature=+crt-static", "-o", f"{folder}/rust", at["client.rs"]]
    if _compiled(rust):
        found["rust"] = [f"{folder}/rust"]
    scripts = {"node": "client.js", "bun": "client.js", "perl": "client.pl", "ruby": "client.rb"}
    for name, script in {**scripts, "php": "client.php"}.items():
        if path := _installed(name):
            found[name] = [path, at[script]]
    for name, options in {"curl": ["-s", "-d", "x"], "wget": ["-q", "-O", "-"]}.items():
        if path := _installed(name):
            found[name] = [path, *options, f"$SERVER/{name}"]
    if _installed("nc"):
        found["nc"] = ["/bin/sh", at["nc.sh"]]
    if _compiled([python, "-c", "import pycurl"]):
        found["pycurl"] = [python, at["pycurl_.py"]]
    return found


def _installed(name: str) -> str | None:
    """A program that every user may run."""
    return shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")


def _compiled(argv: list[str], **env: str) -> bool:
    if shutil.which(argv[0]) is None:
        return False
    done = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, check=False)
    return done.returncode == 0
