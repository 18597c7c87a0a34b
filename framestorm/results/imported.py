"""JTLs of any JMeter, made the folder of a run, so that they have the pages of one and can be compared."""

import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import polars as pl

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.files import write
from framestorm.model.foreign import GZIP, unpack
from framestorm.model.run import JtlPart, Record
from framestorm.model.sample import SAMPLE_KIND
from framestorm.plain import note
from framestorm.results import jtl_xml
from framestorm.results.jtl import MISSING
from framestorm.results.jtl_file import XML_ROOT, JtlFile, has_rows, header, in_order, open_jtl, root_of

SAMPLES, XML = "samples.jtl", "samples.xml"
ZIP = b"PK\x03\x04"
HOST = "Hostname"
COPIED_BYTES = 1 << 20  # at a time
NOTHING_ASKED = Record()


class Source(NamedTuple):
    """A JTL: its name as people know it, the host of its samples if they do not say it, and where its text is.

    problem: a sentence if it was not whole, which its text does not tell.
    """

    name: str
    host: str
    path: Path
    is_of_archive: bool
    problem: str | None = None


def import_jtl(jtls: Sequence[Path], folder: Path, asked: Record = NOTHING_ASKED) -> None:
    """Make the folder of a run from JTLs, which stay as they are: their rows are copied, those of XML as CSV.

    Several files, or those of a zip archive, are the parts of one run, such as those of load generators: where they
    do not say the host of a sample, it is the name of the file.

    Args:
        jtls: the files.
        folder: the new folder.
        asked: the title of the run, and what it has to meet.

    Raises:
        UsageError: the folder exists, or nothing of a file can be read.
    """
    if folder.exists():
        raise UsageError(f"{folder} exists; a report of a JTL overwrites nothing; choose another folder with -o")
    folder.mkdir(parents=True)
    target = folder / SAMPLES
    parts: tuple[JtlPart, ...] = ()
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            opened = list(_opened(_sources(jtls, Path(scratch))))
            _refuse_copies(opened)
            if len(opened) > 1:
                parts = tuple(_parts(opened))
                _write_together(opened, target)
            else:
                ((given, jtl),) = opened
                if given.problem and not jtl.problem:
                    parts = (JtlPart(given.name, problem=given.problem.replace(SAMPLES, given.name)),)
                path = given.path
                path.replace(target)
                if (xml := path.with_suffix(".xml")).exists():
                    xml.replace(folder / XML)
        first, n = paths.shown(jtls[0].resolve() if jtls[0].is_file() else jtls[0]), len(jtls) - 1
        source = f"{first} and {n} more" if n else first
        record = replace(asked, source=source, parts=parts, has_journal=False)
        write(folder / "run.json", record, indent=2)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _sources(jtls: Sequence[Path], scratch: Path) -> Iterator[Source]:
    """Yield each JTL, and each in an archive, as a copy in `scratch`: unpacked, and one in XML as CSV."""
    number = 0
    for jtl in jtls:
        given = scratch / "given"
        with jtl.open("rb") as source, given.open("wb") as target:  # once only, because it may be a pipe
            shutil.copyfileobj(source, target, COPIED_BYTES)
        with given.open("rb") as file:
            is_archive = file.read(len(ZIP)) == ZIP
        shown = paths.shown(jtl)
        for name, copy in _of_archive(given, shown) if is_archive else [(jtl.name, given)]:
            path = copy.replace(scratch / f"{number}.jtl")
            number += 1
            with path.open("rb") as file:
                is_packed = file.read(2) == GZIP
            problem = None
            if is_packed:
                packed = path.replace(path.with_suffix(".gz"))
                with packed.open("rb") as source, path.open("wb") as target:
                    if not unpack(source, target):
                        problem = f"{SAMPLES} ends too soon: its gzip is cut off or damaged there; what follows is lost"
                packed.unlink()
            if _is_xml(path):
                problem = jtl_xml.convert(path.replace(path.with_suffix(".xml")), path) or problem
            known = f"{name} in {shown}" if is_archive else shown
            yield Source(known, PurePosixPath(name).stem, path, is_archive, problem)


