from __future__ import annotations

import errno
import socket

import pytest

from amqp_broker.server.listening import Address, CannotListen, addresses_of, listen, open_sockets
from compat.brokers import free_port
from tests.server.addresses import IPV4, IPV6, NOWHERE, accepts, has_address, needs_ipv6


def test_an_address_stands_for_itself() -> None:
    assert addresses_of("127.0.0.1") == [IPV4]
    assert addresses_of("::1") == [IPV6]


def test_localhost_is_this_machine_in_all_its_families() -> None:
    addresses = addresses_of("localhost")
    assert addresses
    assert set(addresses) <= {IPV4, IPV6}
    assert len(addresses) == len(set(addresses))


def test_two_colons_are_every_interface_in_both_families() -> None:
    assert addresses_of("::")[0] == (socket.AF_INET6, "::")
    sockets = open_sockets(addresses_of("::"), 0)
    port = sockets[0].getsockname()[1]
    assert accepts("127.0.0.1", port)
    assert accepts("::1", port) or not has_address(IPV6)
    for listener in sockets:
        listener.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "..", "a" * 64 + ".example", "256.1.1.1", "1:2"])
def test_what_is_no_host_is_said_to_be_none(host: str) -> None:
    with pytest.raises(socket.gaierror):
        addresses_of(host)


def test_a_given_port_is_the_port() -> None:
    port = free_port()
    [listener] = open_sockets([IPV4], port)
    assert listener.getsockname()[:2] == ("127.0.0.1", port)
    listener.close()


@needs_ipv6
@pytest.mark.parametrize("addresses", [[IPV4, IPV6], [IPV6, IPV4]])
def test_port_0_is_one_port_on_all_addresses(addresses: list[Address]) -> None:
    for _ in range(20):
        one, other = open_sockets(addresses, 0)
        assert one.getsockname()[1] == other.getsockname()[1] != 0
        assert [one.family, other.family] == [family for family, _ in addresses]
        one.close()
        other.close()


@needs_ipv6
@pytest.mark.parametrize("addresses", [[IPV4, IPV6], [IPV6, IPV4]])
@pytest.mark.parametrize("taken", [IPV4, IPV6])
def test_a_port_taken_on_one_address_is_taken(addresses: list[Address], taken: Address) -> None:
    [other] = open_sockets([taken], free_port())
    port = other.getsockname()[1]
    with pytest.raises(OSError) as caught:
        open_sockets(addresses, port)
    assert caught.value.errno == errno.EADDRINUSE
    other.close()
    # Nothing was left open by the attempt.
    for listener in open_sockets(addresses, port):
        listener.close()


@pytest.mark.parametrize("addresses", [[IPV4, NOWHERE], [NOWHERE, IPV4]])
def test_one_address_that_exists_is_enough(addresses: list[Address]) -> None:
    [listener] = open_sockets(addresses, 0)
    assert listener.getsockname()[0] == "127.0.0.1"
    listener.close()


def test_no_address_that_exists_is_too_few() -> None:
    with pytest.raises(OSError) as caught:
        open_sockets([NOWHERE], 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL


def test_a_port_is_free_again_at_once() -> None:
    port = free_port()
    for _ in range(3):
        [listener] = open_sockets([IPV4], port)
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()
        listener.close()


def test_what_is_taken_is_told_with_its_host_and_port() -> None:
    [listener] = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with pytest.raises(CannotListen) as caught:
        listen("127.0.0.1", port)
    assert (caught.value.host, caught.value.port, caught.value.error.errno) == ("127.0.0.1", port, errno.EADDRINUSE)
    listener.close()
