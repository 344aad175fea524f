"""gRPC: each RPC is a call of the boundary `grpc`, with its messages as bytes."""
