"""Examples in docstrings and pages write files where a user would: each in an empty folder here."""

from collections.abc import Iterator

import pytest
from _pytest.doctest import DoctestItem

collect_ignore_glob = ["docs/gallery/*.py"]  # scripts that draw when they are imported; tests/test_gallery.py runs them


@pytest.fixture(autouse=True)
def folder_of_its_own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An example runs in an empty folder."""
    if not isinstance(request.node, DoctestItem):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("example"))
        yield
