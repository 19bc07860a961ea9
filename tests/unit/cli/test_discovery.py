"""Discovery against real sockets: small servers that answer as each kind does, and as others do not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from services.cli.discovery import DEFAULT_PORTS, DefaultPort, Found, answers, find_backends
from services.cli.stack import free_port


@contextmanager
def answering(answers: dict[str, tuple[int, str]]) -> Iterator[int]:
    """A server on a free port that knows these paths only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, (404, "404 page not found"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def at(kind: str, port: int) -> DefaultPort:
    return next(entry for entry in DEFAULT_PORTS if entry.kind == kind)._replace(port=port)


async def test_servers_are_found_by_what_only_they_answer() -> None:
    with (
        answering({"/api/version": (200, '{"version":"0.24.0"}')}) as ollama,
        answering({"/v1/models": (200, '{"data":[]}')}) as vllm,
    ):
        found = await find_backends((at("ollama", ollama), at("vllm", vllm)))
    assert found == (Found("ollama", f"http://127.0.0.1:{ollama}"), Found("vllm", f"http://127.0.0.1:{vllm}"))


async def test_a_server_that_wants_a_key_is_there_too() -> None:
    with answering({"/v1/models": (401, '{"error":"Unauthorized"}')}) as port:
        assert [found.kind for found in await find_backends((at("vllm", port),))] == ["vllm"]


async def test_a_web_page_and_a_closed_port_are_no_model_servers() -> None:
    with answering({"/v1/models": (200, "<html>my home page</html>")}) as page:
        assert await find_backends((at("llama.cpp", page), at("ollama", page), at("vllm", free_port()))) == ()


async def test_a_server_that_refuses_the_question_answers_and_a_port_without_one_does_not() -> None:
    with answering({}) as port:
        assert await answers(f"http://127.0.0.1:{port}")
    assert not await answers(f"http://127.0.0.1:{free_port()}")
