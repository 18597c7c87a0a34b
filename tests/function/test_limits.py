import pytest

from function.limits import FunctionLimits, VariableError, duration_s, limits_from
from settings import settings_from


def test_defaults() -> None:
    assert limits_from({}) == FunctionLimits(max_body_bytes=16 * 2**20, max_inflight=0, exec_timeout_s=25.0)


def test_small_letters_as_openfaas_writes_them_come_first() -> None:
    limits = limits_from({"exec_timeout": "2s", "EXEC_TIMEOUT": "3s", "MAX_INFLIGHT": "7"})
    assert (limits.exec_timeout_s, limits.max_inflight) == (2.0, 7)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("25s", 25), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), ("2.5s", 2.5), ("25", 25), (" 25s ", 25)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s({"exec_timeout": text}, "exec_timeout", "1s") == seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exec_timeout", "0s"),
        ("exec_timeout", "-1s"),
        ("exec_timeout", "25 s"),
        ("exec_timeout", "25x"),
        ("exec_timeout", "s"),
        ("exec_timeout", "1s junk"),
        ("exec_timeout", "25h"),
        ("max_inflight", "-1"),
        ("max_inflight", "many"),
        ("max_inflight", "257"),
        ("max_body_bytes", "0"),
        ("max_body_bytes", "16MB"),
        ("max_pixels", "0"),
        ("max_pixels", "1.5"),
        ("tf_threads", "0"),
        ("threshold", "0"),
        ("threshold", "1.1"),
        ("threshold", "nan"),
        ("jpeg_quality", "100"),
        ("face_model", "/no/such/face.pb"),
    ],
)
def test_a_bad_value_is_named_with_what_it_may_be(name: str, value: str) -> None:
    with pytest.raises(VariableError, match=rf"^{name}='{value}': .+"):
        settings_from({name.upper(): value})
