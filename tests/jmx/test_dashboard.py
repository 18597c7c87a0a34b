from collections.abc import Callable
from pathlib import Path


def test_median_is_over_all_rows(tmp_path: Path, dashboard: Callable[[], dict[str, dict[str, float]]]) -> None:
    # JMeter's own setting looks at the last 20,000 rows and says 10 ms.
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage"
    elapsed_ms = [1000] * 80_000 + [10] * 20_000
    rows = (
        f"{1_700_000_000_000 + index},{ms},frame,200,OK,t 1-1,text,true,,9,9,1,1,null,0,host,0,0"
        for index, ms in enumerate(elapsed_ms)
    )
    columns = f"{header},bytes,sentBytes,grpThreads,allThreads,URL,Latency,Hostname,IdleTime,Connect"
    (tmp_path / "samples.jtl").write_text("\n".join([columns, *rows]) + "\n")
    statistics = dashboard()
    assert statistics["frame"]["sampleCount"] == 100_000
    assert statistics["frame"]["medianResTime"] == 1000
