"""The code of a launch that runs inside the recorded process."""
