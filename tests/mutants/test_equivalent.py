from __future__ import annotations

from tests.mutants.coverage_of_tests import ROOT
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.operators import mutants


def test_each_equivalent_mutant_is_a_change_of_todays_code() -> None:
    modules = {name.partition(":")[0] for name in EQUIVALENT}
    files = [ROOT / f"{module.replace('.', '/')}.py" for module in modules]
    assert EQUIVALENT.keys() <= {mutant.name for file in files if file.exists() for mutant in mutants(file, ROOT)}
