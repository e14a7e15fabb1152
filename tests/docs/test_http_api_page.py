from __future__ import annotations

from docs.http_api_page import PAGE, page


def test_the_page_of_the_http_api_is_generated_from_its_endpoints() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m docs.http_api_page writes it anew"


def test_a_row_has_endpoint_tag_description_and_body() -> None:
    row = next(line for line in page().splitlines() if line.startswith("| `PUT /api/policies/{vhost}/{name}` "))
    assert row == (
        "| `PUT /api/policies/{vhost}/{name}` | policymaker | Create or change a policy. "
        "| **`pattern`**, **`definition`**, `priority`, `apply-to` |"
    )
