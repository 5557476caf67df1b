"""The local style in Python: urllib for HTTP and a WebSocket client of a few lines.

    python3 local_style.py HOST:PORT WORKFLOW_FILE OUTPUT_DIR
"""

import base64
import json
import os
import socket
import struct
import sys
import urllib.parse
import urllib.request
import uuid

server, workflow_file, output_dir = sys.argv[1:4]
client_id = str(uuid.uuid4())


class Listener:
    """Receives whole frames; the server neither masks nor fragments."""

    def __init__(self, path):
        host, port = server.split(":")
        self.stream = socket.create_connection((host, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {server}",
            f"Origin: http://{server}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        self.stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.file = self.stream.makefile("rb")
        if b" 101 " not in self.file.readline():
            raise ConnectionError("no upgrade")
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def receive(self):
        first, second = self.file.read(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self.file.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.file.read(8))
        return first & 0x0F, self.file.read(length)


def submit(prompt, prompt_id):
    body = json.dumps({"prompt": prompt, "client_id": client_id, "prompt_id": prompt_id})
    urllib.request.urlopen(urllib.request.Request(f"http://{server}/prompt", data=body.encode()))


def wait_for_end(listener, prompt_id):
    while True:
        opcode, payload = listener.receive()
        if opcode != 1:
            continue
        message = json.loads(payload)
        if message["type"] == "executing":
            data = message["data"]
            if data["node"] is None and data["prompt_id"] == prompt_id:
                return


def fetch(path):
    with urllib.request.urlopen(f"http://{server}{path}") as response:
        return response.read()


def save(image):
    query = urllib.parse.urlencode({key: image[key] for key in ("filename", "subfolder", "type")})
    with open(os.path.join(output_dir, image["filename"]), "wb") as file:
        file.write(fetch(f"/view?{query}"))
    return image["filename"]


listener = Listener(f"/ws?clientId={client_id}")
prompt_id = str(uuid.uuid4())
with open(workflow_file, encoding="utf-8") as file:
    submit(json.load(file), prompt_id)
wait_for_end(listener, prompt_id)
entry = json.loads(fetch(f"/history/{prompt_id}"))[prompt_id]
images = [image for output in entry["outputs"].values() for image in output.get("images", [])]
saved = [save(image) for image in images]
print(json.dumps({"promptId": prompt_id, "outputs": entry["outputs"], "status": entry["status"], "saved": saved}))
