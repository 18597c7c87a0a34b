"""The same load of streams by AIPerf and Framestorm, in turn: what each sends, what it sees, and its CPU time.

    python -m venv /tmp/aiperf && /tmp/aiperf/bin/pip install aiperf==0.13.0
    .local/venv/bin/python -m benchmarks.chat_peers --aiperf /tmp/aiperf/bin/aiperf [--streams 16] [--seconds 30]

A server sends each piece when it is due, and records what came and when it sent what. CPU time is that of all processes
of a generator in the last two thirds of the load, by the streams that ended in them. With a vocabulary made here AIPerf
needs no tokenizer of a network; it takes the server's count of tokens, as Framestorm does.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.stream_server import PATH, Pace, ServedStream, at_share, read_streams, stream_server
from framestorm import paths
from framestorm.setup import pieces as setup

FIRST_S, GAP_S, PROMPT_WORDS = 0.5, 0.04, 100
MODEL = "tiny"
MOST_CPU = 1.0  # times that of the peer
# Run by AIPerf's own Python: each word is one token, and all are the same one.
VOCABULARY = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(sys.argv[1])
"""


@dataclass(frozen=True)
class StreamLoad:
    """What a generator has to do: so many streams at a time, for so long."""

    url: str
    streams: int
    seconds: int
    tokens: int
    folder: Path


@dataclass(frozen=True)
class AnswerTimes:
    """What a generator tells of one answer."""

    ttft_ms: float
    itl_mean_ms: float
    itl_max_ms: float


@dataclass(frozen=True)
class StreamRun:
    """One run of a generator: what it told, what the server saw, and its CPU time."""

    told: list[AnswerTimes]
    served: list[ServedStream]
    cpu_ms: float


def aiperf_words(program: Path, load: StreamLoad) -> list[str]:
    vocabulary, inputs = load.folder / "vocabulary", load.folder / "inputs.jsonl"
    subprocess.run([program.parent / "python", "-c", VOCABULARY, vocabulary], check=True, capture_output=True)
    inputs.write_text("".join(json.dumps({"text": text}) + "\n" for text in prompts()))
    fields = json.dumps({"max_tokens": load.tokens, "ignore_eos": True})
    words = [program, "profile", "--url", load.url, "--endpoint-type", "chat", "--streaming", "--model", MODEL]
    words += ["--input-file", inputs, "--custom-dataset-type", "single_turn", "--extra-inputs", fields]
    words += ["--dataset-sampling-strategy", "sequential", "--concurrency", load.streams]
    words += ["--benchmark-duration", load.seconds, "--benchmark-grace-period", "inf", "--use-server-token-count"]
    words += ["--tokenizer", vocabulary, "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"]
    return [str(word) for word in [*words, "--artifact-dir", load.folder / "out"]]


def read_aiperf(load: StreamLoad) -> list[AnswerTimes]:
    lines = (load.folder / "out/profile_export.jsonl").read_text().splitlines()
    figures = [record["metrics"] for record in map(json.loads, lines) if not record.get("error")]
    times = []
    for each in figures:
        gaps_ms = each["inter_chunk_latency"]["value"]
        times.append(AnswerTimes(each["time_to_first_token"]["value"], statistics.mean(gaps_ms), max(gaps_ms)))
    return times


def kit_words(load: StreamLoad) -> list[str]:
    file = load.folder / "prompts.txt"
    file.write_text("\n".join(prompts()))
    words = [f"-Jurl={load.url}{PATH}", f"-Jmodel={MODEL}", f"-Jprompts=@{file}", "-Jignore_eos=true", "-Jramp_s=0"]
    words += [f"-Jusers={load.streams}", f"-Jhold_s={load.seconds}", f"-Jmax_tokens={load.tokens}"]
    return [
        str(word) for word in [paths.ROOT / "run.sh", "-t", paths.JMX / "chat.jmx", *words, "-o", load.folder / "run"]
    ]


def read_kit(load: StreamLoad) -> list[AnswerTimes]:
    lines = map(json.loads, (load.folder / "run/journal.jsonl").read_text().splitlines())
    answers = [line for line in lines if line["type"] == "sample" and line["ok"]]
    return [AnswerTimes(*(line[name] for name in ("ttft_ms", "itl_mean_ms", "itl_max_ms"))) for line in answers]


def prompts() -> list[str]:
    return [f"stream-{number} {'word ' * (PROMPT_WORDS - 1)}".strip() for number in range(5000)]


def measure(name: str, command: Callable[[StreamLoad], list[str]], read: Callable[[StreamLoad], list[AnswerTimes]],
            load: StreamLoad, pace: Pace) -> StreamRun:  # fmt: skip
    """Let a generator do its work, and follow the CPU time of all its processes."""
    log, used = load.folder / "served.json", list[tuple[float, float]]()
    with stream_server(pace, log) as url:
        load = StreamLoad(url, load.streams, load.seconds, load.tokens, load.folder)
        words, output = command(load), load.folder / "output.txt"
        with output.open("wb") as file:
            process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, cwd=load.folder)
            is_over = threading.Event()
            watch = threading.Thread(target=_follow, args=(process.pid, used, is_over))
            watch.start()
            status = process.wait()
            is_over.set()
            watch.join()
        if status:
            sys.exit(f"{name} ended with status {status}:\n{output.read_text()[-3000:]}")
    served = [each for each in read_streams(log).values() if len(each.sent_ns) == pace.tokens]
    end_s = min(each.arrived_ns for each in served) / 1e9 + load.seconds
    window = [(at_s, cpu_s) for at_s, cpu_s in used if end_s - load.seconds * 2 / 3 <= at_s <= end_s]
    (from_s, before_s), (to_s, after_s) = window[0], window[-1]
    n = sum(from_s <= each.end_ns / 1e9 <= to_s for each in served)
    return StreamRun(read(load), served, 1000 * (after_s - before_s) / n)


