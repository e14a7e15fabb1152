from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from amqp_broker.cli.own.check_config import MASK
from amqp_broker.settings.settings import SETTINGS
from tests.cli.program import run, serving

SECRET = "Xyzzy42"


def write(folder: Path, text: str) -> str:
    path = folder / "rabbitmq.conf"
    path.write_text(text, "utf-8")
    return str(path)


def test_every_setting_is_shown_with_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, "heartbeat = 5\nlog.console = true")
    done = run("check-config", "--port", "7", file, RABBITMQ_DEFAULT_USER="anna")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("# ")]
    assert [line.partition(" = ")[0] for line in lines] == [declared.name for declared in SETTINGS]
    for line in (
        f"heartbeat_s = 5  # {file}:1",
        f"log_console = true  # {file}:2",
        "port = 7  # --port",
        "default_user = anna  # RABBITMQ_DEFAULT_USER",
        "auth_mechanisms = PLAIN AMQPLAIN ANONYMOUS  # default",
        "connection_max =   # default",
    ):
        assert line in lines


def test_comments_say_what_was_read_in_which_order_and_what_it_leaves(tmp_path: Path) -> None:
    file = write(tmp_path, "heartbeat = 5\nchannel_max = 6\ncollect_statistics_interval = 5\ndefault_user = eve")
    (tmp_path / "conf.d").mkdir()
    further = tmp_path / "conf.d" / "10.conf"
    further.write_text("heartbeat = 7\n", "utf-8")
    advanced = tmp_path / "advanced.config"
    advanced.write_text("[{rabbit, [{channel_max, 8}]}].", "utf-8")
    plugins = tmp_path / "enabled_plugins"
    plugins.write_text("[rabbitmq_management].", "utf-8")
    done = run("check-config", "--port", "7", str(tmp_path), RABBITMQ_DEFAULT_USER="anna")
    assert (done.returncode, done.stderr) == (0, "")
    comments = [line for line in done.stdout.splitlines() if line.startswith("# ")]
    # The tests have variables of their own.
    comments = [re.sub(r"^# \d+\.", "#", line) for line in comments if "AMQP_BROKER_" not in line]
    assert comments == [
        "# These were read; of two that give a setting, the first counts:",
        "# --port: 1 setting",
        "# RABBITMQ_DEFAULT_USER: 1 setting",
        f"# {advanced}: 1 setting",
        f"# {further}: 1 setting",
        f"# {file}: 0 settings",
        f"# {plugins}: 3 settings",
        f"# {file}:1: heartbeat is overridden by {further}:1",
        f"# {file}:2: channel_max is overridden by {advanced}",
        f"# {file}:3: collect_statistics_interval is ignored: it tunes a cluster, Erlang, or parts that are not here",
        f"# {file}:4: default_user is overridden by RABBITMQ_DEFAULT_USER",
    ]


def test_keys_that_give_a_setting_together_override_each_other_only_if_they_are_the_same(tmp_path: Path) -> None:
    lines = ("anna.password = x", "bert.password = y", "anna.password = z")
    file = write(tmp_path, "".join(f"default_users.{line}\n" for line in lines))
    comments = [line for line in run("check-config", file).stdout.splitlines() if "overridden" in line]
    assert comments == [f"# {file}:1: default_users.anna.password is overridden by {file}:3"]


def test_the_variables_of_a_folder_count_less_than_the_environment(tmp_path: Path) -> None:
    script = tmp_path / "rabbitmq-env.conf"
    script.write_text(
        "# ours\nNODENAME=a@b\nexport RABBITMQ_DEFAULT_USER='eve' # first\nDEFAULT_VHOST=\"x y\"\n"
        'SERVER_START_ARGS="-rabbit heartbeat 9"\nNODE_PORT=$((1 + 1))\n',
        "utf-8",
    )
    done = run("check-config", str(tmp_path), RABBITMQ_DEFAULT_USER="anna")
    assert (done.returncode, done.stderr) == (0, "")
    names = "RABBITMQ_NODENAME, RABBITMQ_DEFAULT_USER, RABBITMQ_DEFAULT_VHOST, RABBITMQ_SERVER_START_ARGS"
    for line in (
        f"# {script} sets {names}",
        f"# {script}:6: the shell reads this line at the start; it is not checked",
        "node_name = a@b  # RABBITMQ_NODENAME",
        "default_user = anna  # RABBITMQ_DEFAULT_USER",
        "default_vhost = x y  # RABBITMQ_DEFAULT_VHOST",
        "heartbeat_s = 9  # RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
    ):
        assert line in done.stdout.splitlines()


