"""Refuse connections to other machines, in the tests and in the Python processes that they start.

Python imports a module of this name when it starts; `tests/conftest.py` puts this folder on the path of new processes,
and runs this file for the process of the tests itself. What was refused is also written to a file, one line each, so
that a test fails even where the error is handled as that of a machine without a network.
"""

import ipaddress
import os
import socket
import sys

REFUSED = "RBRL_TESTS_REFUSED"


def _is_here(host):
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost", "<broadcast>", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _is_address(host):
    try:
        ipaddress.ip_address(host if not isinstance(host, bytes) else host.decode())
    except ValueError:
        return False
    return True


def _leaves_the_machine(event, arguments):
    """The host an event would reach, or None. To connect a datagram socket sends nothing: Dask learns its address so."""
    if event in ("socket.sendto", "socket.sendmsg") or (
        event == "socket.connect" and arguments[0].type == socket.SOCK_STREAM
    ):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
        return None if _is_here(host) else host
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
        return None if _is_here(host) or _is_address(host) else host
    return None


def _refuse(event, arguments):
    if event.startswith("socket.") and (host := _leaves_the_machine(event, arguments)) is not None:
        said = f"The tests reach no other machine. Got {event} to {host!r}; use a server on this one, or stored data."
        if path := os.environ.get(REFUSED):
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{said}\n")
        raise PermissionError(said)


sys.addaudithook(_refuse)
