from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from amqp_broker.server.listening import (
    Address,
    CannotListen,
    addresses_of,
    listen,
    listen_nearby,
    open_sockets,
    stop_listening,
)
from compat.brokers import free_port
from tests.server.addresses import IPV4, IPV6, NOWHERE, accepts, has_address, needs_ipv6


def test_an_address_is_returned_unchanged() -> None:
    assert addresses_of("127.0.0.1") == [IPV4]
    assert addresses_of("::1") == [IPV6]


def test_localhost_has_an_address_of_each_family() -> None:
    addresses = addresses_of("localhost")
    assert addresses
    assert set(addresses) <= {IPV4, IPV6}
    assert len(addresses) == len(set(addresses))


def test_two_colons_mean_all_interfaces_of_both_families() -> None:
    assert addresses_of("::")[0] == (socket.AF_INET6, "::")
    sockets = open_sockets(addresses_of("::"), 0)
    port = sockets[0].getsockname()[1]
    assert accepts("127.0.0.1", port)
    assert accepts("::1", port) or not has_address(IPV6)
    for listener in sockets:
        listener.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "..", "a" * 64 + ".example", "256.1.1.1", "1:2"])
def test_an_invalid_host_is_reported(host: str) -> None:
    with pytest.raises(socket.gaierror):
        addresses_of(host)


def test_the_given_port_is_used() -> None:
    port = free_port()
    [listener] = open_sockets([IPV4], port)
    assert listener.getsockname()[:2] == ("127.0.0.1", port)
    listener.close()


@needs_ipv6
@pytest.mark.parametrize("addresses", [[IPV4, IPV6], [IPV6, IPV4]])
def test_port_0_chooses_one_port_for_all_addresses(addresses: list[Address]) -> None:
    for _ in range(20):
        one, other = open_sockets(addresses, 0)
        assert one.getsockname()[1] == other.getsockname()[1] != 0
        assert [one.family, other.family] == [family for family, _ in addresses]
        one.close()
        other.close()


@needs_ipv6
@pytest.mark.parametrize("addresses", [[IPV4, IPV6], [IPV6, IPV4]])
@pytest.mark.parametrize("taken", [IPV4, IPV6])
def test_a_port_in_use_on_one_address_is_refused(addresses: list[Address], taken: Address) -> None:
    [other] = open_sockets([taken], free_port())
    port = other.getsockname()[1]
    with pytest.raises(OSError) as caught:
        open_sockets(addresses, port)
    assert caught.value.errno == errno.EADDRINUSE
    other.close()
    # The attempt has left no socket open.
    for listener in open_sockets(addresses, port):
        listener.close()


@pytest.mark.parametrize("addresses", [[IPV4, NOWHERE], [NOWHERE, IPV4]])
def test_one_existing_address_is_enough(addresses: list[Address]) -> None:
    [listener] = open_sockets(addresses, 0)
    assert listener.getsockname()[0] == "127.0.0.1"
    listener.close()


def test_at_least_one_address_must_exist() -> None:
    with pytest.raises(OSError) as caught:
        open_sockets([NOWHERE], 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL


def test_a_closed_port_can_be_used_again_at_once() -> None:
    port = free_port()
    for _ in range(3):
        [listener] = open_sockets([IPV4], port)
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()
        listener.close()


def test_a_port_in_use_is_reported_with_its_host() -> None:
    [listener] = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with pytest.raises(CannotListen) as caught:
        listen("127.0.0.1", port)
    assert (caught.value.host, caught.value.port, caught.value.error.errno) == ("127.0.0.1", port, errno.EADDRINUSE)
    listener.close()


class Greeter(asyncio.Protocol):
    """Greets its client and leaves."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hi")
        transport.close()


@pytest.mark.parametrize("turns", range(5))
def test_a_client_that_comes_while_listening_ends_is_served_or_refused(turns: int) -> None:
    async def greeted() -> bytes:
        [listener] = open_sockets([IPV4], 0)
        server = await asyncio.get_running_loop().create_server(Greeter, sock=listener)
        with socket.create_connection(listener.getsockname()) as client:
            # Each turn leaves the acceptance of the client at another point.
            for _ in range(turns):
                await asyncio.sleep(0)
            await stop_listening([server])
            await asyncio.sleep(0.01)
            client.settimeout(5)
            try:
                return client.recv(10)
            except ConnectionResetError:
                return b""

    assert asyncio.run(greeted()) in (b"hi", b"")


def test_a_port_in_use_has_others_nearby(caplog: pytest.LogCaptureFixture) -> None:
    other = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        [listener] = listen_nearby("127.0.0.1", port, (port, 99_999, other), "management")
        with listener:
            assert listener.getsockname()[1] == other
            assert caplog.messages == [f"port {port} is in use by another program: management is on port {other}"]
        with pytest.raises(CannotListen, match=f"port {port} "):
            listen_nearby("127.0.0.1", port, (port,), "management")
        with pytest.raises(CannotListen, match=f"port {port} "):
            listen_nearby("127.0.0.1", port, (), "management")


def test_only_a_port_in_use_has_others_nearby() -> None:
    with pytest.raises(CannotListen):
        listen_nearby(NOWHERE[1], 1, (0,), "management")
