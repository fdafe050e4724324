"""Hosts and ports as people write them: what is taken, what is refused, and by which words."""

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.addresses import (
    AddressError,
    check_reachable,
    is_everywhere,
    is_loopback,
    is_of_many,
    parse_address,
    place,
)
from fastquorum.client.endpoints import parse_endpoints
from fastquorum.errors import ConfigError, UsageError
from fastquorum.node.settings.settings import combine, from_arguments
from fastquorum.storage.format import FormatOptions, check_options
from fastquorum.storage.identity import LogKind, format_voters, parse_voters
from fastquorum.types import LISTENER_NAME, Endpoint, ReplicaKey, Uuid, Voter, VoterSet

GOOD = {
    "h1:9093": ("h1", 9093),
    " h1.example.:1 ": ("h1.example.", 1),
    "kafka_1.svc:65535": ("kafka_1.svc", 65535),
    "h--1.a-b:1": ("h--1.a-b", 1),
    "127.0.0.1:9093": ("127.0.0.1", 9093),
    "[::1]:9093": ("::1", 9093),
    "[fe80::1%lo]:9093": ("fe80::1%lo", 9093),
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}.:9093": (f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}.", 9093),
    "xn--bcher-kva.example:9093": ("xn--bcher-kva.example", 9093),
}
BAD = {
    "": "the port is missing",
    "h1": "the port is missing",
    "9093": "the host and a colon are missing before the port",
    "h1:": "port '' is not a number from 1 to 65535",
    "h1:x": "port 'x' is not a number",
    "h1:0": "port '0' is not a number from 1",
    "h1:65536": "port '65536' is not a number",
    "h1:-1": "port '-1' is not a number",
    "h1:９": "port '９' is not a number",
    ":9093": "the host is empty",
    ".:9093": "the host is empty",
    "q2..svc:9093": "an empty label",
    ".svc:9093": "an empty label",
    "svc..:9093": "an empty label",
    "-h1:9093": "a label that begins or ends with '-'",
    "h1.svc-:9093": "a label that begins or ends with '-'",
    f"{'a' * 64}.svc:9093": "a label of 64 characters, 63 is the most",
    f"{'a.' * 127}b:9093": "has 255 characters, 253 is the most",
    "bücher.example:9093": "not ASCII: write it as xn--bcher-kva.example",
    "h 1:9093": "has a ' ', which host names cannot have",
    "h1/x:9093": "has a '/'",
    "h1\0:9093": "has a '\\x00'",
    "user@h1:9093": "has a '@'",
    "http://h1:9093": "'http' in front of it is not allowed",
    "PLAINTEXT://[::1]:9093": "'PLAINTEXT' in front of it is not allowed",
    "::1:9093": "write an IPv6 address in brackets, as in [::1]:9093",
    "fe80::1": "write an IPv6 address in brackets",
    "[::1:9093": "the bracket of an IPv6 address is not closed",
    "[::1]": "the port is missing",
    "[::1]9093": "there is '9093' between the host and the port",
    "[h1]:9093": "'h1' in brackets is not an IPv6 address",
    "[::1::2]:9093": "is not an IPv6 address",
    "256.0.0.1:9093": "is not an IPv4 address",
    "127.1:9093": "is not an IPv4 address",
    "010.0.0.1:9093": "is not an IPv4 address",
    "0:9093": "is not an IPv4 address",
    "0x7f000001:9093": "is not an IPv4 address",
}
NOBODYS = ["0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]", "[::ffff:0.0.0.0]"]
"""Every address of a machine, and so none that another one could be told."""


@pytest.mark.parametrize(("text", "found"), GOOD.items())
def test_a_host_and_a_port_are_read(text: str, found: tuple[str, int]) -> None:
    assert parse_address(text) == found


@pytest.mark.parametrize(("text", "words"), BAD.items())
def test_what_is_wrong_with_an_address_is_named(text: str, words: str) -> None:
    with pytest.raises(AddressError) as refused:
        parse_address(text)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", [text for text in BAD if text and not text.isspace() and "," not in text])
def test_every_option_and_setting_refuses_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"--bootstrap: .* is not HOST:PORT"):
        parse_endpoints("--bootstrap", text)
    with pytest.raises(ValueError, match="is not a voter"):
        parse_voters(f"1@{text}")
    for name in ("advertise", "bootstrap", "voters"):
        value = f"1@{text}" if name == "voters" else text
        if "://" not in text:  # NAME://HOST:PORT is a listener
            with pytest.raises(ConfigError, match=name):
                combine(from_arguments({name: value}))


