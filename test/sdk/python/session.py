"""Drives a v2 service with the official Python SDK, unchanged, once in its sync and once in its async form.

    python3 session.py PICTURE OUTPUT_DIR KEYS_JSON    (the keys of the model router, by what becomes of their calls)

COMFY_BASE_URL and COMFY_ROUTER_BASE_URL name the service. Prints what it saw, the SDK's public surface and
which of it was used, as one JSON line.
"""

import asyncio
import functools
import io
import json
import os
import sys
import threading
import time
from pathlib import Path

import comfy_sdk
import httpx
from comfy_sdk import AsyncComfy, Comfy, RetryPolicy
from both_clients import beside, done, first, items, opened, refusal
from model_calls import models, refused_keys
from surface import Used, surface

PICTURE, OUT, KEYS = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
BASE = os.environ["COMFY_BASE_URL"]
used = Used()
used.start()


def fetched(link):
    """A link that is not signed needs the key of its user."""
    headers = {"Authorization": f"Bearer {KEYS['user']}"}
    return httpx.get(link.url, headers=headers, follow_redirects=True).raise_for_status().content


def loading(image=""):
    return {
        "10": {"class_type": "LoadImage", "inputs": {"image": image}},
        "13": {"class_type": "SaveImage", "inputs": {"images": ["10", 0], "filename_prefix": "loaded"}},
    }


def growing(steps, seed):
    sizes = {"width": 128, "height": 128, "feed": 0.055, "kill": 0.062}
    return {
        "1": {"class_type": "ReactionDiffusion", "inputs": {**sizes, "seed": seed, "steps": steps}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "grown"}},
    }


async def assets(client, name):
    (path := OUT / f"{name}.jpg").write_bytes(PICTURE.read_bytes() + name.encode())
    from_file = await done(client.assets.from_file(path))
    hashed = from_file.hash
    await done(from_file.commit())
    again = await done(client.assets.from_bytes(path.read_bytes(), filename="again.jpg", content_type="image/jpeg"))
    await done(again.commit())
    text = f"text of {name}".encode()
    streamed = await done(client.assets.from_stream(io.BytesIO(text), filename="t.txt", content_type="text/plain"))
    reference = await done(streamed.as_reference())
    link = await done(streamed.get_download_url())
    from_url = await done(client.assets.from_url(f"{BASE}/holdover"))
    await done(from_url.commit())
    got = await done(client.assets.get(from_file.id))
    changed = OUT / f"changed-{name}"
    changed.write_bytes(f"one {name}".encode())
    mismatch = await done(client.assets.from_file(changed))
    assert mismatch.hash
    changed.write_bytes(f"two {name}".encode())
    seen = {
        "created": from_file.created_new,
        "createdAgain": again.created_new,
        "sameHash": got.hash == hashed == again.hash,
        "reference": [reference["info"]["id"] == streamed.id, reference["info"]["file_path"]],
        "job": got.job_id,
        "expires": got.expires_at is not None,
        "path": got.file_path,
        "link": fetched(link) == text,
        "mismatch": await refusal(mismatch.commit),
    }
    await done(again.delete())
    await done(client.assets.delete(from_url.id))
    return {**seen, "deleted": await refusal(lambda: client.assets.get(from_url.id))}


async def jobs(client, name):
    file = OUT / f"workflow-{name}.json"
    file.write_text(json.dumps({**loading(), "99": {"class_type": "SaveImage", "inputs": {}}}))
    workflow = await done(client.workflows.from_file(file))
    workflow.remove_node("99")
    workflow.set_input("10", "image", await done(client.assets.from_file(PICTURE)))
    job = await done(client.run(workflow, api_key="comfyui-partner", timeout=60))
    [output] = job.get_outputs("13")
    stream = io.BytesIO()
    whole = await done(output.to_bytes())
    part = await done(output.to_bytes(range=(2, 5)))
    written = await done(output.to_stream(stream, range=(1, 3)))
    saved = await done(output.to_file(OUT / f"{name}.png", range=(0, 7)))
    link = await done(output.get_download_url())
    asset = await done(client.assets.get(output.id))
    graph = await done(job.get_workflow())
    return {
        "status": job.status,
        "error": job.error,
        "output": [output.name, output.node_id, output.type, output.content_type, output.job_id == job.id],
        "isWhole": [len(whole) == output.size_bytes, len(job.outputs)],
        "ranges": [written, part == whole[2:6], stream.getvalue() == whole[1:4], saved.read_bytes() == whole[:8]],
        "link": fetched(link) == whole,
        "madeBy": asset.job_id == job.id,
        "workflow": [graph.format, sorted(graph.graph)],
    }


