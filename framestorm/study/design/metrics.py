"""The metrics of one run, by which a study argues: names, units and meanings, as in results.csv and study.yml."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A column of results.csv, which is never below 0.

    `unit` is empty for plain numbers, "share" for 0..1 and "yes or no" for a truth.
    """

    name: str
    unit: str
    meaning: str


CATALOGUE = (
    Metric("n_sent", "", "samples seen, those rejected included"),
    Metric("n", "", "samples counted, after rejection"),
    Metric("ok", "", "samples answered rightly"),
    Metric("failed", "", "samples that failed, time-outs included"),
    Metric("timed_out", "", "samples cut off by their time-out"),
    Metric("success", "share", "share of the samples answered rightly"),
    Metric("rejected_warm_up", "", "samples rejected because they started during the warm-up"),
    Metric("rejected_cold", "", "samples rejected because a cold replica answered them"),
    Metric("rejected_warm", "", "samples rejected because a warm replica answered them"),
    Metric("mean_ms", "ms", "mean round trip"),
    Metric("sd_ms", "ms", "standard deviation of the round trips"),
    Metric("min_ms", "ms", "smallest round trip"),
    Metric("median_ms", "ms", "median round trip"),
    Metric("p95_ms", "ms", "95th percentile of the round trips"),
    Metric("p99_ms", "ms", "99th percentile of the round trips"),
    Metric("max_ms", "ms", "largest round trip"),
    Metric("mean_is_lower_bound", "yes or no", "whether timed-out samples are in the mean, as lower bounds"),
    Metric("open_mean_ms", "ms", "mean latency from the intended start on"),
    Metric("open_median_ms", "ms", "median latency from the intended start on"),
    Metric("open_p95_ms", "ms", "95th percentile of the latency from the intended start on"),
    Metric("open_p99_ms", "ms", "99th percentile of the latency from the intended start on"),
    Metric("handler_mean_ms", "ms", "mean time in the function's handler"),
    Metric("handler_sd_ms", "ms", "standard deviation of the time in the function's handler"),
    Metric("model_mean_ms", "ms", "mean time in the model"),
    Metric("model_sd_ms", "ms", "standard deviation of the time in the model"),
    Metric("outside_mean_ms", "ms", "mean round trip outside of the handler"),
    Metric("users", "", "users that ran"),
    Metric("user_success", "share", "share of the users whose every frame was answered rightly"),
    Metric("user_mean_ms", "ms", "mean time of a user from start to end"),
    Metric("user_median_ms", "ms", "median time of a user"),
    Metric("user_p95_ms", "ms", "95th percentile of the time of a user"),
    Metric("asked_per_s", "1/s", "the rate that the plan was asked for"),
    Metric("offered_per_s", "1/s", "samples sent, by the span of their starts"),
    Metric("served_per_s", "1/s", "samples answered rightly, by the time in which answers could come"),
    Metric("dropped_arrivals", "", "arrivals that were due and not sent"),
    Metric("total_s", "s", "from the first start to the last end"),
    Metric("workers_seen", "", "replicas that answered"),
    Metric("worker_share_max", "share", "share of the samples that the busiest replica answered"),
    Metric("worker_share_min", "share", "share of the samples that the least busy replica answered"),
    Metric("worker_cores_max", "cores", "mean CPU of the replica that used most"),
    Metric("worker_cores_min", "cores", "mean CPU of the replica that used least"),
    Metric("worker_network_max_bytes_per_s", "bytes/s", "bytes received and sent by the replica with the most traffic"),
    Metric("worker_network_min_bytes_per_s", "bytes/s", "bytes received and sent by the one with the least traffic"),
    Metric("replicas_max", "", "most replicas that were ready at a time"),
    Metric("target_cores_mean", "cores", "mean CPU of all replicas together"),
    Metric("target_memory_max_bytes", "bytes", "most memory that a replica held"),
    Metric("throttled_mean", "share", "mean share of the 100 ms periods in which replicas used up their CPU limit"),
    Metric("generator_cores_mean", "cores", "mean CPU of the load generator"),
    Metric("host_busy_time", "share", "share of the time with at least 90 % of the machine's cores busy"),
    Metric("warnings", "", "warnings on the run's own page"),
)
# What results.csv says of a run beside its factors and metrics.
OF_A_ROW = ("study", "point", "repetition", "run", "state", "reason", "cut_off")
BY_NAME = {metric.name: metric for metric in CATALOGUE}
METRICS = tuple(BY_NAME)
# The samples that a share is a share of.
COUNTED_BY = {"success": "n", "user_success": "users"}
TIMES_MS = frozenset(metric.name for metric in CATALOGUE if metric.unit == "ms")
