"""What `import playhead` costs the program that says it: nothing that it did not ask for."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

LIBRARIES = {
    *("aiohttp", "anthropic", "anyio", "attr", "click", "genai_prices", "google", "httpcore"),
    *("httpcore2", "httpx", "httpx2", "mcp", "msgspec", "numpy", "openai", "pydantic", "pytest"),
    *(
        "requests",
        "rich",
        "sqlalchemy",
        "starlette",
        "textual",
        "trio",
        "urllib3",
        "uvicorn",
        "uvloop",
    ),
    *("websockets", "wrapt", "yaml", "zstandard"),
}
HEAVY_STANDARD = {
    *("asyncio", "concurrent.futures", "ctypes", "email", "http", "logging", "multiprocessing"),
    *("sqlite3", "ssl", "subprocess", "unittest", "urllib.request", "xml"),
}

PROBE = """
import json, sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
import playhead
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def modules_loaded_by_importing_playhead() -> set[str]:
    # -I: neither PYTHONPATH nor the user's site may load something first and hide the answer.
    argv = [sys.executable, "-I", "-W", "error", "-c", PROBE, str(SOURCE)]
    return set(json.loads(subprocess.check_output(argv)))


def test_importing_playhead_loads_no_library_and_no_heavy_standard_module():
    loaded = modules_loaded_by_importing_playhead()
    assert "playhead" in loaded
    assert loaded & (LIBRARIES | HEAVY_STANDARD) == set()


def test_importing_playhead_loads_no_view_and_no_command():
    loaded = modules_loaded_by_importing_playhead()
    doors = ("cli", "export", "library", "llm", "model", "testing", "views")
    assert [
        one for one in loaded if one.startswith(tuple(f"playhead.{door}" for door in doors))
    ] == []
