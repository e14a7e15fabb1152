from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.container.image import CannotBuild, Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("an image is built by root, with Linux's namespaces")
    folder = tmp_path_factory.mktemp("image")
    # Other users have to get in.
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent.name.startswith("pytest-"):
            parent.chmod(0o755)
    try:
        built = Image(folder)
    except CannotBuild as error:
        pytest.skip(f"no namespaces or mounts here: {error}")
    yield built
    built.close()
