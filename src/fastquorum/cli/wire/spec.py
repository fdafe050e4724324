"""`fastquorum wire spec`: the fields and versions of Kafka's messages, as they are declared here."""

import argparse
import difflib
from typing import Any, Final

from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.cli.wire.fields import fields_json, fields_table
from fastquorum.errors import UsageError
from fastquorum.types import is_whole
from fastquorum.wire import API, Api, ApiKey, Message, RequestHeader, ResponseHeader
from fastquorum.wire.records.control import CONTROL_MESSAGES
from fastquorum.wire.records.metadata import METADATA_RECORDS

_HEADERS: Final = (RequestHeader, ResponseHeader)


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print the APIs that are declared here, or the fields of one, in Kafka's notation: `12+` is version 12 and "
        "all later ones. A tagged field is in its struct's tag section under its number, in the versions shown. A "
        "field without a default is zero, empty, or a struct of defaults.\n"
        "Names of fields are those of Kafka's JSON, of `wire decode` and of `wire replay --ignore`. With a version "
        "only its fields are shown, in the order of the bytes, with how each begins: int16, int32 and uvarint are "
        "lengths or counts (uvarint: plus one), null_mark a byte that says whether a struct follows.\n"
        "ADVERTISED is the range that a node that serves the API names in ApiVersions.",
        "fastquorum wire spec",
        "fastquorum wire spec Fetch",
        "fastquorum wire spec 1:12",
        "fastquorum wire spec FetchResponse:18 --format json",
        "fastquorum wire spec --records",
        "fastquorum wire spec PartitionRecord",
    )
    parser.add_argument(
        "what",
        metavar="API[:VERSION]",
        nargs="?",
        help="an API by name or key, one of its messages (FetchResponse), a record (PartitionRecord), or a header "
        "(RequestHeader)",
    )
    parser.add_argument("--records", action="store_true", help="list the metadata and control records")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.what is not None and arguments.records:
        raise UsageError("--records lists them all", "leave it out to see one")
    if arguments.what is not None:
        _show(arguments.what, arguments.format)
    elif arguments.records:
        _list_records(arguments.format)
    else:
        _list_apis(arguments.format)
    return 0


# --- lists ------------------------------------------------------------------------------------------------------------


def _list_apis(how: str) -> None:
    if how == "json":
        for api in API.values():
            print_json(_api_json(api))
        return
    rows = [(int(api.key), api.name, api.versions, api.flexible, str(api.advertised)) for api in API.values()]
    print_table(("KEY", "NAME", "VERSIONS", "FLEXIBLE", "ADVERTISED"), rows)


def _api_json(api: Api) -> dict[str, Any]:
    return {
        "apiKey": int(api.key),
        "name": api.name,
        "validVersions": str(api.versions),
        "flexibleVersions": str(api.flexible),
        "advertisedVersions": str(api.advertised),
    }


def _list_records(how: str) -> None:
    rows = [("metadata", key, cls) for key, cls in METADATA_RECORDS.items()]
    rows += [("control", int(kind), cls) for kind, cls in CONTROL_MESSAGES.items()]
    if how == "json":
        for kind, key, cls in rows:
            print_json({"type": kind, "key": key, **_message_json(cls)})
        return
    print_table(
        ("TYPE", "KEY", "NAME", "VERSIONS", "FLEXIBLE"),
        [(kind, key, cls.__wire__.name, cls.__wire__.versions, cls.__wire__.flexible) for kind, key, cls in rows],
    )


def _message_json(cls: type[Message]) -> dict[str, Any]:
    declared = cls.__wire__
    return {
        "name": declared.name,
        "validVersions": str(declared.versions),
        "flexibleVersions": str(declared.flexible),
    }


# --- one of them ------------------------------------------------------------------------------------------------------


def _show(what: str, how: str) -> None:
    name, colon, text = what.partition(":")
    found = _find(name)
    messages = [found.request, found.response] if isinstance(found, Api) else [found]
    version = _version(text, messages[0]) if colon else None
    if how == "json":
        described = [_message_json(cls) | {"fields": fields_json(cls, version)} for cls in messages]
        if isinstance(found, Api):
            print_json(_api_json(found) | dict(zip(("request", "response"), described, strict=True)))
        else:
            print_json(described[0])
        return
    for number, cls in enumerate(messages):
        if number:
            print()
        print("\n".join(_title(cls, version)))
        header, rows = fields_table(cls, version)
        if rows:
            print_table(header, rows)
        else:
            print("no fields")


def _title(cls: type[Message], version: int | None) -> list[str]:
    declared = cls.__wire__
    api = API.get(declared.api_key) if declared.kind in ("request", "response") else None
    key = (
        f", {'record' if declared.kind == 'metadata' else 'API'} key {declared.api_key}"
        if declared.api_key >= 0
        else ""
    )
    if version is None:
        advertised = f", advertised {api.advertised}" if api else ""
        heading = f"{declared.name}{key}: versions {declared.versions}, flexible {declared.flexible}{advertised}"
    else:
        is_flexible = "" if declared.flexible.has(version) else "not "
        heading = f"{declared.name}{key}: version {version}, {is_flexible}flexible"
        if api is not None:
            name, of = (
                ("RequestHeader", api.request_header_version)
                if declared.kind == "request"
                else ("ResponseHeader", api.response_header_version)
            )
            heading += f", behind {name} v{of(version)}"
    meaning = (cls.__doc__ or "").split("\n\n")[0]
    return [heading, *([" ".join(meaning.split())] if meaning else [])]


def _find(name: str) -> Api | type[Message]:
    """Find an API, one of its messages, a record or a header. UsageError suggests similar names."""
    if is_whole(name):
        if int(name) in API:
            return API[int(name)]
        raise UsageError(_undeclared(int(name)), "`fastquorum wire spec` lists those that are")
    known: dict[str, tuple[str, Api | type[Message]]] = {}
    for api in API.values():
        for each in (api.request, api.response):
            known[_plain(each.__wire__.name)] = each.__wire__.name, each
        known[_plain(api.name)] = api.name, api
    others: list[type[Message]] = [*METADATA_RECORDS.values(), *CONTROL_MESSAGES.values(), *_HEADERS]
    for cls in others:
        known[_plain(cls.__wire__.name)] = cls.__wire__.name, cls
    if _plain(name) in known:
        return known[_plain(name)][1]
    for key in ApiKey:
        if _plain(key.name) == _plain(name):
            raise UsageError(_undeclared(key), "`fastquorum wire spec` lists those that are")
    close = [known[each][0] for each in difflib.get_close_matches(_plain(name), known, n=3)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`fastquorum wire spec` and `... --records` list them"
    raise UsageError(f"{name!r} is neither an API nor a record", hint)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _undeclared(key: int) -> str:
    known = any(key == each for each in ApiKey)
    name = f"{ApiKey(key).name} ({int(key)})" if known else f"the API with key {key}"
    return f"{name} is not declared here"


def _version(text: str, cls: type[Message]) -> int:
    versions = cls.__wire__.versions
    if not is_whole(text):
        raise UsageError(f"{text!r} is not a version", f"{cls.__wire__.name} has {versions}")
    if not versions.has(int(text)):
        raise UsageError(f"{cls.__wire__.name} has no version {text}", f"it has {versions}")
    return int(text)
