from __future__ import annotations

from pathlib import Path

from tests.cli.program import run, serving


def test_a_broker_starts_with_options_that_click_reads(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("log.console.level = warning\n", "utf-8")
    with serving(tmp_path, "-c", str(file)) as broker:
        broker.client().open().close()
        assert "[info]" not in broker.output


def test_the_settings_are_shown_instead_of_a_start() -> None:
    done = run("serve", "-t", "--port", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "port = 1  # --port\n" in done.stdout
