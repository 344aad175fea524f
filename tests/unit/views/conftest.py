"""Stories of forged tapes, and workspaces on them."""

import pytest
from tests.unit.conftest import BOOTED

from playhead.story import tell
from playhead.tape.reader import Tape
from playhead.testing import Reply, ToolCall
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.tree_listing import (
    FOLDER,
    Change,
    FileEntry,
    encode_changes,
    encode_listing,
    hash_only,
    link_id,
)

SECRET, LINK, EMPTY_FOLDER = "secret", "link", "folder"
# A name that a terminal, a page and a JSON document must not take at its word.
NASTY_NAME = b"a\n<img src=x onerror=alert(2)>\x1b[31m\xff\xe2\x80\xae.html"


@pytest.fixture
def told():
    """The story of a tape in the making, as far as it is written."""
    return lambda tape: tell(Tape(tape.path))


class ForgedWorkspace:
    """The files of a forged tape. `change` writes the event that a recorder writes for changed files."""

    def __init__(self, tape, **start: bytes) -> None:
        self.tape = tape
        pool = Pool(tape.home)
        self._writer = PoolWriter(pool, tape.path.name)
        self.tree = {
            name.replace("__", ".").encode(): self._entry(one) for name, one in start.items()
        }
        listing = self._writer.put(encode_listing(self.tree))
        tape.event("workspace", {"workspace": 0, "root": "/srv/shop", "tree": listing})

    def _entry(self, content, mode=0o100644):
        if content == EMPTY_FOLDER:
            return FileEntry(0o40755, 0, 0, FOLDER)
        if isinstance(content, tuple) and content[0] == LINK:
            return FileEntry(0o120777, len(content[1]), 0, link_id(content[1]))
        if isinstance(content, tuple) and content[0] == SECRET:
            return FileEntry(mode, 20, 0, hash_only("ab" * 32))
        return FileEntry(mode, len(content), 0, self._writer.put(content))

    def change(self, files, *calls, mode=0o100644, gaps=0):
        """`files`: content by path, None for a deleted file. Without calls, the agent's own code did it."""
        changes = []
        for path, content in files.items():
            after = None if content is None else self._entry(content, mode)
            changes.append(Change(path, self.tree.pop(path, None), after))
            if after is not None:
                self.tree[path] = after
        self._writer.close()
        self.tape.event(
            "files",
            {
                "workspace": 0,
                "calls": [f"{self.tape.pid}:{call}" for call in calls],
                "until_ns": BOOTED + round(self.tape.now * 1e9),
                "changes": encode_changes(changes),
                "gaps": gaps,
            },
        )


@pytest.fixture
def edited(forge):
    """A run whose calls changed files: text, binary, a link, a secret, a folder, and a hostile name."""
    tape = forge("20261115-101105-edit", name="porter")
    calls = [ToolCall(name="bash", arguments={"command": "sed"})]
    asked = tape.llm("Change the port.", Reply(text="I change it.", tool_calls=calls))
    files = ForgedWorkspace(tape, app__py=b"import os\nPORT = 8000\n\nmain()\n", notes=b"milk\n")
    first = tape.tool("bash", {"command": "sed"}, value="", cause=asked)
    files.change({b"app.py": b"import os\nPORT = 9000  # <script>\n\nmain()\n"}, first)
    tape.now += 0.5
    files.change({b"memory.json": b'{"n": 1}\n'})
    second = tape.tool("bash", {"command": "odd"}, value="")
    odd = {b"logo.bin": b"\x00\x01" * 40, b"run": (LINK, b"app.py"), b".env": (SECRET,)}
    odd |= {b"cache": EMPTY_FOLDER, NASTY_NAME: b"</script>\x1b[2J\n", b"notes": None}
    files.change(odd | {b".git/index": b"DIRC"}, second, gaps=1)
    third = tape.tool("bash", {"command": "more"}, value="")
    files.change(
        {b"app.py": b"import os\nPORT = 9000  # <script>\n\nmain(1)\n"}, third, mode=0o100755
    )
    tape.end()
    return tape
