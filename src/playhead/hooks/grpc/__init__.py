"""Hooks for gRPC clients. Each RPC is a call of the boundary `grpc`, with its messages as bytes."""
