"""An HTTP server on loopback that keeps connections alive, answers in one write, and leaves nothing when it stops."""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import socketserver
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from rubric_env.local._wire import ApiError, ChatRequest, Completion, PrefixMemory, events, whole

logger = logging.getLogger(__name__)

MAX_BODY = 64 * 2**20
"""Bytes of one request that are read; far above any judge's context."""


class LocalError(RuntimeError):
    """A local server that cannot start; the message says why and what to do."""


def require_loopback(host: str) -> str:
    """`host`, if it is a loopback address of IPv4; else ValueError: these servers have no access control."""
    try:
        loopback = ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(f"host {host!r}: only 127.0.0.1 is served, because there is no access control")
    return host


class LoopbackServer(ABC):
    """An OpenAI-compatible HTTP server in a thread of this process, reachable from this machine alone.

    A subclass sets `model` and answers in `complete`, which may raise ApiError. Use it as a context manager, or call
    `start` and `stop`; after `stop` no thread and no socket is left.
    """

    model: str

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port` 0 takes a free one. Raises ValueError when `host` is not a loopback address."""
        self._address = (require_loopback(host), port)
        self._http: _HttpServer | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._requests = 0
        self._prefixes = PrefixMemory()
        self.stopping = threading.Event()

    @abstractmethod
    def complete(self, request: ChatRequest) -> Completion:
        """The answer to one request; called in a thread of its connection."""

    def health(self) -> dict[str, Any]:
        """The body of GET /health."""
        return {"status": "ok", "model": self.model}

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`. Raises RuntimeError when the server is not running."""
        if self._http is None:
            raise RuntimeError("the server is not running: call start() first")
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    @property
    def requests(self) -> int:
        """Chat completions answered so far; errors are not among them."""
        return self._requests

    def start(self) -> str:
        """Serve until `stop`; returns `base_url`. Raises LocalError when the port is taken."""
        if self._http is None:
            self.stopping.clear()
            try:
                self._http = _HttpServer(self._address, self)
            except OSError as error:
                host, port = self._address
                raise LocalError(f"cannot serve on {host}:{port}: {error.strerror}; port 0 takes a free one") from None
            self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name=f"{self.model} server")
            self._thread.start()
        return self.base_url

    def stop(self) -> None:
        """Close every connection and wait for every thread. Harmless when not running."""
        if self._http is None or self._thread is None:
            return
        self.stopping.set()
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()
        self._http = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def respond(self, request: ChatRequest) -> tuple[Completion, dict[str, Any]]:
        """The answer and the frame that all its parts share: id, time, model, usage. Raises ApiError."""
        if request.model != self.model:
            message = f"the model {request.model!r} does not exist here: this server has {self.model!r}"
            raise ApiError(404, message, code="model_not_found", param="model")
        completion, prompt = self.complete(request), request.text
        with self._lock:
            self._requests += 1
            serial = self._requests
        return completion, {
            "id": f"chatcmpl-local-{serial}",
            "created": int(time.time()),
            "model": self.model,
            "usage": completion.usage(prompt, self._prefixes.cached_tokens(prompt)),
        }


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], owner: LoopbackServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer looks up the host's name here, which hangs where no name server answers.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(sys.exception(), ConnectionError):
            logger.debug("a client hung up")
        else:
            logger.exception("a connection failed inside the server")

    def hang_up(self) -> None:
        """Wake the threads that wait for the next request on a kept connection."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    logger.debug("the client had already gone")


class _Handler(BaseHTTPRequestHandler):
    server: _HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Buffered, so that headers and body leave in one write.
    wbufsize = 64 * 1024

    def do_GET(self) -> None:
        owner, path = self.server.owner, self._route()
        if path == "/health":
            self._send(200, owner.health())
        elif path == "/v1/models":
            entry = {"id": owner.model, "object": "model", "created": 0, "owned_by": "rubric-env"}
            self._send(200, {"object": "list", "data": [entry]})
        else:
            self._refuse(ApiError(404, f"no such path: GET {path}; there are /v1/models and /health"))

    def do_POST(self) -> None:
        try:
            raw, path = self._read_body(), self._route()
            if path != "/v1/chat/completions":
                raise ApiError(404, f"no such path: POST {path}; there is /v1/chat/completions")
            request = ChatRequest.parse(raw)
            completion, frame = self.server.owner.respond(request)
        except ApiError as error:
            self._refuse(error)
        except ConnectionError:
            raise
        except Exception:
            logger.exception("a request failed inside the server")
            self._refuse(ApiError(500, "internal error: see the server's log"))
        else:
            if request.stream:
                self._stream(completion, frame, request.stream_usage)
            else:
                self._send(200, whole(completion, frame))

    def _route(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        keep = not self.close_connection
        # A body that stays unread would be taken for the next request.
        self.close_connection = True
        if not (length.isascii() and length.isdigit()):
            raise ApiError(411, "the request needs a Content-Length")
        if int(length) > MAX_BODY:
            raise ApiError(413, f"the request is larger than {MAX_BODY} bytes")
        raw = self.rfile.read(int(length))
        if len(raw) < int(length):
            raise ConnectionAbortedError
        self.close_connection = not keep
        return raw

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        self._head(status, "application/json", ("Content-Length", str(len(data))))
        self.wfile.write(data)

    def _refuse(self, error: ApiError) -> None:
        self._send(error.status, error.body())

    def _stream(self, completion: Completion, frame: Mapping[str, Any], with_usage: bool) -> None:
        chunked = self.request_version >= "HTTP/1.1"
        self.close_connection = self.close_connection or not chunked
        self._head(200, "text/event-stream", *([("Transfer-Encoding", "chunked")] if chunked else []))
        for event in events(completion, frame, with_usage):
            line = f"data: {event}\n\n".encode("utf-8", "replace")
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line) if chunked else line)
            self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, content_type: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Malformed requests and unknown methods, which the base class would answer in HTML."""
        self.close_connection = True
        self._refuse(ApiError(code, message or explain or "bad request"))

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)
