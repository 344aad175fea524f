"""Asks git for its version; forgives it one failure if it is told so."""

import os
import subprocess

done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
if done.returncode != 0 and os.environ.get("FORGIVE"):
    done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
done.check_returncode()
print("git answered", bool(done.stdout))
