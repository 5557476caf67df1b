"""Runs workflows one after the other through a public client library, as its own documentation does.

client_programs.py LIBRARY HOST:PORT WORKFLOW_FILE...

Prints one JSON line for each workflow: the files the library returned (name and base64), or the error.
"""

import asyncio
import base64
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path


def mcp_comfyui(address, path):
    os.environ["COMFYUI_URL"] = f"http://{address}"
    from comfyui_mcp import server

    # The images of a tool call; its bundled workflow names model classes.
    saved = server._run_workflow(json.loads(Path(path).read_text()))
    return [(file.name, file.read_bytes()) for file in saved]


def comfyui_utils(address, path):
    from comfyui_utils.comfy import Callbacks, ComfyAPI

    results = []

    class Collect(Callbacks):
        async def queue_position(self, position):
            pass

        async def in_progress(self, node_id, progress, total):
            pass

        async def completed(self, outputs, cached):
            results.append(outputs)

    async def run():
        api = ComfyAPI(address)
        await api.submit(json.loads(Path(path).read_text()), Collect())
        files = []

        for image in [image for outputs in results for image in outputs["images"]]:

            async def keep(data, name=image["filename"]):
                files.append((name, data.read()))

            await api.fetch(image, keep)
        return files

    return asyncio.run(run())


def comfy_api_simplified(address, path):
    from comfy_api_simplified import ComfyApiWrapper, ComfyWorkflowWrapper

    api = ComfyApiWrapper(f"http://{address}/")
    images = api.queue_and_wait_images(ComfyWorkflowWrapper(path), "Save Image")
    return list(images.items())


def comfy_ui_client(address, path):
    from comfy_ui_client import client

    outputs = client.ComfyUIClient(address).get_outputs(json.loads(Path(path).read_text()))
    folders = [folder for kinds in outputs["images"].values() for kind in kinds.values() for folder in kind.values()]
    return [item for folder in folders for item in folder.items()]


def comfyui_async_api_tool(address, path):
    import aiohttp
    from comfyui_async_api_tool import ComfyClient

    async def run():
        async with aiohttp.ClientSession() as session:
            client = ComfyClient(session, servers=[f"http://{address}"])
            events = [event async for event in client.run(json.loads(Path(path).read_text()))]
        errors = [event["msg"] for event in events if event["type"] == "error"]
        if errors:
            raise RuntimeError(errors[0])
        return [("image", event["data"]) for event in events if event["type"] == "image"]

    return asyncio.run(run())


def comfy_toolkit(address, path):
    from comfy_toolkit import ComfyClient

    client = ComfyClient(f"http://{address}")
    result = client.submit_and_track(client.load_workflow(path))
    return [(image["filename"], client.download(image)) for image in result["images"]]


LIBRARIES = {
    "mcp-comfyui": mcp_comfyui,
    "comfyui-utils": comfyui_utils,
    "comfy-api-simplified": comfy_api_simplified,
    "comfy-ui-client": comfy_ui_client,
    "comfyui-async-api-tool": comfyui_async_api_tool,
    "comfy-toolkit": comfy_toolkit,
}


def main(library, address, *paths):
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        for path in paths:
            try:
                files = LIBRARIES[library](address, path)
                told = {"files": [[name, base64.b64encode(data).decode()] for name, data in files]}
            except Exception as error:
                line = traceback.extract_tb(error.__traceback__)[-1].line
                told = {"error": f"{type(error).__name__}: {error} at {line}"}
            print(json.dumps(told), flush=True)


main(*sys.argv[1:])
