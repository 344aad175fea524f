"""RPCs of grpc, sync and asyncio: on the tape with their messages, and served without the server."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

SYNC = """
import sys, grpc
packed = {"request_serializer": str.encode, "response_deserializer": bytes.decode}
with grpc.insecure_channel(sys.argv[1]) as channel:
    hello = channel.unary_unary("/t.Words/Hello", **packed)
    print(hello("one", metadata=[("authorization", "Bearer sk-secret-token-123456")]))
    answer, call = hello.with_call("two")
    print(answer, call.code(), dict(call.trailing_metadata())["seen"])
    print(hello.future("three").result())
    try:
        hello("fail")
    except grpc.RpcError as error:
        print(error.code(), error.details(), error)
    split = channel.unary_stream("/t.Words/Split", **packed)
    print(list(split("a b c")))
    try:
        for word in split("a fail"):
            print(word)
    except grpc.RpcError as error:
        print(error.code(), error.details())
    join = channel.stream_unary("/t.Words/Join", **packed)
    print(join(iter(["x", "y"])))
    echo = channel.stream_stream("/t.Words/Echo", **packed)
    print(list(echo(iter(["p", "", "q"]))))
    for word in split("left here unread"):
        print(word)
        break
"""
AIO = """
import asyncio, sys, grpc
packed = {"request_serializer": str.encode, "response_deserializer": bytes.decode}
async def main():
    async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
        hello = channel.unary_unary("/t.Words/Hello", **packed)
        async def one(word):
            print(await hello(word))
        await asyncio.gather(*[one(word) for word in ("one", "two", "three")])
        try:
            await hello("fail")
        except grpc.aio.AioRpcError as error:
            print(error.code(), error.details(), error)
        split = channel.unary_stream("/t.Words/Split", **packed)
        print([word async for word in split("a b c")])
        join = channel.stream_unary("/t.Words/Join", **packed)
        print(await join(iter(["x", "y"])))
        echo = channel.stream_stream("/t.Words/Echo", **packed)
        call = echo()
        for word in ("p", "q"):
            await call.write(word)
            print(await call.read())
        await call.done_writing()
        print(await call.read() is grpc.aio.EOF, await call.code())
        try:
            await asyncio.wait_for(hello("slow"), 0.1)
        except asyncio.TimeoutError:
            print("timeout")
asyncio.run(main())
"""


class Words(grpc.GenericRpcHandler):
    """Four methods, one of each kind."""

    def __init__(self):
        self.seen = 0

    def service(self, details):
        kinds = {
            "Hello": (grpc.unary_unary_rpc_method_handler, self.hello),
            "Split": (grpc.unary_stream_rpc_method_handler, self.split),
            "Join": (grpc.stream_unary_rpc_method_handler, self.join),
            "Echo": (grpc.stream_stream_rpc_method_handler, self.echo),
        }
        self.seen += 1
        make, function = kinds[details.method.rpartition("/")[2]]
        return make(function, bytes.decode, str.encode)

    def hello(self, request, context):
        context.set_trailing_metadata((("seen", str(self.seen)),))
        if request == "fail":
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such word")
        if request == "slow":
            context.cancel() if self.released.wait(20) else None
        return f"hello {request} {self.seen}"

    def split(self, request, context):
        for word in request.split():
            if word == "fail":
                context.abort(grpc.StatusCode.ABORTED, "in the middle")
            yield word

    def join(self, requests, context):
        return "-".join(requests)

    def echo(self, requests, context):
        for one in requests:
            yield one * 2


@pytest.fixture
def words():
    import threading

    handler = Words()
    handler.released = threading.Event()
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def stop():
        handler.released.set()
        server.stop(0).wait()

    handler.address, handler.stop = f"127.0.0.1:{port}", stop
    yield handler
    stop()


@pytest.mark.parametrize("program", [SYNC, AIO], ids=["sync", "aio"])
def test_rpcs_come_back_without_the_server(play, words, program):
    taken = play.record(program, words.address)
    assert "NOT_FOUND there is no such word" in taken.stdout
    assert "sk-secret-token" not in play.run("events", "last").stdout
    seen = words.seen
    words.stop()
    play.assert_identical(taken)
    play.edit('"two"', '"changed"')
    again = play.replay("--in-place")
    assert again.returncode == 3
    assert "changed" in again.stderr.partition("2. ")[0]  # the cause comes first
    assert words.seen == seen
