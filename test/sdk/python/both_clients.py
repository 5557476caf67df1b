"""One program for both clients: the sync one answers at once, the async one is awaited."""

import asyncio
import contextlib
import inspect


async def done(value):
    """The answer of a call of either client."""
    return await value if inspect.isawaitable(value) else value


async def items(iterable):
    """What an iteration of either client gives."""
    if hasattr(iterable, "__aiter__"):
        return [item async for item in iterable]
    return list(iterable)


async def first(iterable, matches):
    """The first item an iteration of either client gives that matches."""
    if not hasattr(iterable, "__aiter__"):
        return next(item for item in iterable if matches(item))
    async for item in iterable:
        if matches(item):
            return item
    raise AssertionError("no such item")


async def refusal(make):
    """The exception a call ends in, as a caller sees it."""
    try:
        await done(make())
    except Exception as error:
        seen = {name: getattr(error, name, None) for name in ("code", "http_status", "error_type")}
        places = [each.location for each in getattr(error, "errors", ())]
        seen = {**seen, "places": places}
        return {"name": type(error).__name__, **{name: value for name, value in seen.items() if value}}
    return {"name": "none"}


def beside(call):
    """A call that waits, while this program goes on."""
    return call() if inspect.iscoroutinefunction(call) else asyncio.to_thread(call)


@contextlib.asynccontextmanager
async def opened(client):
    if hasattr(client, "__aenter__"):
        async with client as inside:
            yield inside
    else:
        with client as inside:
            yield inside