@pytest.mark.parametrize("name", ["listen", "metrics"])
def test_only_what_is_listened_on_may_be_every_address_or_any_port(name: str) -> None:
    found = combine(from_arguments({name: ":0"}))
    assert getattr(found, name) == Endpoint(LISTENER_NAME, "", 0)
    with pytest.raises(ConfigError, match="an empty label"):
        combine(from_arguments({name: "a..b:0"}))


@pytest.mark.parametrize("host", NOBODYS)
def test_no_voter_is_at_every_address(host: str) -> None:
    bare = host.strip("[]")
    assert is_everywhere(bare)
    with pytest.raises(ValueError, match="no other machine can reach"):
        parse_voters(f"1@{host}:9093")
    voters = VoterSet([Voter(ReplicaKey(1), (Endpoint(LISTENER_NAME, bare, 9093),))])
    with pytest.raises(UsageError, match="voter 1: no other machine can reach"):
        check_options(FormatOptions("A" * 22, 1, Uuid(b"\1" * 16), voters, LogKind.USER))


@pytest.mark.parametrize("host", ["255.255.255.255", "224.0.0.1", "ff02::1", "::ffff:239.1.2.3"])
def test_nobody_is_at_the_address_of_many(host: str) -> None:
    with pytest.raises(AddressError, match="it is the address of many machines"):
        check_reachable(host)
    with pytest.raises(ConfigError, match="it is the address of many machines"):
        combine(from_arguments({"voters": f"1@[{host}]:9093" if ":" in host else f"1@{host}:9093"}))
    with pytest.raises(AddressError, match="it is the address of many machines"):
        parse_address(f"[{host}]:0" if ":" in host else f"{host}:0", port_min=0)


def test_a_scope_id_is_nothing_that_others_can_be_told() -> None:
    with pytest.raises(AddressError, match="scope id, which means something on one machine only"):
        check_reachable("fe80::1%eth0")


@pytest.mark.parametrize(
    ("one", "other"),
    [("H1.example", "h1.example."), ("::1", "0:0:0:0:0:0:0:1"), ("::ffff:10.0.0.1", "10.0.0.1")],
)
def test_two_spellings_of_an_address_are_one_place(one: str, other: str) -> None:
    assert place(Endpoint("A", one, 1)) == place(Endpoint("B", other, 1))
    voters = VoterSet([Voter(ReplicaKey(at), (Endpoint("", host, 9),)) for at, host in ((1, one), (2, other))])
    with pytest.raises(UsageError, match="voters 1 and 2 are both at"):
        check_options(FormatOptions("A" * 22, 1, Uuid(b"\1" * 16), voters, LogKind.USER))


@pytest.mark.parametrize("host", ["127.0.1.1", "::1", "::ffff:127.0.0.1", "localhost", "a.LOCALHOST."])
def test_a_loopback_address_or_name_is_known_without_a_look_up(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback(f"{host}.example" if "localhost" in host.lower() else "128.0.0.1")


LABELS = st.from_regex(r"[a-z]([a-z0-9_-]{0,20}[a-z0-9])?", fullmatch=True)
HOSTS = st.one_of(
    st.lists(LABELS, min_size=1, max_size=4).map(".".join),
    st.ip_addresses().map(str).filter(lambda address: not is_everywhere(address) and not is_of_many(address)),
)


@settings(max_examples=50)
@given(host=HOSTS, port=st.integers(1, 65535))
def test_what_is_shown_can_be_read_back(host: str, port: int) -> None:
    endpoint = Endpoint(LISTENER_NAME, host, port)
    assert parse_address(endpoint.address) == (host, port)
    assert parse_endpoints("--bootstrap", endpoint.address) == (endpoint,)
    voters = VoterSet([Voter(ReplicaKey(7), (endpoint,))])
    assert parse_voters(format_voters(voters)) == voters


@settings(max_examples=100)
@given(text=st.text(alphabet="a1.:[]@%-_é \0/", max_size=30))
def test_any_text_is_read_or_refused_and_never_anything_else(text: str) -> None:
    try:
        host, port = parse_address(text)
    except AddressError:
        return
    assert (host, port) == parse_address(Endpoint("", host, port).address)
    assert "." in host or ":" in host or host.isascii()
    if ":" in host:
        ipaddress.ip_address(host)
