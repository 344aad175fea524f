"""The process and the machine that Playhead is a guest in: its imports, frames, descriptors, signals."""
