"""Images that are made without an engine, and what of a cluster runs by them."""

import subprocess
from pathlib import Path

from framestorm.platform import images
from framestorm.platform.kubernetes import manifests


def test_the_same_files_make_the_same_image(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("x")
    one = images.Image(("a:1", "b:1"), {"/bin/program": tmp_path / "program"}, links={"/bin/other": "program"})
    two = images.Image(("c:1",), one.files, ("/bin/other",), one.links)
    images.write([one, two], tmp_path / "first.tar")
    images.write([one, two], tmp_path / "second.tar")
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
    names = subprocess.run(
        ["tar", "-tf", tmp_path / "first.tar"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len([name for name in names if name.endswith("layer.tar")]) == 1, "they share their layer"


def test_knative_has_no_image_that_is_not_made_here() -> None:
    for part in manifests.PARTS:
        for item in manifests.read(part):
            if item["kind"] == "Deployment":
                for each in item["spec"]["template"]["spec"]["containers"]:
                    assert each["image"].startswith("dev.local/") and each["image"].endswith(":1")
