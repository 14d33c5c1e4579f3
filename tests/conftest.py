"""What tests of several places share: a model behind a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class ModelEndpoint:
    """A chat endpoint at `url` that says `text` with `status`, after `good` answers with 503; it keeps what came in."""

    def __init__(self) -> None:
        self.url = ""
        self.status, self.text = 200, '{"score": 5}'
        self.good: int | None = None
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._lock = threading.Lock()

    def take(self, body: dict[str, Any], key: str | None) -> int:
        """Note a request; the status to answer with."""
        with self._lock:
            self.asked.append(body)
            self.keys.append(key)
            return 503 if self.good is not None and len(self.asked) > self.good else self.status


@pytest.fixture
def model_endpoint() -> Iterator[ModelEndpoint]:
    """A model that judges everything as middling, until a test says otherwise."""
    endpoint = ModelEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = endpoint.take(body, self.headers["Authorization"])
            choice = {"message": {"content": endpoint.text}, "finish_reason": "stop"}
            data = json.dumps({"choices": [choice]}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
