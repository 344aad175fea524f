"""Whatever is in a run's folder, reading it ends, in bounded memory, with our own errors or none."""

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from playhead.errors import PlayheadError
from playhead.tape.blobs import push
from playhead.tape.care.repair import repair
from playhead.tape.care.verify import verify
from playhead.tape.format import close_line, decode_std, decoder
from playhead.tape.reader import Tape
from playhead.tape.reading.follow import follow
from playhead.tape.sealed.seal import seal, unseal

BUILDING = Path(__file__).parents[1] / "tapes" / "building.py"
spec = importlib.util.spec_from_file_location("tape_building", BUILDING)
building = sys.modules["tape_building"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(building)

pytestmark = pytest.mark.faults

# Reading a folder touches the disk: a few milliseconds each, whatever the machine is doing.
many = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
few = settings(many, max_examples=60)


def fresh(factory):
    """A new folder. `mktemp` of the factory lists all folders so far for the next number, hundreds of times."""
    return Path(tempfile.mkdtemp(dir=factory.getbasetemp()))


def whole_tape(tmp_path_factory):
    run = building.small_run(fresh(tmp_path_factory))
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return whole_tape(tmp_path_factory)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    run = building.small_run(fresh(tmp_path_factory))
    seal(run.path)
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}


def read_everything(folder: Path) -> None:
    """Every way in which a tape is read. Only our own errors may come out, and they have words."""
    with ours():
        tape = Tape(folder)
        count = 0
        for event in tape.events():
            count += 1
            if count < 30:
                with ours():
                    tape.event(event.ref)
                with ours():
                    tape.whole(event)
        assert sum(1 for _ in tape.lines()) == count
        assert all(str(damage) for damage in tape.damage)
        assert tape.manifest.run is not None
        assert sum(1 for _ in follow(Tape(folder), wait=_never)) <= count
    with ours():
        verify(folder)