def test_errors_are_reported_and_the_exit_code_is_78(tmp_path: Path) -> None:
    file = write(tmp_path, "heartbeat = x\nfoo = 1\nchannel_max = 7\nmqtt.vhost = /")
    done = run("check-config", file)
    assert done.returncode == os.EX_CONFIG
    assert f"channel_max = 7  # {file}:3\n" in done.stdout
    assert done.stderr.splitlines() == [
        f"{file}:4: mqtt.vhost has no effect here.",
        f"amqp-broker: {file}:1: heartbeat is 'x', which is not a whole number.",
        f"amqp-broker: {file}:2: unknown key 'foo'.",
    ]


def test_an_invalid_static_shovel_is_found_before_the_start(tmp_path: Path) -> None:
    file = tmp_path / "advanced.config"
    file.write_text("[{rabbitmq_shovel, [{shovels, [{hand_over, []}]}]}].", "utf-8")
    done = run("check-config", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        os.EX_CONFIG,
        "amqp-broker: the static shovel 'hand_over' is invalid: it has no source.\n",
    )


def test_without_an_argument_the_file_of_the_environment_is_checked(tmp_path: Path) -> None:
    done = run("check-config", RABBITMQ_CONFIG_FILE=write(tmp_path, "foo = 1").removesuffix(".conf"))
    assert done.returncode == os.EX_CONFIG


@pytest.mark.parametrize("option", ["-t", "--check-config"])
def test_serve_can_check_instead_of_starting(tmp_path: Path, option: str) -> None:
    good, bad = run("serve", option), run("serve", option, "-c", write(tmp_path, "foo = 1"))
    assert (good.returncode, bad.returncode) == (0, os.EX_CONFIG)
    assert "startup complete" not in good.stdout
    assert good.stdout.startswith("config_file = ")


def test_no_secret_is_shown(tmp_path: Path) -> None:
    file = write(tmp_path, f"default_pass = {SECRET}\nssl_options.password = {SECRET}\ndefault_pas = {SECRET}")
    done = run("check-config", file, AMQP_BROKER_DEFINITIONS=f' {{"users": [{{"password": "{SECRET}"}}]}}')
    assert SECRET not in done.stdout + done.stderr
    for name in ("default_pass", "tls_key_password", "definitions"):
        assert f"{name} = {MASK}" in done.stdout


def test_a_broker_logs_errors_in_files_and_starts(tmp_path: Path) -> None:
    text = f"log.console = trues\nmqtt.vhost = /\ndefault_pass = {SECRET}\ndefault_user = anna\ndefault_pas = {SECRET}"
    file = write(tmp_path, text)
    with serving(tmp_path, "--config", file) as broker:
        broker.client().open("anna", SECRET).close()
        broker.end()
        assert f"[warning] <0.1.0> {file}:1: log.console is 'trues', which is neither true nor false\n" in broker.output
        assert f"[warning] <0.1.0> {file}:5: unknown key 'default_pas'\n" in broker.output
        assert f"[info] <0.1.0> {file}:2: mqtt.vhost has no effect here\n" in broker.output
        assert SECRET not in broker.output


def test_a_strict_broker_refuses_to_start_with_the_same_sentences(tmp_path: Path) -> None:
    file = write(tmp_path, "log.console = trues\nmqtt.vhost = /\nfoo = 1")
    done = run("serve", "--port", "0", "--strict-config", "--config", file)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    assert done.stderr.splitlines() == [
        f"amqp-broker: {file}:1: log.console is 'trues', which is neither true nor false.",
        f"amqp-broker: {file}:3: unknown key 'foo'.",
    ]


def test_a_strict_broker_accepts_settings_of_other_applications(tmp_path: Path) -> None:
    (tmp_path / "advanced.config").write_text("[{kernel, [{x, 1}]}].", "utf-8")
    done = run("check-config", "--strict-config", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        0,
        f"{tmp_path}/advanced.config: settings of kernel have no effect here.\n",
    )
