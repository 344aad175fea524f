"""Code that a program interprets reads the clock and entropy of the tape, and warns as often as in the recorded run."""

import json
import sys

import pytest
from tests.order.shapes import run

SOURCE = """
import datetime, os, random, secrets, time, uuid
from datetime import date, datetime as dt
from random import choice, random as draw
from time import monotonic, perf_counter, sleep, time as now
from uuid import uuid4

print(time.time(), now(), dt.now(), datetime.datetime.now(datetime.timezone.utc), date.today())
print(uuid.uuid4(), uuid4(), draw(), random.randint(0, 9), choice("abc"), os.urandom(4), secrets.token_hex(4))
print(monotonic(), perf_counter(), time.monotonic_ns(), time.perf_counter_ns())
sleep(0.01)
print(time.strftime("%H:%M:%S"), time.time_ns(), time.ctime(), [now() for _ in range(2)])
"""

# How a program runs the source, which is in the variable `source`.
INTERPRETERS = {
    "exec": "exec(source)",
    "exec in a namespace": "exec(source, {'__name__': 'cell'})",
    "a compiled cell": "exec(compile(source, '<cell 1>', 'exec'), {})",
    "a compiled tree": "import ast\nexec(compile(ast.parse(source), '<tree>', 'exec'), {})",
    "a console": "import code\ncode.InteractiveInterpreter().runcode(compile(source, '<input>', 'exec'))",
    "eval": "import time\nprint(eval('time.time()'), eval('t()', {'t': time.time}))",
    "a module": "import types\nmade = types.ModuleType('made')\nexec(source, made.__dict__)\nprint(made.now())",
    "threads": "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(2) as pool:\n    list(pool.map(lambda _: exec(source, {}), range(2)))",
    # Interpreters of agents walk the tree and call what they find in the modules that they allow.
    "a tree walker": "import ast, datetime, random, time\n"
    "def walk(node):\n"
    "    if isinstance(node, ast.Call):\n        return walk(node.func)()\n"
    "    if isinstance(node, ast.Attribute):\n        return getattr(walk(node.value), node.attr)\n"
    "    return globals()[node.id]\n"
    "for text in ('time.time()', 'datetime.datetime.now()', 'random.random()', 'time.perf_counter()'):\n"
    "    print(walk(ast.parse(text, mode='eval').body))",
}

WARNINGS = """
import threading
import warnings

def old():
    warnings.warn("old is deprecated", DeprecationWarning, stacklevel=2)

def note(n):
    warnings.warn(f"note {n % 2}", UserWarning)

for n in range(4):
    old()
    note(n)
old(); old()
exec("for n in range(2): warnings.warn('in a cell', DeprecationWarning)")
warnings.simplefilter("always")
for _ in range(2):
    old()
threads = [threading.Thread(target=old) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def _replayed(folder, program):
    """What the recorded run and its replay printed, and the report."""
    path, report = folder / "program.py", folder / "report.json"
    path.write_text(program)
    then = run(folder, "record", "--no-seal", "--", sys.executable, str(path))
    now = run(folder, "replay", "last", "--report", str(report))
    return then, now, json.loads(report.read_text())


@pytest.mark.parametrize("how", INTERPRETERS)
def test_interpreted_code_reads_the_clock_and_entropy_of_the_tape(how, tmp_path):
    then, now, report = _replayed(tmp_path, f"source = {SOURCE!r}\n{INTERPRETERS[how]}\n")
    assert then.returncode == 0, then.stderr.decode()
    assert now.stdout == then.stdout
    assert report["verdict"] == "identical"


def test_a_warning_is_printed_as_often_as_in_the_recorded_run(tmp_path):
    then, now, report = _replayed(tmp_path, WARNINGS)
    lines = [line for line in then.stderr.splitlines() if b"Warning: " in line]
    assert any(lines.count(line) > 1 for line in lines)
    assert [line for line in now.stderr.splitlines() if b"Warning: " in line] == lines
    assert report["verdict"] == "identical"


# As werkzeug and others have them: a builtin in the body of a class does not become a method.
CLASS_BODY = """
import os, socket, threading, time

class Server:
    lock_class, rlock_class = threading.Lock, threading.RLock
    clock, pause, look_up, leave = time.monotonic, time.sleep, socket.gethostbyname, os._exit

one = Server()
with one.lock_class(), one.rlock_class():
    one.pause(0.001)
    print(one.clock(), one.look_up("127.0.0.1"), flush=True)
one.leave(0)
"""


def test_a_hooked_builtin_in_the_body_of_a_class_does_not_become_a_method(tmp_path):
    then, now, report = _replayed(tmp_path, CLASS_BODY)
    assert then.returncode == 0, then.stderr.decode()
    assert now.stdout == then.stdout
    assert report["verdict"] == "identical"


WARNINGS_AND_TOOLS = """
import warnings
import playhead

@playhead.tool
def quiet(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("not shown")
    return n

def shared():
    warnings.warn("shared", UserWarning)

@playhead.tool
def loud(n):
    shared()
    return n

for n in range(3):
    warnings.warn("old", DeprecationWarning)
    print(quiet(n))
for n in range(2):
    print(loud(n))
    shared()
"""


def test_tools_change_which_warnings_are_printed_as_in_the_recorded_run(tmp_path):
    then, now, report = _replayed(tmp_path, WARNINGS_AND_TOOLS)
    assert (then.stderr.count(b": old"), then.stderr.count(b": shared")) == (3, 1)
    assert (now.stderr.count(b": old"), now.stderr.count(b": shared")) == (3, 1)
    assert report["verdict"] == "identical"
