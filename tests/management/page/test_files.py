from __future__ import annotations

import gzip
import http.client
import re
from collections.abc import Iterator

import pytest

from amqp_broker.management.page.files import FOLDER, files
from tests.running import RunningServer

TEXTS = {path: file.content()[0].decode() for path, file in files().items()}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with RunningServer(management=True) as running:
        yield running.server.ports["management"]


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": "localhost", **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body, response.headers


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/js/app.js", "text/javascript; charset=utf-8"),
        ("/cli/index.html", "text/html; charset=utf-8"),
        ("/cli/rabbitmqadmin", "application/octet-stream"),
        ("/js/pages/queues.js", "text/javascript; charset=utf-8"),
        ("/favicon.ico", "image/svg+xml"),
        ("/vendor/uplot-license.txt", "text/plain; charset=utf-8"),
    ],
)
def test_each_file_is_served_without_a_login_with_its_type(port: int, path: str, content_type: str) -> None:
    status, body, headers = ask(port, path)
    assert (status, headers["Content-Type"], headers["X-Content-Type-Options"]) == (200, content_type, "nosniff")
    assert body == TEXTS[path].encode()


def test_the_policy_allows_only_scripts_of_the_folder(port: int) -> None:
    policy = ask(port, "/")[2]["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy


def test_the_page_refers_to_files_behind_the_prefix() -> None:
    with RunningServer(management=True, management_path_prefix="/pre/fix") as running:
        prefixed = running.server.ports["management"]
        text = ask(prefixed, "/pre/fix/")[1].decode()
        for path in re.findall(r'(?:href|src)="(/[^"]+)"', text):
            assert path.startswith("/pre/fix/")
            assert ask(prefixed, path)[0] == 200


def test_an_unchanged_file_is_not_sent_again(port: int) -> None:
    etag = ask(port, "/js/app.js")[2]["ETag"]
    assert ask(port, "/js/app.js", If_None_Match=etag)[:2] == (304, b"")
    assert ask(port, "/js/app.js", If_None_Match='"other"')[0] == 200
    status, body, headers = ask(port, "/js/app.js", "HEAD")
    assert (status, body, headers["ETag"]) == (200, b"", etag)


@pytest.mark.parametrize(
    "path",
    [
        "/../page.py",
        "/%2e%2e/page.py",
        "/js/../../page.py",
        "/js/..%2f..%2fpage.py",
        "//etc/passwd",
        "/js",
        "/js/",
        "/style.css/",
        "/style.css%00.js",
        "/__init__.py",
        "/index.html/..",
    ],
)
def test_paths_outside_the_folder_are_not_found(port: int, path: str) -> None:
    status, body, _ = ask(port, path)
    assert status == 404
    assert b"import" not in body


@pytest.mark.parametrize("path", ["/cli", "/cli/"])
def test_the_folder_of_rabbitmqadmin_leads_to_its_page(port: int, path: str) -> None:
    status, _, headers = ask(port, path)
    assert (status, headers["Location"]) == (301, "/cli/index.html")


def test_writing_to_the_page_is_refused(port: int) -> None:
    assert ask(port, "/style.css", "PUT")[0] in (404, 405)


def test_every_referenced_file_exists() -> None:
    for path, text in TEXTS.items():
        if path.endswith(".js") and "/vendor/" not in path:
            for name in re.findall(r'from "(\.[^"]+)"', text):
                assert (FOLDER / path[1:]).parent.joinpath(name).resolve().is_file(), (path, name)
    for name in re.findall(r'(?:href|src)="(/[^"]+)"', TEXTS["/index.html"]):
        assert name in TEXTS


def test_every_file_of_the_folder_is_served() -> None:
    on_disk = {"/" + path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert on_disk == set(TEXTS) - {"/", "/favicon.ico", "/cli/rabbitmqadmin"}


@pytest.mark.parametrize(
    "pattern",
    [
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser",
        r"\beval\(|new Function",
        r"https?://(?!www\.w3\.org)",
    ],
)
def test_scripts_make_no_markup_or_code_from_text_and_load_nothing_from_elsewhere(pattern: str) -> None:
    own = {
        path: text for path, text in TEXTS.items() if path.endswith((".js", ".html", ".css")) and "/vendor/" not in path
    }
    assert [path for path, text in own.items() if re.search(pattern, text)] == []


def test_the_vendored_file_has_its_licence_beside_it() -> None:
    assert "uPlot" in TEXTS["/vendor/uplot.js"]
    assert "MIT License" in TEXTS["/vendor/uplot-license.txt"]


def test_a_browser_that_unpacks_gzip_gets_less(port: int) -> None:
    status, body, headers = ask(port, "/js/app.js", Accept_Encoding="gzip, deflate, br")
    assert (status, headers["Content-Encoding"], headers["Vary"]) == (200, "gzip", "Accept-Encoding")
    assert gzip.decompress(body) == TEXTS["/js/app.js"].encode()
    assert len(body) < len(TEXTS["/js/app.js"]) / 2
    assert ask(port, "/js/app.js", Accept_Encoding="gzip", If_None_Match=headers["ETag"])[:2] == (304, b"")
    status, body, plain = ask(port, "/js/app.js")
    assert body == TEXTS["/js/app.js"].encode()
    assert "Content-Encoding" not in plain
    assert plain["ETag"] != headers["ETag"]
