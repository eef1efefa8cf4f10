"""The tests themselves reach no other machine."""

import socket
import subprocess
import sys
import threading

import pytest

# Of a range that is kept for documentation: nobody has it.
ELSEWHERE = "192.0.2.1"


def test_a_connection_to_another_machine_is_refused_and_noted(refused):
    with pytest.raises(PermissionError, match=r"reach no other machine. Got socket.connect to '192.0.2.1'"):
        socket.create_connection((ELSEWHERE, 80), timeout=1)
    with pytest.raises(PermissionError, match=r"Got socket.getaddrinfo to 'data.example'"):
        socket.getaddrinfo("data.example", 80)
    assert len(refused.take()) == 2


def test_processes_refuse_it_too(refused):
    program = f"import socket; socket.create_connection(({ELSEWHERE!r}, 80), timeout=1)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "PermissionError: The tests reach no other machine." in run.stderr
    assert len(refused.take()) == 1


def test_this_machine_is_not_another():
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()
        thread.join()
