"""A JTL of any JMeter, made the folder of a run, so that it has the pages of one and can be compared."""

import shutil
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.files import write
from framestorm.model.run import Record
from framestorm.results import jtl_xml
from framestorm.results.jtl_file import GZIP, open_jtl, unpacked


def import_jtl(jtl: Path, folder: Path, criteria: tuple[str, ...] = (), title: str | None = None) -> None:
    """Make the folder of a run from a JTL, which stays as it is: its rows are copied, those of XML as CSV.

    Raises:
        UsageError: the folder exists, or nothing of the file can be read.
    """
    if folder.exists():
        raise UsageError(f"{folder} exists; a report of a JTL overwrites nothing; choose another folder with -o")
    folder.mkdir(parents=True)
    try:
        target = folder / "samples.jtl"
        shutil.copyfile(jtl, target)
        with target.open("rb") as file:
            is_packed = file.read(2) == GZIP
        if is_packed:
            target.write_bytes(unpacked(target.read_bytes()))
        if _is_xml(target):
            source = target.replace(folder / "samples.xml")
            jtl_xml.convert(source, target)
        opened = open_jtl(target)
        if isinstance(opened, str):
            raise UsageError(f"{paths.shown(jtl)} is no JTL of JMeter: {opened.replace('samples.jtl', 'it')}")
        record = Record(source=paths.shown(jtl.resolve()), has_journal=False, criteria=criteria, title=title)
        write(folder / "run.json", record, indent=2)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _is_xml(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(1 << 12)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
