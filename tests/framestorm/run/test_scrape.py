"""A target's figures as scraped, from answers of all kinds."""

from pathlib import Path
from threading import Event, Lock
from time import sleep

import pytest

from framestorm.errors import UsageError
from framestorm.model.scraped import scraped_criterion
from framestorm.results.scrapes import read_scrapes
from framestorm.run import scrape
from framestorm.run.row_log import RowLog
from tests.stand_in import StartServer

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it does not answer in HTTP: SSH-2.0"),
        (b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0", "it does not answer in HTTP"),
        (HEAD + b"Content-Length: 90\r\n\r\nqueue 1\ndone 2\n", "the answer ends too early"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nqueue 1\n\r\n", "the answer ends too early"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nqueue 1\n\r\n", "the answer ends too early"),
        (HEAD + b"\r\n" + b"# a\n" * (scrape.MAX_BYTES // 4 + 1), "the answer has more than 4 MiB"),
        (HEAD + b"\r\nqueue one\n", "the answer is not in Prometheus' text format, at 'queue one'"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_its_reason(raw: bytes, why: str, stand_in: StartServer) -> None:
    url = stand_in({"raw": raw}).url
    with pytest.raises(UsageError) as raised:
        scrape.check_targets([url])
    assert str(raised.value).startswith(f"--scrape {url}: {why}")


def test_blanks_and_letters_of_an_address_are_sent_as_a_browser_does(stand_in: StartServer) -> None:
    target = stand_in({"body": b"queue 1\n"})
    scrape.check_targets([f"{target.origin}/métr ics?match=a%20b"])
    assert target.received[0].path == "/m%C3%A9tr%20ics?match=a%20b"


def scraped(answers: list[bytes], folder: Path, stand_in: StartServer, *criteria: str) -> dict[str, list[float]]:
    """The values of each series of a target that gives these answers in turn."""
    is_over = Event()
    target = stand_in(*({"body": answer} for answer in answers))

    def wait_until_all_are_read(timeout: float | None = None) -> bool:
        sleep(0.01)  # the times of scrapes are in ms
        if target.received and (folder / scrape.FILE).is_dir():
            (folder / scrape.FILE).rmdir()
        return len(target.received) == len(answers)

    is_over.wait = wait_until_all_are_read  # type: ignore[assignment, method-assign]
    log = RowLog(folder / scrape.FILE, scrape.FIELDS, "the target's figures")
    about = [one for text in criteria if (one := scraped_criterion(text))]
    scrape._follow(log, target.url, about, is_over, Lock())
    return {each.name: each.values for each in read_scrapes(folder / scrape.FILE, None).series}


def test_a_series_without_a_number_has_no_value_until_it_has_one_again(tmp_path: Path, stand_in: StartServer) -> None:
    answers = [b"queue 5\nbusy 1\n", b"queue NaN\nbusy 1\n", b"busy 1\n", b"queue 9\nbusy 1\n"]
    assert scraped(answers, tmp_path, stand_in) == {"queue": [5.0, 9.0], "busy": [1.0] * 4}


def test_scraping_goes_on_once_the_file_can_be_written(tmp_path: Path, stand_in: StartServer) -> None:
    """As after a full disk; here a folder is in the way until the first scrape."""
    (tmp_path / scrape.FILE).mkdir()
    assert scraped([b"queue 5\n"] * 3, tmp_path, stand_in) == {"queue": [5.0, 5.0]}


def test_series_of_criteria_are_kept_however_many_come_before_them(tmp_path: Path, stand_in: StartServer) -> None:
    answer = "".join(f"other_{number} 1\n" for number in range(scrape.MAX_SERIES + 5))
    answer += 'queue{model="a"} 7\nqueue{model="b"} 8\nqueue_s 9\n'
    values = scraped([answer.encode()], tmp_path, stand_in, 'queue{model="b"} max > 5', "p95 > 1 s")
    assert values.pop('queue{model="b"}') == [8.0]
    assert values.keys() == {f"other_{number}" for number in range(scrape.MAX_SERIES)}
