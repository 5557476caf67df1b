"""Connects to /ws again and again, and drops the bytes that arrive together with the 101.

    python3 drops_surplus.py PORT CONNECTS

Prints on how many connects the first frame arrived.
"""

import base64
import os
import socket
import sys

port, connects = int(sys.argv[1]), int(sys.argv[2])


def hears_status(number):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        lines = [
            f"GET /ws?clientId=surplus-{number} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        ]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65536)
        connection.settimeout(1)
        try:
            return b'"type": "status"' in connection.recv(65536)
        except socket.timeout:
            return False


print(sum(hears_status(number) for number in range(connects)))
