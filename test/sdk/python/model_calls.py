"""What a program does with the model router."""

import asyncio
import contextlib
import functools
import os

import comfy_sdk
from both_clients import beside, done, items, opened, refusal


CHOICE = {"model_provider": "local", "strict_mode": True, "fallback_provider": True}
PICTURE_INPUT = {"width": 32, "height": 32, "seed": 5}


async def models(client, name):
    run, key = client.models.run, f"sdk-{name}"
    image = "local/procedural-image"
    detailed = await done(client.models.run_detailed(image, PICTURE_INPUT, idempotency_key=key, timeout=30))
    replayed = await done(client.models.run_detailed(image, PICTURE_INPUT, idempotency_key=key))
    binary = await done(run(image, {**PICTURE_INPUT, "output": "binary"}, timeout=30))
    catalog = client.models.list(limit=2, timeout=10)
    page = await done(catalog.page())
    rest = await items(client.models.list(cursor=page.next_cursor, limit=100))
    schema = await done(client.models.schema(image, timeout=10))
    same = await done(client.models.schema(image, etag=schema.etag))
    delay = "local/delay"
    failing = {"seconds": 0, "outcome": "provider_error"}
    return {
        "run": [detailed.replayed, replayed.replayed, replayed.output == detailed.output],
        "binary": [binary.content_type, len(binary.content) > 100, bool(binary.request_id)],
        "page": [len(page.data), page.has_more, page.limit, bool(page.request_id)],
        "all": len({each.id for each in [*page.data, *rest]}) == len(page.data) + len(rest) == 5,
        "model": [page.data[0].provider, page.data[0].id.endswith(page.data[0].model)],
        "schema": [schema.document["openapi"], schema.unchanged, same.unchanged, same.document],
        "conflict": await refusal(lambda: run(image, {**PICTURE_INPUT, "seed": 6}, idempotency_key=key)),
        "unknown": await refusal(lambda: run("local/digset", {})),
        "invalid": await refusal(lambda: run("local/image-resize", {"width": 0, "height": 8})),
        "refused": await refusal(lambda: run(delay, {"seconds": 0, "outcome": "content_policy_violation"})),
        "failed": await refusal(lambda: run(delay, failing, timeout=30)),
        "late": await refusal(lambda: run(delay, {**failing, "outcome": "provider_timeout"})),
        "chosen": await refusal(lambda: run(image, PICTURE_INPUT, **CHOICE)),
        "chosenDetailed": await refusal(lambda: client.models.run_detailed(image, PICTURE_INPUT, **CHOICE)),
        "queued": await queued(client, delay),
    }


async def queued(client, model):
    """Each call that needs queued requests, which the router has not."""
    inputs = {"seconds": 0}
    options = {"on_queue_update": print, "timeout": 5, "idempotency_key": f"queued-{model}"}
    handle = await done(client.models.handle(model, "none"))
    calls = {
        "submit": lambda: client.models.submit(model, inputs, idempotency_key="queued"),
        "subscribe": lambda: client.models.subscribe(model, inputs, **options),
        "status": handle.status,
        "get": lambda: handle.get(timeout=5),
        "events": lambda: items(handle.iter_events(timeout=5)),
        "cancel": handle.cancel,
    }
    refused = {name: (await refusal(call))["name"] for name, call in calls.items()}
    return {"handle": [handle.model, handle.request_id], **refused}


async def refused_keys(make, keys):
    """Clients whose keys are refused, and one that fails before it asks."""
    delay = functools.partial(dict, echo=1)
    calls = {
        "unknown": [delay(seconds=0)],
        "forbidden": [delay(seconds=0)],
        "disabled": [delay(seconds=0)],
        "poor": [delay(seconds=0, price_cents=5)],
        "rare": [delay(seconds=0), delay(seconds=0)],
        "alone": [delay(seconds=1), delay(seconds=1)],
    }
    seen = {}
    for name, inputs in calls.items():
        async with opened(make(api_key=keys[name], retry=comfy_sdk.NO_RETRY)) as client:
            run = [functools.partial(client.models.run, "local/delay", each) for each in inputs]
            ended = await asyncio.gather(*[refusal(functools.partial(beside, call)) for call in run])
            seen[name] = sorted(each.get("name") for each in ended)
    with without(comfy_sdk.BASE_URL_ENV_VAR):
        seen["none"] = (await refusal(lambda: make()))["name"]
    return seen


@contextlib.contextmanager
def without(variable):
    value = os.environ.pop(variable)
    try:
        yield
    finally:
        os.environ[variable] = value