class ours:  # noqa: N801  reads as a word in a with statement
    """Lets an error of Playhead's pass, and nothing else."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        assert error is None or not isinstance(error, PlayheadError) or str(error)
        return isinstance(error, PlayheadError)


def _never(_):
    raise StillRunning


class StillRunning(PlayheadError):
    """A mutated manifest may say that the run goes on: then following it has no end."""


def lay(tmp_path_factory, files):
    folder = fresh(tmp_path_factory)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


PIECES = st.sampled_from(
    [
        *(b"", b"\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"}", b'"', b"\\", b"[" * 5_000),
        *(b"null", b"NaN", b"1e999", b"-1", b"9" * 400, b"true", b'"$blob"', b'{"$blob":7}'),
        *(b"__reduce__", b"\x28\xb5\x2f\xfd", b'"format":99', b'"seg":"../x"', b"\r\n"),
    ]
)


@st.composite
def mutations(draw):
    """A few edits: (where as a fraction, how many bytes go, what comes)."""
    places = st.floats(0, 1, allow_nan=False)
    edit = st.tuples(places, st.integers(0, 40), PIECES | st.binary(max_size=20))
    return draw(st.lists(edit, min_size=1, max_size=6))


def mutate(content: bytes, edits) -> bytes:
    for place, length, piece in edits:
        at = int(place * len(content))
        content = content[:at] + piece + content[at + length :]
    return content


@many
@given(
    edits=mutations(), name=st.sampled_from(["tape-100.jsonl", "tape-101.jsonl", "manifest.json"])
)
def test_a_mutated_tape_is_read(tmp_path_factory, plain, edits, name):
    read_everything(lay(tmp_path_factory, {**plain, name: mutate(plain[name], edits)}))


@many
@given(edits=mutations(), name=st.sampled_from(["tape.jsonl.zst", "tape.index.json"]))
def test_a_mutated_sealed_tape_is_read(tmp_path_factory, sealed, edits, name):
    read_everything(lay(tmp_path_factory, {**sealed, name: mutate(sealed[name], edits)}))


@many
@given(content=st.binary(max_size=3_000) | st.lists(PIECES, max_size=30).map(b"".join))
def test_any_bytes_at_all_are_read(tmp_path_factory, content):
    names = ("tape-1.jsonl", "tape.jsonl.zst", "tape.index.json", "manifest.json")
    for name in names:
        read_everything(lay(tmp_path_factory, {"tape-2.jsonl": b"", name: content}))


def test_a_tape_cut_at_every_byte_yields_every_whole_event(tmp_path_factory, plain):
    content = plain["tape-100.jsonl"]
    ends = [at for at in range(len(content)) if content[at : at + 1] == b"\n"]
    for cut in range(len(content)):
        folder = lay(tmp_path_factory, {"tape-100.jsonl": content[:cut], "manifest.json": b"?"})
        whole = sum(1 for end in ends if end <= cut)
        assert sum(1 for _ in Tape(folder).events()) == whole, cut


@many
@given(seed=st.integers(0, 2**32))
def test_spliced_and_shuffled_lines_of_several_runs_are_read(tmp_path_factory, plain, seed):
    chance = random.Random(seed)
    lines = [line for name in plain for line in plain[name].splitlines(keepends=True)]
    files = {
        f"tape-{chance.choice(['100', '101', '7', 'x', '100-2'])}.jsonl": b"".join(
            chance.choices(lines, k=chance.randrange(1, 12))
        )
        for _ in range(3)
    }
    read_everything(lay(tmp_path_factory, files))


@few
@given(
    edits=mutations(), name=st.sampled_from(["tape-100.jsonl", "tape-101.jsonl", "manifest.json"])
)
def test_whatever_can_be_read_can_be_repaired_and_stays_so(tmp_path_factory, plain, edits, name):
    folder = lay(tmp_path_factory, {**plain, name: mutate(plain[name], edits)})
    try:
        before = sum(1 for _ in Tape(folder).events())
        done = repair(folder, 10**18, force=True)
    except PlayheadError:
        return
    after = list(Tape(folder).events())
    found = verify(folder)
    assert found.ok or found.blobs_missing or _odd_format(found), found.damages
    assert not repair(folder, 10**18, force=True).changed
    assert done.changed or len(after) == before
    kept = {path.name.partition(".damaged")[0]: path.read_bytes() for path in done.moved}
    for moved, content in kept.items():
        assert content == (mutate(plain[name], edits) if moved == name else plain[moved])


def _odd_format(found):
    return all("which does not exist" in damage.why for damage in found.damages)


DAMAGES = {
    "removed": lambda lines, chance: lines.pop(chance.randrange(len(lines))),
    "moved": lambda lines, chance: chance.shuffle(lines),
    "doubled": lambda lines, chance: lines.insert(chance.randrange(9), chance.choice(lines)),
    "overwritten": lambda lines, chance: lines.__setitem__(chance.randrange(6), b"\x00 \xff\n"),
    "cut": lambda lines, chance: lines.__setitem__(slice(chance.randrange(6), None), [b'{"se']),
    "beheaded": lambda lines, chance: lines.__delitem__(slice(chance.randrange(1, 6))),
}


@few
@given(kinds=st.lists(st.sampled_from(sorted(DAMAGES)), min_size=1, max_size=2), seed=st.integers())
@example(kinds=["moved", "overwritten"], seed=630)  # the line after the overwritten one stood first
def test_every_kind_of_damage_is_reported_and_heals(tmp_path_factory, plain, kinds, seed):
    chance = random.Random(seed)
    name = "tape-100.jsonl"
    lines = plain[name].splitlines(keepends=True)
    for kind in kinds:
        if len(lines) > 5:
            DAMAGES[kind](lines, chance)
    folder = lay(tmp_path_factory, {**plain, name: b"".join(lines)})
    assert verify(folder).ok == (b"".join(lines) == plain[name])
    whole = {event.ref for event in Tape(folder).events()}
    repair(folder, 10**18, force=True)
    assert verify(folder).ok
    assert whole <= {event.ref for event in Tape(folder).events()}


@few
@given(edits=mutations())
def test_a_mutated_sealed_tape_can_be_repaired(tmp_path_factory, sealed, edits):
    name = "tape.jsonl.zst"
    folder = lay(tmp_path_factory, {**sealed, name: mutate(sealed[name], edits)})
    try:
        repair(folder, 10**18, force=True)
    except PlayheadError:
        return
    assert verify(folder).ok
    assert not repair(folder, 10**18, force=True).changed


@few
@given(at=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_every_flipped_byte_is_reported(tmp_path_factory, plain, at, mask):
    content = bytearray(plain["tape-100.jsonl"])
    content[int(at * len(content))] ^= mask
    folder = lay(tmp_path_factory, {**plain, "tape-100.jsonl": bytes(content)})
    assert not verify(folder).ok


texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
KNOWN = {"seq", "kind", "wall", "mono", "pid", "thread", "lane", "at", "who", "parent", "cause"}
strange = texts.filter(lambda name: name not in KNOWN | {"why", "user", "seg", "data", "crc"})


# Drawing these values takes five times as long as reading them: fewer and smaller ones.
@settings(many, max_examples=150)
@given(
    told=st.lists(
        st.tuples(texts, values, st.dictionaries(strange, values, max_size=2)), max_size=5
    )
)
def test_any_events_are_read_back_as_they_were_written(tmp_path_factory, told):
    run = building.Run(fresh(tmp_path_factory))
    root = run.segment()
    for kind, data, members in told:
        root.add(kind, data, **members)
    tape = Tape(run.path)
    events = list(tape.events())[1:]
    assert [(event.kind, event.data) for event in events] == [
        (kind, data) for kind, data, _ in told
    ]
    assert [line.raw + b"\n" for line in tape.lines()] == root.lines
    assert tape.damage == []
    copy = fresh(tmp_path_factory)  # read, written again, read again: nothing is lost
    for line in tape.lines():
        with (copy / f"tape-{line.segment}.jsonl").open("ab") as file:
            file.write(line.raw + b"\n")
    assert list(Tape(copy).events())[1:] == events


@many
@given(data=st.binary(max_size=400))
def test_both_decoders_agree_on_any_line(data):
    line = b'{"seq":1,"kind":"x","wall":1,"mono":1,"pid":1,"data":' + data
    assert outcome(decoder(), line) == outcome(decode_std, line)


def outcome(decode, line):
    try:
        return repr(decode(line))
    except ValueError:
        return None


def test_nothing_on_a_tape_is_ever_run(tmp_path):
    marker = tmp_path / "marker"
    evil = {
        "__reduce__": ["os.system", f"touch {marker}"],
        "$exception": "os:system",
        "$pydantic": "os:system",
        "fields": {"command": f"touch {marker}"},
        "py/object": "os.system",
        "!!python/object/apply:os.system": [f"touch {marker}"],
    }
    run = building.Run(tmp_path / "run")
    root = run.segment()
    root.add("call", evil)
    root.add(f"'; touch {marker}; '", f"$(touch {marker})")
    run.manifest(tags={"a": f"`touch {marker}`"})
    watched = (
        "import sys; ran = []; sys.addaudithook(lambda name, args: ran.append(name) if name in "
    )
    watched += "('exec', 'compile', 'os.system', 'subprocess.Popen', 'import', 'pickle.find_class')"
    watched += " and armed else None); armed = False\n"
    program = watched + LOAD + "armed = True\nread(sys.argv[1])\narmed = False\nprint(ran)"
    said = run_program(program, run.path)
    assert said.strip() == "[]"
    assert not marker.exists()


LOAD = """
import sys
import tempfile
from pathlib import Path
from playhead.errors import PlayheadError
from playhead.tape.reader import Tape
from playhead.tape.care.verify import verify
Tape(Path("/nowhere"))

