"""The server's socket."""

from __future__ import annotations

import pytest

from practicum.errors import ConfigError
from practicum.policies.serving.run import address_of, listen


def test_addresses() -> None:
    """A free port is taken and told."""
    with listen("127.0.0.1", 0, has_key=False) as listening:
        port = listening.getsockname()[1]
        assert address_of(listening) == f"http://127.0.0.1:{port}/v1"
        with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1 port {port}"):
            listen("127.0.0.1", port, has_key=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "some.where"])
def test_an_open_address_needs_a_key(host: str) -> None:
    """What others can reach is not served to everybody."""
    with pytest.raises(ConfigError, match="anybody who can reach"):
        listen(host, 0, has_key=False)
