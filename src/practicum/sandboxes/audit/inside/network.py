"""Probes of the network: interfaces, routes, the host's own listeners.

Invariant: nothing is sent to anybody but the listeners that the audit itself opened on this host's loopback; a
route is found out by connecting a datagram socket, which sends nothing.
Must not know: how the box was made.
"""

import errno
import fcntl
import os
import socket
import struct
from functools import partial
from pathlib import Path

from .registry import REFUSALS, UNREACHED, Facts, Finding, blocked, judge, opened, opens, probe

_GROUP = "network"
_THREAT = "code uses the network"
_METADATA = ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")
_PRIVATE = ("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1")
_PUBLIC = ("192.0.2.1", "198.51.100.1", "2001:db8::1")  # for documentation; nobody is there


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _routes(address: str) -> None:
    with socket.socket(_family(address), socket.SOCK_DGRAM) as client:
        client.connect((address, 9))


@probe("P52", _GROUP, "find an interface beside the loopback", "none", threat=_THREAT)
def interfaces(facts: Facts) -> Finding:
    names = [line.split(":")[0].strip() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]]
    # Some kernels put tunnels that lead nowhere into each new namespace.
    odd = [name for name in names if name != "lo" and name.rstrip("0123456789") not in ("tunl", "sit", "ip_vti", "gre")]
    return opened(", ".join(odd)) if odd else blocked(f"only {', '.join(names) or 'none'}")


@probe("P53", _GROUP, "find a route to public addresses, versions 4 and 6", "ENETUNREACH", threat=_THREAT)
def public_routes(facts: Facts) -> Finding:
    return judge([(address, partial(_routes, address)) for address in _PUBLIC], refusals=UNREACHED)


@probe("P54", _GROUP, "find a route to metadata services and private ranges", "ENETUNREACH", threat=_THREAT)
def private_routes(facts: Facts) -> Finding:
    addresses = (*_METADATA, *_PRIVATE, *facts["addresses"])
    return judge([(address, partial(_routes, address)) for address in addresses], refusals=UNREACHED)


def _connects(address: str, port: int) -> str:
    for family, kind, protocol, _, place in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as client:
            client.settimeout(1.0)
            client.connect(place)
            return "connected"
    raise FileNotFoundError(errno.ENOENT, "no such name")


@probe("P55", _GROUP, "connect to a listener on the host's loopback, in all spellings", "ECONNREFUSED", threat=_THREAT)
def host_loopback(facts: Facts) -> Finding:
    four = ["127.0.0.1", "127.1", "2130706433", "0.0.0.0", "localhost", "::ffff:127.0.0.1", *facts["addresses"]]
    attempts = [(name, partial(_connects, name, facts["tcp_port"])) for name in four]
    if facts["tcp6_port"]:
        attempts += [(name, partial(_connects, name, facts["tcp6_port"])) for name in ("::1", "::")]
    return judge(attempts, refusals=UNREACHED)


@probe("P56", _GROUP, "ask a name server on the host's loopback", "ECONNREFUSED", threat=_THREAT)
def name_server(facts: Facts) -> Finding:
    question = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05audit\x07invalid\x00\x00\x01\x00\x01"

    def ask() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(1.0)
            client.connect(("127.0.0.1", facts["udp_port"]))
            client.send(question)
            return f"{len(client.recv(512))} bytes came back"

    return judge([("a question", ask)], refusals=UNREACHED)


@probe("P57", _GROUP, "reach an abstract socket of the host", "ECONNREFUSED", threat=_THREAT)
def abstract_socket(facts: Facts) -> Finding:
    def connect() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            client.connect("\0" + facts["abstract"])

    return judge([("connect", connect)], refusals=UNREACHED | {errno.EPERM})


@probe("P58", _GROUP, "configure an interface, make a tunnel", "EPERM, ENOENT or EACCES", threat=_THREAT)
def configure(facts: Facts) -> Finding:
    """The loopback's flags are set to what they are, which takes the same privilege as to change them."""

    def flags() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            answer = fcntl.ioctl(client, 0x8913, struct.pack("16sH14x", b"lo", 0))
            fcntl.ioctl(client, 0x8914, answer)

    return judge([("interface flags", flags), *((path, opens(path, os.O_RDWR)) for path in facts["tunnels"])])


@probe("P59", _GROUP, "send an echo request", "EPERM or EACCES", threat=_THREAT)
def echo_request(facts: Facts) -> Finding:
    """To the loopback, which is as far as it could get."""

    def send(family: int, kind: int, protocol: int, place: str) -> str:
        with socket.socket(family, kind, protocol) as client:
            client.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", (place, 0))
        return "sent"

    datagram, raw = int(socket.SOCK_DGRAM), int(socket.SOCK_RAW)
    return judge(
        [
            ("version 4", lambda: send(2, datagram, 1, "127.0.0.1")),
            ("version 6", lambda: send(10, datagram, 58, "::1")),
            ("raw", lambda: send(2, raw, 1, "127.0.0.1")),
        ],
        refusals=REFUSALS | {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT},
    )
