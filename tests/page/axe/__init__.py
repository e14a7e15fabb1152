"""axe-core, which checks a page for WCAG 2 in the browser: installed by npm into a cache, once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.page.browser import Browser

FOLDER = Path(__file__).parent
CACHE = FOLDER.parents[2] / ".cache" / "axe"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = (
    "const [place, tags, done] = arguments;"
    "axe.run(place, { runOnly: tags }).then("
    "  ({ violations, passes }) => done([passes.length, violations.map(({ id, help, nodes }) =>"
    "    `${id}: ${help}: ${nodes.map((one) => one.html.slice(0, 200) + ' ' + one.failureSummary).join(' | ')}`)]),"
    "  (error) => done([0, [String(error)]]));"
)


def source() -> str:
    """Return the script of axe-core. Raise OSError or subprocess.SubprocessError if npm cannot install it."""
    script = CACHE / "node_modules" / "axe-core" / "axe.min.js"
    wanted, installed = FOLDER / "package.json", CACHE / "package.json"
    if not script.exists() or installed.read_bytes() != wanted.read_bytes():
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(wanted, installed)
        command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=CACHE, check=True, capture_output=True, timeout=300)
    return script.read_text("utf-8")


def violations(browser: Browser, script: str, place: str = "html") -> list[str]:
    """Return what axe finds in a part of the page, one line for each rule."""
    browser.script(script)
    passed, found = browser.driver.execute_async_script(RUN, place, TAGS)
    assert passed or found
    return [str(one) for one in found]
