"""A scripted LLM server on loopback for tests, demos and benchmarks."""
