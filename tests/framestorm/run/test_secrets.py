"""Secrets that would be recorded as they are get a note; what only looks like one gets none."""

from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.run import new_plan
from framestorm.run.needs import look
from framestorm.run.secrets import literal_secrets, secrets_of_java

ENV = "${env:TOKEN}"


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("headers", "Authorization: Bearer abc", "the header Authorization"),
        ("headers", "Accept: */*\nx-api-key: abc", "the header x-api-key"),
        ("headers", "x-functions-key: abc", "the header x-functions-key"),
        ("headers", "Accept: */*\\nCookie: session=abc", "the header Cookie"),
        ("url", "https://u:abc@host/f", "-Jurl has a literal password"),
        ("url", "https://host/f?a=1&api_key=abc", "api_key in -Jurl"),
        ("url", "https://host/f?sig=abc", "sig in -Jurl"),
        ("proxy", "u:abc@host:3128", "-Jproxy has a literal password"),
        ("certificate_password", "abc", "-Jcertificate_password"),
    ],
)
def test_a_literal_secret_is_told(name: str, value: str, what: str) -> None:
    (sentence,) = literal_secrets({name: value})
    assert sentence.startswith(what) and "recorded" in sentence and "${env:NAME}" in sentence
    assert "abc" not in sentence


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("headers", f"Authorization: Bearer {ENV}"),
        ("headers", "X-Api-Key: {key}"),
        ("headers", "@headers.txt"),
        ("headers", "Content-Type: application/json\nAuthor: me"),
        ("url", f"https://u:{ENV}@host/f?key={ENV}"),
        ("url", "http://127.0.0.1:8080/function/tokens?page=1"),
        ("proxy", "host:3128"),
        ("figures", "tokens=$.usage.tokens"),
        ("max_tokens", "50"),
        ("token_file", "t.txt"),
        ("password", ""),
    ],
)
def test_what_is_no_literal_secret(name: str, value: str) -> None:
    assert literal_secrets({name: value}) == []


def test_another_plan_reads_the_environment_by_a_function() -> None:
    (sentence,) = literal_secrets({"api_token": "abc"}, is_for_kit=False)
    assert "${__groovy(System.getenv('NAME'))}" in sentence and "${env:" not in sentence


def test_properties_of_the_slaves_are_named_by_their_letter() -> None:
    (sentence,) = literal_secrets({"api_token": "abc"}, "-G", is_for_kit=False)
    assert sentence.startswith("-Gapi_token has a literal value") and "in place of -Gapi_token" in sentence


def test_a_literal_secret_of_java_is_told() -> None:
    (sentence,) = secrets_of_java(["-Djavax.net.ssl.keyStorePassword=abc", "-Duser.language=en", "-Stoken=abc"])
    assert sentence.startswith("-Djavax.net.ssl.keyStorePassword has") and "-S" in sentence and "abc" not in sentence


@pytest.mark.parametrize("name", ["Proxy-Authorization", "X-Password", "X-Credential", "Ocp-Apim-Subscription-Key"])
def test_a_header_of_curl_that_is_a_secret_is_told(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_plan.write(tmp_path / "a.jmx", f"curl -H '{name}: abc' -H 'X-B: {ENV}' http://h/f", paths.JMX / "requests.jmx")
    (told,) = capsys.readouterr().err.splitlines()
    assert f"the header {name} is written to a file" in told


@pytest.mark.parametrize("name", ["requests", "request-rate", "face-blur"])
def test_a_copy_of_a_kit_plan_of_an_earlier_version_is_refused(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "mine.jmx"
    text = (paths.JMX / f"{name}.jmx").read_text()
    copy.write_text(text)
    look(plans.read(copy), {})
    script = '<stringProp name="filename">${scripts}/stop.groovy</stringProp>'
    copy.write_text(text.replace('<stringProp name="filename"></stringProp>', script, 1))
    with pytest.raises(UsageError, match=r"mine.jmx is a copy .*stop.groovy is now a class: .*run.sh new"):
        look(plans.read(copy), {})
