"""A JTL in XML, as older JMeters and some listeners write it, made one in CSV."""

import csv
import xml.parsers.expat
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from framestorm.model.cause import TRANSACTION_PATTERN
from framestorm.model.foreign import CHUNK_BYTES
from framestorm.model.sample import SAMPLE_KIND, SUB_RESULT, TRANSACTION
from framestorm.model.units import count
from framestorm.results.jtl_file import DEFAULT, header, in_order
from framestorm.results.legal_xml import end_of_references, legal

# The attributes of a sample that are columns of the CSV.
ATTRIBUTES = {
    "timeStamp": "ts", "elapsed": "t", "label": "lb", "responseCode": "rc", "responseMessage": "rm", "threadName": "tn",
    "dataType": "dt", "success": "s", "bytes": "by", "sentBytes": "sby", "grpThreads": "ng", "allThreads": "na",
    "Latency": "lt", "IdleTime": "it", "Connect": "ct", "Hostname": "hn",
}  # fmt: skip
COLUMNS = in_order((*DEFAULT, "Hostname", SAMPLE_KIND))
SAMPLES = ("sample", "httpSample")
# What a parser finds where another document begins: its declaration, or its first element.
NEXT = {
    xml.parsers.expat.errors.codes[message]
    for message in (
        xml.parsers.expat.errors.XML_ERROR_MISPLACED_XML_PI,
        xml.parsers.expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT,
    )
}
# What is in an assertion's result, and the URL of a request, by their elements.
_TEXTS = ("failureMessage", "failure", "error", "java.net.URL")


@dataclass
class _Sample:
    attributes: dict[str, str]
    is_transaction: bool
    kind: str
    url: str = "null"
    failure: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def row(self) -> list[str]:
        cells = {name: self.attributes.get(attribute, "") for name, attribute in ATTRIBUTES.items()}
        cells |= {"failureMessage": self.failure, "URL": self.url, SAMPLE_KIND: self.kind}
        return [cells[name] for name in COLUMNS]


class _Converter:
    """Writes a row for each sample as it ends, and then those of its sub-results."""

    def __init__(self, output: IO[str]) -> None:
        self._write = csv.writer(output, lineterminator="\n")
        output.write(header(COLUMNS))
        self._open: list[_Sample] = []
        self._text: list[str] = []
        self._assertion: dict[str, str] = {}
        self._depth = 0
        self.is_cut_off = False
        self.damage: str | None = None

    def cut_off(self) -> None:
        """Leave out what has begun and not ended."""
        self.is_cut_off = self.is_cut_off or self._depth > 0
        self._open, self._depth = [], 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._text = []
        self._depth += 1
        if name in SAMPLES:
            is_transaction = bool(TRANSACTION_PATTERN.search(attributes.get("rm", ""))) and name == "sample"
            outer = self._open[-1] if self._open else None
            is_own = outer is None or (outer.is_transaction and outer.kind != SUB_RESULT)
            kind = (TRANSACTION if is_transaction else "sample") if is_own else SUB_RESULT
            # One of HTTP may have been saved without its URL.
            self._open.append(_Sample(attributes, is_transaction, kind, "" if name == "httpSample" else "null"))
        elif name == "assertionResult":
            self._assertion = {}

    def characters(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        self._depth -= 1
        if name in SAMPLES:
            sample = self._open.pop()
            rows = [sample.row(), *sample.rows]
            if self._open:
                self._open[-1].rows += rows
            else:
                self._write.writerows(rows)
        elif name in _TEXTS and self._open:
            self._assertion[name] = "".join(self._text)
            if name == "java.net.URL":
                self._open[-1].url = self._assertion[name]
        elif name == "assertionResult" and self._open:
            has_failed = "true" in (self._assertion.get("failure"), self._assertion.get("error"))
            if has_failed and not self._open[-1].failure:
                self._open[-1].failure = self._assertion.get("failureMessage", "")
        self._text = []


def convert(source: Path, target: Path) -> str | None:
    """Write the samples of an XML file as CSV; of one that is cut off those before, and half a row.

    Files that were joined, as by `cat`, are read one after the other.

    Returns:
        A sentence if the file is damaged, so that what follows was left out.
    """
    with source.open("rb") as file, target.open("w", encoding="utf-8", newline="") as output:
        converter = _Converter(output)
        begin: int | None = 0
        while begin is not None:
            file.seek(begin)
            begin = _convert_one(file, converter, begin)
        if converter.is_cut_off:
            output.write("0,0")  # which the report says to be left out
    return converter.damage


def _convert_one(file: IO[bytes], converter: _Converter, begin: int) -> int | None:
    """Convert a document that begins there; return where the next one begins, None if it is the last."""
    parser: Any = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = converter.start
    parser.EndElementHandler = converter.end
    parser.CharacterDataHandler = converter.characters
    parser.StartDoctypeDeclHandler = _refuse
    rest, is_all = b"", False
    try:
        while chunk := file.read(CHUNK_BYTES):
            chunk = rest + chunk
            end = end_of_references(chunk)
            parser.Parse(legal(chunk[:end]), False)
            rest = chunk[end:]
        parser.Parse(legal(rest), False)
        is_all = True
        parser.Parse(b"", True)
    except xml.parsers.expat.ExpatError as error:
        # Not of the error, which has no code if _refuse raised it.
        if parser.ErrorCode in NEXT and parser.ErrorByteIndex > 0:
            converter.cut_off()
            return begin + int(parser.ErrorByteIndex)
        converter.is_cut_off |= is_all
        if not is_all:
            byte, why = begin + parser.ErrorByteIndex + 1, str(error).partition(":")[0]
            converter.damage = (
                f"the XML of samples.jtl is damaged at byte {count(byte)} ({why}); all before it was used, and what "
                "follows was left out"
            )
    return None


def _refuse(*_: object) -> None:
    raise xml.parsers.expat.ExpatError("a document type is not expected here")
