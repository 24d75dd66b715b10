"""Check the gallery (docs/gallery.md): every script runs as it is and draws a picture."""

import pytest
from matplotlib.image import imread

from gallery import FOLDER, TITLES, draw, page


def test_every_script_is_on_the_page():
    """python docs/tools/gallery.py draws the pictures and writes the page."""
    assert {path.stem for path in FOLDER.glob("*.py")} == set(TITLES)
    assert (FOLDER.parent / "gallery.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", TITLES)
def test_script_draws_its_picture(name, tmp_path):
    picture = draw(name, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    drawn, committed = imread(picture), imread(FOLDER / picture.name)
    assert drawn.shape == committed.shape
    dark_share = (drawn[:, :, :3].min(axis=2) < 0.9).mean()
    assert 0.01 < dark_share < 0.9
    assert abs(dark_share - (committed[:, :, :3].min(axis=2) < 0.9).mean()) < 0.05, "draw the committed picture again"
