"""Uploads what it has downloaded, has a prompt refused, and interrupts one that runs.

    python3 chain_by_upload.py HOST:PORT PICTURE OUTPUT_DIR
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

server, picture, output_dir = sys.argv[1:4]


def call(path, data=None, headers=None):
    request = urllib.request.Request(f"http://{server}{path}", data=data, headers=headers or {})
    with urllib.request.urlopen(request) as response:
        return response.read()


def upload(path):
    boundary = uuid.uuid4().hex
    disposition = f'Content-Disposition: form-data; name="image"; filename="{os.path.basename(path)}"'
    with open(path, "rb") as file:
        parts = [f"--{boundary}\r\n{disposition}\r\n\r\n".encode(), file.read(), f"\r\n--{boundary}--\r\n".encode()]
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return json.loads(call("/upload/image", b"".join(parts), headers))["name"]


def submit(prompt):
    return json.loads(call("/prompt", json.dumps({"prompt": prompt}).encode()))["prompt_id"]


def edited(image, prefix):
    return {
        "1": {"class_type": "LoadImage", "inputs": {"image": image}},
        "2": {"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": prefix}},
    }


def run(prompt):
    prompt_id = submit(prompt)
    while prompt_id not in (history := json.loads(call(f"/history/{prompt_id}"))):
        time.sleep(0.1)
    [image] = history[prompt_id]["outputs"]["3"]["images"]
    path = os.path.join(output_dir, image["filename"])
    with open(path, "wb") as file:
        file.write(call(f"/view?{urllib.parse.urlencode(image)}"))
    return path


once = run(edited(upload(picture), "once"))
twice = run(edited(upload(once), "twice"))

try:
    submit({**edited("a file that is not there.png", "never"), "4": {"class_type": "Nonsense", "inputs": {}}})
except urllib.error.HTTPError as refusal:
    print(refusal.code)

sizes = {"width": 128, "height": 128, "seed": 3, "feed": 0.055, "kill": 0.062, "steps": 10_000}
endless = submit({
    "1": {"class_type": "ReactionDiffusion", "inputs": sizes},
    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "endless"}},
})
while not json.loads(call("/queue"))["queue_running"]:
    time.sleep(0.05)
time.sleep(0.5)
call("/interrupt", b"{}")
while endless not in json.loads(call(f"/history/{endless}")):
    time.sleep(0.1)