def _of_archive(archive: Path, shown: str) -> Iterator[tuple[str, Path]]:
    """Yield name and copy of each file of an archive, which people know as `shown`.

    Raises:
        UsageError: it has none, or is damaged.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
            if not members:
                raise UsageError(f"{shown} is an archive without a file")
            for member in members:
                copy = archive.with_name("member")
                with opened.open(member) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
                yield member.filename, copy
    # Damaged, cut off, or with a password.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise UsageError(f"{shown} cannot be unpacked: {error}") from None


def _opened(sources: Iterable[Source]) -> Iterator[tuple[Source, JtlFile]]:
    """Yield the JTLs that can be read; an archive may have other files too, which are named on the terminal.

    Raises:
        UsageError: a file that was given is none, or there is none at all.
    """
    problem, is_any = "", False
    for source in sources:
        opened = open_jtl(source.path)
        if not isinstance(opened, str):
            is_any = True
            yield source, opened
            continue
        problem = f"{source.name} is no JTL of JMeter: {opened.replace(SAMPLES, 'it')}"
        if not source.is_of_archive:
            raise UsageError(problem)
        note(f"left out: {problem}")
    if not is_any:
        raise UsageError(problem)


def _refuse_copies(opened: Sequence[tuple[Source, JtlFile]]) -> None:
    """Refuse a JTL that is given twice, by itself, a link or an earlier copy: its samples would count twice.

    Raises:
        UsageError: two JTLs have the same rows, or one has the first rows of the other.
    """
    sources = sorted(
        (source for source, _ in opened if has_rows(source.path)), key=lambda each: each.path.stat().st_size
    )
    for one, other in combinations(sources, 2):
        if not _begins_with(other.path, one.path):
            continue
        if one.path.stat().st_size == other.path.stat().st_size:
            raise UsageError(
                f"{one.name} and {other.name} have the same content, so that each sample would count twice; "
                "name one of them only"
            )
        raise UsageError(
            f"{other.name} begins with all of {one.name}, such as a file and an earlier copy of it, so that these "
            f"samples would count twice; name {other.name} only"
        )


def _begins_with(long: Path, short: Path) -> bool:
    """Return whether a file begins with the whole content of another."""
    with long.open("rb") as file, short.open("rb") as beginning:
        while part := beginning.read(COPIED_BYTES):
            if file.read(len(part)) != part:
                return False
    return True


def _parts(opened: Sequence[tuple[Source, JtlFile]]) -> Iterator[JtlPart]:
    """Yield what is to be known of each of several JTLs, whose rows are written together."""
    there = {name for _, jtl in opened for name in jtl.columns}
    # Where there is none, the host of a sample is the name of its file.
    wanted = [name for name in (*MISSING, SAMPLE_KIND) if name in there and name != HOST]
    for source, jtl in opened:
        lacks = tuple(name for name in wanted if name not in jtl.columns)
        said = jtl.problem or source.problem
        problem = said.replace(SAMPLES, source.name) if said else None
        assumed = tuple(sentence.replace(SAMPLES, "{}") for sentence in jtl.assumed)
        yield JtlPart(source.name, lacks, problem, assumed)


def _write_together(opened: Sequence[tuple[Source, JtlFile]], target: Path) -> None:
    """Write the rows of several JTLs as one, with the columns of all of them."""
    columns = in_order(dict.fromkeys([name for _, jtl in opened for name in jtl.columns] + [HOST]))
    parts = []
    n_of_host = Counter(source.host for source, _ in opened)
    for source, jtl in opened:
        # As of generators that each have a folder with a results.jtl.
        host = pl.lit(source.host if n_of_host[source.host] == 1 else source.name)
        of_host = pl.col(HOST).fill_null(host) if HOST in jtl.columns else host
        parts.append(jtl.rows.with_columns(of_host.alias(HOST)))
    with target.open("wb") as file:
        file.write(header(columns).encode())
        pl.concat(parts, how="diagonal").select(columns).sink_csv(file, include_header=False)


def _is_xml(path: Path) -> bool:
    """Return whether a file is a JTL in XML, even if it is cut off."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    is_xml = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
    return is_xml and root_of(head) in ("", XML_ROOT)
