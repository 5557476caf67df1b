"""Uploads a picture, works on it, and works on what came out, as scripts that chain workflows do.

    python3 edit_picture.py HOST:PORT PICTURE OUTPUT_DIR

Polls the history instead of listening.
"""

import json
import os
import sys
import time
import urllib.parse
import urllib.request
import uuid

server, picture, output_dir = sys.argv[1:4]


def call(path, data=None, headers=None):
    request = urllib.request.Request(f"http://{server}{path}", data=data, headers=headers or {})
    with urllib.request.urlopen(request) as response:
        return response.read()


def upload(path, subfolder):
    boundary = uuid.uuid4().hex
    with open(path, "rb") as file:
        content = file.read()
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="subfolder"\r\n\r\n{subfolder}\r\n'.encode(),
        f'--{boundary}\r\nContent-Disposition: form-data; name="image"; '
        f'filename="{os.path.basename(path)}"\r\nContent-Type: image/jpeg\r\n\r\n'.encode(),
        content,
        f"\r\n--{boundary}--\r\n".encode(),
    ]
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = json.loads(call("/upload/image", b"".join(parts), headers))
    return "/".join(part for part in (answer["subfolder"], answer["name"]) if part)


def run(prompt):
    body = json.dumps({"prompt": prompt}).encode()
    prompt_id = json.loads(call("/prompt", body))["prompt_id"]
    while True:
        history = json.loads(call(f"/history/{prompt_id}"))
        if prompt_id in history:
            outputs = history[prompt_id]["outputs"].values()
            return [image for output in outputs for image in output.get("images", [])]
        time.sleep(0.1)


def save(image):
    path = os.path.join(output_dir, image["filename"])
    with open(path, "wb") as file:
        file.write(call(f"/view?{urllib.parse.urlencode(image)}"))
    return image["filename"]


def edit(image, node, prefix):
    return {
        "1": {"class_type": "LoadImage", "inputs": {"image": image}},
        "2": {"class_type": node, "inputs": {"image": ["1", 0]}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": prefix}},
    }


[inverted] = run(edit(upload(picture, "it's & more"), "ImageInvert", "inverted"))
saved = [save(inverted)]
[again] = run(edit(f"{inverted['filename']} [output]", "ImageInvert", "again"))
saved.append(save(again))
print(json.dumps({"saved": saved}))
