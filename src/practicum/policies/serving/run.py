"""The server as a process: its socket, and how it ends.

Owns: `listen`, `serve`.
Invariant: after SIGTERM or Ctrl-C no new connection is taken; what is under way is answered within `grace_s` seconds,
or given up, which its client is told.
Must not know: models, routes.
"""

from __future__ import annotations

import ipaddress
import socket

import uvicorn
from starlette.applications import Starlette

from practicum.errors import ConfigError


def listen(host: str, port: int, *, has_key: bool) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `ConfigError`, also for an open address without a key."""
    if not has_key and not _is_here(host):
        raise ConfigError(
            f"anybody who can reach {host} could use, and reload, this model", fix="give a key: --api-key-env VAR"
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"cannot listen at {host} port {port}: {error}", fix="choose another --host or --port"
        ) from error


def address_of(listening: socket.socket) -> str:
    """The address to give to clients, e.g. http://127.0.0.1:8000/v1."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def server_of(app: Starlette, *, grace_s: int, backlog: int) -> uvicorn.Server:
    """The server of `app`, which answers at most `backlog` connections at a time."""
    config = uvicorn.Config(
        app, loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, limit_concurrency=backlog, timeout_graceful_shutdown=grace_s, timeout_keep_alive=30,
    )  # fmt: skip
    return uvicorn.Server(config)


def serve(app: Starlette, listening: socket.socket, *, grace_s: int, backlog: int) -> None:
    """Answer until a signal says stop; the signal is raised again then, after all has been put away."""
    server_of(app, grace_s=grace_s, backlog=backlog).run([listening])


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
