"""The public surface of comfy_sdk, and which of it a program has used."""

import functools
import inspect
import sys

import comfy_sdk
from comfy_sdk import client, router_exceptions

MISSING = inspect.Parameter.empty


def _public_classes():
    """All that is exported, and the namespaces that hang on a client."""
    exported = [getattr(comfy_sdk, name) for name in comfy_sdk.__all__]
    exported += [getattr(router_exceptions, name) for name in router_exceptions.__all__]
    namespaces = []
    for kind in (comfy_sdk.Comfy, comfy_sdk.AsyncComfy):
        namespaces += [type(value) for value in vars(kind(api_key="none")).values()]
    found = [each for each in [*exported, *namespaces] if inspect.isclass(each)]
    return {each.__name__: each for each in found if each.__module__.startswith("comfy_sdk")}


CLASSES = _public_classes()


def _function_of(member):
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return member.func
    return inspect.unwrap(getattr(member, "__func__", member))


def _members(kind):
    """Name and function of each public member of a class, inherited ones included."""
    for name in dir(kind):
        if name.startswith("_") and name not in ("__init__", "__enter__", "__aenter__", "__iter__", "__aiter__"):
            continue
        function = _function_of(inspect.getattr_static(kind, name))
        if inspect.isfunction(function):
            yield name, function


def _options(function):
    parameters = list(inspect.signature(function).parameters.values())
    return [each for each in parameters if each.name != "self"]


def _is_internal(name, option):
    """Objects are made by the SDK: what their constructor takes is no option of a caller."""
    return name == "__init__" and option.annotation.startswith(("ComfyLow", "AsyncComfyLow", "Low", "_Source"))


def surface():
    """`Comfy.submit`, `Comfy.submit(metadata)` … for each member and each option it takes."""
    found = set()
    for kind in CLASSES.values():
        if issubclass(kind, Exception):
            found.add(kind.__name__)
            continue
        for name, function in _members(kind):
            found.add(f"{kind.__name__}.{name}")
            for option in _options(function):
                if not _is_internal(name, option):
                    found.add(f"{kind.__name__}.{name}({option.name})")
    return found


class Used:
    """Notes each call of a public member, and each option that was given another value than its default."""

    def __init__(self):
        self.names = set()
        self._by_code = {}
        for kind in CLASSES.values():
            for name, function in _members(kind):
                self._by_code[function.__code__] = (name, _options(function))

    def start(self):
        sys.setprofile(self.note)

    def stop(self):
        sys.setprofile(None)

    def note(self, frame, event, _argument):
        known = self._by_code.get(frame.f_code) if event == "call" else None
        if known is None:
            return
        name, options = known
        values = frame.f_locals
        kind = type(values.get("self")).__name__
        if isinstance(values.get("self"), BaseException):
            self.names.add(kind)
            return
        self.names.add(f"{kind}.{name}")
        for option in options:
            value = values.get(option.name, option.default)
            if option.default is MISSING or value is not option.default and value != option.default:
                self.names.add(f"{kind}.{name}({option.name})")
