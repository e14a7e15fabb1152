from __future__ import annotations

import pytest

from compat.oracle import allowed
from compat.oracle.differences_page import BEGIN, END, PAGE, replaced, section
from compat.oracle.profiles import ORACLES_OF


def test_a_reason_names_the_profiles_and_suites_that_it_concerns() -> None:
    tables = {
        "4.2": {"wire": {"a/b": {"x": "It is slower.", "y": "It is slower."}}},
        "4.3": {"ctl": {"c": {"x": "It is slower."}}, "wire": {"a/b": {"x": "It is slower."}}},
    }
    shown = section(tables, {"4.2": ("4.0", "4.3"), "4.3": ("4.3",)})
    assert "| 4.2 | 4.0 and 4.3 | wire | 1 | 1 |" in shown
    assert shown.endswith("\n- It is slower. (4.2 wire, 4.3 ctl, 4.3 wire)\n")


def test_only_the_generated_section_is_replaced() -> None:
    assert replaced(f"a\n{BEGIN}old\n{END}b\n", "new\n") == f"a\n{BEGIN}new\n{END}b\n"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        replaced("a\n", "new\n")


def test_the_page_has_the_allowed_differences() -> None:
    tables = {profile: allowed.load(profile) for profile in ORACLES_OF}
    text = PAGE.read_text("utf-8")
    assert replaced(text, section(tables, ORACLES_OF)) == text, "run `python -m compat.oracle page`"
