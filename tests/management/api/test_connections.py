from __future__ import annotations

from urllib.parse import quote

import pytest
from pamqp import commands

from amqp_broker.broker.clients.peer import Tls
from tests.management.asking import Desk


def path_of(desk: Desk) -> str:
    (row,) = desk.get("/api/connections", columns="name")[1]
    return "/api/connections/" + quote(row["name"], safe="")


def test_an_open_connection_is_listed() -> None:
    desk = Desk()
    desk.lab.connect()
    (row,) = desk.get("/api/connections")[1]
    assert {key: row[key] for key in ("user", "vhost", "state", "channels", "protocol", "auth_mechanism", "type")} == {
        "user": "guest",
        "vhost": "/",
        "state": "running",
        "channels": 1,
        "protocol": "AMQP 0-9-1",
        "auth_mechanism": "PLAIN",
        "type": "network",
    }
    tls = {name: "" for name, value in row.items() if name.startswith(("ssl_", "peer_cert_"))}
    assert len(tls) == 7
    assert desk.get(path_of(desk))[1] == {**row, **tls}
    assert desk.get("/api/vhosts/%2F/connections")[1] == [row]
    tracked = [{key: row[key] for key in ("name", "node", "user", "vhost")}]
    assert desk.get("/api/connections", disable_stats="true")[1] == tracked
    assert desk.get("/api/connections/username/guest")[1] == tracked
    assert desk.get("/api/connections/username/nobody") == (200, [])


def test_a_connection_has_the_attributes_of_its_tls() -> None:
    desk = Desk()
    desk.lab.connect()
    (row,) = desk.get("/api/connections")[1]
    assert (row["ssl"], row["ssl_cipher"], row["peer_cert_subject"]) == (False, None, None)
    (connection,) = desk.broker.connections
    connection.tls = Tls("tlsv1.3", "any", "aes_256_gcm", "aead", "CN=anna")
    (row,) = desk.get("/api/connections")[1]
    assert (row["ssl"], row["ssl_cipher"], row["peer_cert_subject"]) == (True, "aes_256_gcm", "CN=anna")


@pytest.mark.parametrize(
    ("headers", "text"),
    [({}, "Closed via management plugin"), ({"x-reason": "why"}, "why"), ({"x-reason": ""}, "")],
)
def test_a_connection_is_closed_with_a_reason(headers: dict[str, str], text: str) -> None:
    desk = Desk()
    peer = desk.lab.connect()
    assert desk.ask("DELETE", path_of(desk), headers=headers) == (204, None)
    close = peer.expect(commands.Connection.Close, 0)
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - " + text)


def test_all_connections_of_a_user_are_closed() -> None:
    desk = Desk()
    peers = [desk.lab.connect(), desk.lab.connect()]
    assert desk.ask("DELETE", "/api/connections/username/guest") == (204, None)
    for peer in peers:
        assert peer.expect(commands.Connection.Close, 0).reply_code == 320


@pytest.mark.parametrize(
    ("tag", "listed", "seen", "closed"),
    [("management", 0, 401, 401), ("monitoring", 1, 200, 401), ("administrator", 1, 200, 204)],
)
def test_connections_of_other_users_require_a_tag(tag: str, listed: int, seen: int, closed: int) -> None:
    desk = Desk()
    desk.lab.connect()
    path = path_of(desk)
    desk.be(tag, configure="", write="", read="")
    assert len(desk.get("/api/connections")[1]) == len(desk.get("/api/vhosts/%2F/connections")[1]) == listed
    assert desk.get(path)[0] == desk.get(path + "/channels")[0] == seen
    assert desk.get("/api/connections/username/guest")[0] == seen
    assert desk.ask("DELETE", path)[0] == desk.ask("DELETE", "/api/connections/username/guest")[0] == closed


def test_users_may_close_their_own_connections() -> None:
    desk = Desk()
    desk.be("management", configure="", write="", read="")
    desk.lab.connect(user="other", password="other")
    assert desk.ask("DELETE", path_of(desk)) == (204, None)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_missing_connection_is_not_found(method: str) -> None:
    assert Desk().ask(method, "/api/connections/nope") == (404, "Not Found")


def test_a_connection_has_no_sessions_of_amqp_1_0() -> None:
    desk = Desk()
    desk.lab.connect()
    [row] = desk.get("/api/connections")[1]
    path = f"/api/connections/{quote(row['name'], safe='')}/sessions"
    assert desk.get(path) == (400, "connection does not use AMQP 1.0")
    assert desk.get("/api/connections/nope/sessions") == (404, "Not Found")
