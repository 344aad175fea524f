"""An S3 server on this machine, for tests and the benchmark of shared stores."""

import http.client
import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running_s3(bucket: str) -> Iterator[str]:
    """Serve S3 with one bucket; yields the address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # Not above: every worker that collects tests would import it.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        connection = http.client.HTTPConnection(host, port)
        connection.request("PUT", f"/{bucket}")
        connection.getresponse().read()
        connection.close()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