def _follow(top: int, used: list[tuple[float, float]], is_over: threading.Event) -> None:
    while not is_over.wait(0.5):
        cpu_s = 0.0
        with suppress(psutil.Error):
            for each in (psutil.Process(top), *psutil.Process(top).children(recursive=True)):
                with suppress(psutil.Error):
                    # With those of children that have ended.
                    cpu_s += sum(each.cpu_times()[:4])
            used.append((time.time(), cpu_s))


def in_flight(served: Sequence[ServedStream]) -> tuple[float, int]:
    """Return how many streams the server had at a time, from the first to the last request: the mean and the most."""
    changes = sorted([(each.arrived_ns, 1) for each in served] + [(each.end_ns, -1) for each in served])
    first_ns, last_ns = changes[0][0], max(each.arrived_ns for each in served)
    n, most, sum_ns, before_ns = 0, 0, 0, first_ns
    for at_ns, change in changes:
        if at_ns > last_ns:
            break
        sum_ns, before_ns = sum_ns + n * (at_ns - before_ns), at_ns
        n += change
        most = max(most, n)
    return sum_ns / (last_ns - first_ns), most


def rows(runs: Sequence[StreamRun], streams: int) -> dict[str, str]:
    """Return the lines of the table for one generator, over its runs."""
    served, told = [each for run in runs for each in run.served], [each for run in runs for each in run.told]
    bodies = [each.request for each in served]
    words = {len(body["messages"][-1]["content"].split()) for body in bodies}
    tokens = {body.get("max_tokens", body.get("max_completion_tokens")) for body in bodies}
    mean, most = zip(*(in_flight(run.served) for run in runs), strict=True)
    pauses_ms = []
    for run in runs:
        ends = sorted(each.end_ns for each in run.served)
        begins = sorted(each.arrived_ns for each in run.served)[streams:]
        pauses_ms += [(begin - end) / 1e6 for begin, end in zip(begins, ends, strict=False)]
    ttft_ms = [(each.sent_ns[0][0] - each.arrived_ns) / 1e6 for each in served]
    gaps_ms = [each.gaps_ms()[1] for each in served]

    def compared(of_told: Sequence[float], of_server: Sequence[float]) -> str:
        sides = (sorted(of_told), sorted(of_server))
        return ", ".join("{:.2f} ({:.2f})".format(*(at_share(side, share) for side in sides)) for share in (0.5, 0.99))

    return {
        "answers told of (streams that the server ended)": f"{len(told)} ({len(served)})",
        "words of a prompt; max_tokens": "; ".join(", ".join(map(str, sorted(each))) for each in (words, tokens)),
        "streams at a time: mean; most": f"{statistics.mean(mean):.2f}; {max(most)}",
        "from an answer's end to the next request, ms: p50, p99": ", ".join(
            f"{at_share(sorted(pauses_ms), share):.1f}" for share in (0.5, 0.99)
        ),
        "time to first token, ms (planted): p50, p99": compared([each.ttft_ms for each in told], ttft_ms),
        "mean gap, ms (planted): p50, p99": compared(
            [each.itl_mean_ms for each in told], [statistics.mean(gaps) for gaps in gaps_ms]
        ),
        "longest gap, ms (planted): p50, p99": compared([each.itl_max_ms for each in told], [g[-1] for g in gaps_ms]),
        "CPU time of a stream, ms": f"{statistics.median(run.cpu_ms for run in runs):.1f}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aiperf", type=Path, required=True, help="AIPerf's program, with its Python beside it")
    parser.add_argument("--streams", type=int, default=16, help="at a time (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=30, help="of each load (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=100, help="of each answer (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each load (default: %(default)s)")
    asked = parser.parse_args()
    setup.ensure(setup.FOR_A_RUN)
    generators = {
        "AIPerf": (lambda load: aiperf_words(asked.aiperf.absolute(), load), read_aiperf),
        "Framestorm": (kit_words, read_kit),
    }
    pace = Pace(FIRST_S, GAP_S, asked.tokens)
    runs: dict[str, list[StreamRun]] = {name: [] for name in generators}
    busy = psutil.cpu_percent(interval=3) / 100
    print(f"the machine before: {busy:.0%} of {psutil.cpu_count()} cores busy, load average {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as scratch:
        for repetition in range(asked.repetitions):
            for name, (command, read) in generators.items():
                folder = Path(scratch) / f"{repetition}-{name}"
                folder.mkdir()
                load = StreamLoad("", asked.streams, asked.seconds, asked.tokens, folder)
                runs[name].append(measure(name, command, read, load, pace))
    tables = {name: rows(own, asked.streams) for name, own in runs.items()}
    print(f"\n| | {' | '.join(tables)} |\n|{'---|' * (len(tables) + 1)}")
    for line in next(iter(tables.values())):
        print(f"| {line} | {' | '.join(table[line] for table in tables.values())} |")
    ratio = statistics.median(
        own.cpu_ms / peer.cpu_ms for own, peer in zip(runs["Framestorm"], runs["AIPerf"], strict=True)
    )
    print(f"\nCPU time of a stream: {ratio:.2f} times AIPerf's (target: at most {MOST_CPU:g})")
    return int(ratio > MOST_CPU)


if __name__ == "__main__":
    sys.exit(main())