def read(folder):
    tape = Tape(Path(folder))
    count = sum(1 for _ in tape.events())
    for damage in tape.damage:
        str(damage)
    verify(Path(folder))
    return count
read(sys.argv[1])
"""

BOUNDED = (
    LOAD.replace("read(sys.argv[1])\n", "")
    + """
import resource
limit = int(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    count = read(sys.argv[1])
except PlayheadError as error:
    count = error
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown * 1024 < limit, f"grew by {grown} KiB"
print(count)
"""
)


def run_program(program, *args):
    argv = [sys.executable, "-c", program, *map(str, args)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def with_zeros(path, count):
    """A run with so many zeros in its middle, as a file system may leave them after a power failure."""
    run = building.Run(path)
    root = run.segment()
    with root.path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        os.truncate(file.fileno(), size + count)  # sparse: zeros that take no disk
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    root.add("after")
    run.manifest()
    return run.path


def test_a_line_of_sixty_megabytes_costs_no_memory_and_no_other_event(tmp_path):
    assert run_program(BOUNDED, with_zeros(tmp_path / "run", 60_000_000), 120 << 20).strip() == "2"


def test_a_line_of_a_gigabyte_is_refused_and_costs_no_memory(tmp_path):
    # No recorder writes such a line, and reading on would let a small compressed tape cost minutes.
    told = run_program(BOUNDED, with_zeros(tmp_path / "run", 1 << 30), 120 << 20)
    assert "a line of more than 67108864 bytes" in told


def test_a_tape_of_a_gigabyte_without_a_newline_is_refused_and_costs_no_memory(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / "tape-1.jsonl").open("wb") as file:
        file.truncate(1 << 30)
    assert "a line of more than 67108864 bytes" in run_program(BOUNDED, folder, 120 << 20)


def test_a_long_tape_is_read_in_constant_memory(tmp_path):
    run = building.Run(tmp_path / "run")
    for name in ("100", "101", "102"):
        root = run.segment(name)
        line = building.compact({"data": "x" * 3_000})[:-1]
        crc, seq = root.crc, 1
        with root.path.open("ab") as file:
            for seq in range(1, 12_000):
                told = b'{"seq":%d,"kind":"x","wall":1,"mono":%d,"pid":%d,' % (seq, seq, int(name))
                made, crc = close_line(told + line[1:], crc)
                file.write(made)
    assert run_program(BOUNDED, run.path, 40 << 20).strip() == str(3 * 12_000)


def test_a_frame_that_claims_to_hold_the_world_is_not_opened(tmp_path):
    """A zstd header that promises 2**60 bytes, and one that makes 3 GB out of 100 KB."""
    folder = tmp_path / "run"
    folder.mkdir()
    huge = b"\x28\xb5\x2f\xfd" + b"\xe0" + (2**60).to_bytes(8, "little") + b"\x01\x00\x00"
    # RLE blocks of 128 KiB each, 4 bytes a block, in a frame that says it holds 16 MiB.
    block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    bomb = b"\x28\xb5\x2f\xfd" + b"\xa0" + (1 << 24).to_bytes(4, "little") + block * 25_000
    (folder / "tape.jsonl.zst").write_bytes(huge + bomb)
    (folder / "manifest.json").write_text(json.dumps({"run": "r"}))
    assert run_program(BOUNDED, folder, 120 << 20).strip() == "0"


def test_blobs_that_multiply_do_not_fill_the_memory(tmp_path):
    run = building.Run(tmp_path / "run")
    digest = push(run.path, b'"' + b"x" * 100_000 + b'"')
    for _ in range(2):
        digest = push(run.path, json.dumps([{"$blob": digest, "as": "json"}] * 5_000).encode())
    run.segment().add("bomb", {"$blob": digest, "as": "json"})
    program = BOUNDED.replace(
        "count = read(sys.argv[1])",
        "t = Tape(Path(sys.argv[1])); count = len(t.whole(t.event(1)).data)",
    )
    assert run_program(program, run.path, 60 << 20).strip() == "5000"


def test_sealing_and_unsealing_any_healthy_tape_gives_the_same_bytes(tmp_path_factory):
    chance = random.Random(7)
    for _ in range(20):
        run = building.Run(fresh(tmp_path_factory))
        segments = [run.segment(str(100 + number)) for number in range(chance.randrange(1, 5))]
        for _ in range(chance.randrange(40)):
            chance.choice(segments).add("x", chance.random())
        run.manifest()
        before = {segment.path: segment.path.read_bytes() for segment in segments}
        seal(run.path, force=True)
        unseal(run.path)
        assert {path: path.read_bytes() for path in run.path.glob("tape*")} == before
