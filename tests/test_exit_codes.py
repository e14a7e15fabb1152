from __future__ import annotations

import os

import pytest

from amqp_broker import exit_codes


@pytest.mark.skipif(not hasattr(os, "EX_USAGE"), reason="Windows has no such codes")
def test_they_are_those_of_the_system() -> None:
    ours = {name: code for name, code in vars(exit_codes).items() if name.startswith("EX_")}
    assert ours == {name: getattr(os, name) for name in ours}