async def labels(client, name):
    text = client.workflows.from_str(json.dumps(growing(40, 3)))
    job = await done(client.submit(text, metadata={"run": name, "by": "sdk"}, idempotency_key=f"labels-{name}"))
    events = await items(job.events())
    await done(job.result())
    kinds = {type(event).__name__ for event in events}
    previews = [event for event in events if isinstance(event, comfy_sdk.Preview)]
    ready = [event for event in events if isinstance(event, comfy_sdk.OutputReady)]
    again = await done(client.jobs.get(job.id))
    listed = await items(client.list_jobs(metadata={"run": name}, limit=1))
    return {
        "kinds": sorted(kinds),
        "steps": any(isinstance(event, comfy_sdk.Progress) and event.steps for event in events),
        "preview": previews[0].content_type,
        "outputs": [event.output.name == job.outputs[0].name for event in ready],
        "last": [type(events[-1]).__name__, events[-1].status],
        "metadata": again.metadata,
        "listed": [[each.id == job.id, each.status, each.metadata] for each in listed],
        "times": all(each.create_time and each.update_time for each in listed),
        "reused": await refusal(lambda: client.submit(text, idempotency_key=f"labels-{name}")),
        "tooMany": await refusal(lambda: client.submit(text, metadata={f"k{i}": "v" for i in range(17)})),
    }


async def refusals(client, name):
    def submit(graph):
        return lambda: client.submit(client.workflows.from_json(graph))

    unknown = {"__type": "core/ASSET", "info": {"id": "00000000-0000-4000-8000-000000000000"}}
    broken = loading(await done(client.assets.from_bytes(b"no picture", filename=f"{name}.png")))
    return {
        "invalid": await refusal(submit({"1": {"class_type": "Nonsense", "inputs": {}}})),
        "missing": await refusal(submit(loading(unknown))),
        "ui": await refusal(submit({"nodes": [], "links": [], "last_node_id": 1})),
        "unknownJob": await refusal(lambda: client.jobs.get("00000000-0000-4000-8000-000000000000")),
        "failed": await refusal(lambda: client.run(client.workflows.from_json(broken))),
    }


async def cancelling(client, name):
    """One job runs and one waits, which is all there is room for; a third is sent again until there is."""
    running = await done(client.submit(client.workflows.from_json(growing(10_000, 11))))
    while (await done(running.refresh())).status != "running":
        await asyncio.sleep(0.05)
    waiting = await done(client.submit(client.workflows.from_json(growing(1, 5))))
    queued = waiting.status
    position = await first(waiting.events(), lambda event: getattr(event, "queue_position", None) is not None)
    submit = functools.partial(client.submit, client.workflows.from_json(growing(1, 6)))
    third = asyncio.ensure_future(beside(submit))
    await asyncio.sleep(0.5)
    refused = not third.done()
    await done(waiting.cancel())
    late = await refusal(lambda: running.wait(timeout=0))
    await done(running.cancel())
    last = (await items(waiting.events()))[-1]
    ended = await done(running.wait())
    accepted = await third
    return {
        "states": [queued, waiting.status, ended.status],
        "position": [position.status, position.queue_position],
        "last": [type(last).__name__, last.status],
        "late": late["name"],
        "result": (await refusal(running.result))["name"],
        "third": [refused, (await done(accepted.result())).status],
    }


POLICY = RetryPolicy(
    max_elapsed=1, initial_backoff=0.1, backoff_factor=1.5, max_backoff=1, jitter=False,
    retry_possibly_in_flight=True, retry_collectable=False, collect_max_elapsed=10,
)


async def session(make, name):
    seen = {}
    options = {"api_key": KEYS["user"], "timeout": 60, "client_info": "holdover-test/1", "retry": comfy_sdk.NO_RETRY}
    async with opened(make(**options)) as client:
        for part in (assets, jobs, labels, refusals, cancelling, models):
            seen[part.__name__] = await part(client, name)
    seen["keys"] = await refused_keys(make, KEYS)
    last = make(api_key=KEYS["user"], retry=POLICY)
    again = await refusal(lambda: last.models.run("local/delay", {"seconds": 0, "echo": 1, "outcome": "provider_error"}))
    seen["retry"] = [last.models.retry.enabled, last.models.timeout.read, last.models.base_url == BASE, again["name"]]
    await done(last.close() if hasattr(last, "close") else last.aclose())
    return seen


threading.setprofile(used.note)
started = time.monotonic()
both = {"sync": asyncio.run(session(Comfy, "sync")), "async": asyncio.run(session(AsyncComfy, "async"))}
used.stop()
names = surface()
print(json.dumps({**both, "surface": sorted(names), "used": sorted(used.names & names), "seconds": time.monotonic() - started}, default=str))
