from __future__ import annotations

import base64
import hashlib
import re

from amqp_broker.pipeline.page_document import document


def test_the_policy_of_a_page_allows_its_scripts_and_styles_and_nothing_else() -> None:
    text = document("<A>", "<p>content</p>", ["uplot.js", "plots.js"], ["uplot.css", "report.css"])
    [policy] = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    inline = re.findall("<style>(.*?)</style>|<script>(.*?)</script>", text, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256((style or code).encode()).digest()).decode() for style, code in inline]
    assert len(hashes) == 3
    assert re.findall("'sha256-([^']*)'", policy) == hashes
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    # The licence of uPlot comes with it.
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert "<title>&lt;A&gt;</title>" in text
