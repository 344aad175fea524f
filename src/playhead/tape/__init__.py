"""The tape: format, writer, reader, blobs, manifest, store. Knows files; not agents."""
