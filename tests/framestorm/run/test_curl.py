"""Curl command lines as people type and copy them."""

from dataclasses import asdict
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.run import curl, new_plan

JSON = [("Content-Type", "application/json"), ("Accept", "application/json")]
FORM = [("Content-Type", curl.FORM)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("curl -sk https://h/f", {"is_insecure": True, "without_effect": ["--silent"]}),
        ("$ curl h:8080/f", {"url": "http://h:8080/f", "method": "GET"}),
        (
            "curl https://h/f -F 'a=@\"b c.png\";type=image/png' --form-string 'd=e;f'",
            {
                "method": "POST", "body": "",
                "form": [
                    {"name": "a", "sign": "@", "value": "b c.png", "content_type": ";type=image/png"},
                    {"name": "d", "sign": "", "value": "e;f", "content_type": ""},
                ],
            },
        ),
        ("curl -I --url https://h/f", {"method": "HEAD"}),
        ("/usr/bin/curl \\\n -XPUT \\\r\n -Ha:b https://h/f", {"method": "PUT", "headers": [("a", "b")]}),
        # Cut at what a shell does with the answer; its variables are those of the environment.
        ("curl h -d '[|]' -H \"T: $A ${B} \\$C ${env:D}\" | jq '.x' > out; exit",
         {"body": "[|]", "headers": [("T", "${env:A} ${env:B} $C ${env:D}")]}),
        ("curl -d '' https://h/f", {"method": "POST", "body": ""}),
        ("curl -d '<a/>' https://h/f", {"body": "<a/>", "headers": FORM}),
        ("curl -d @f https://h/f", {"body": "p=qr=s", "body_file": "", "headers": FORM}),
        ("curl -d @json https://h/f", {"body": "", "body_file": "json", "headers": []}),
        ("curl --data-ascii @lines https://h/f", {"body": '{"a":1}', "body_file": "", "headers": []}),
        ("curl -dx=1 https://h/f -d y=2", {"method": "POST", "body": "x=1&y=2", "headers": FORM}),
        ("curl https://h/f --json '{\"x\": 1}'", {"body": '{"x": 1}', "headers": JSON}),
        (
            r"""curl https://h/f -H 'Content-Type: text/plain' --data-raw $'it\'s \u00fc\x21\041\n$\'x'""",
            {"body": "it's ü!!\n$'x", "headers": [("Content-Type", "text/plain")]},
        ),
        (
            # Of bytes, those that are no UTF-8 are letters of Latin-1, as browsers mean them.
            r"curl https://h/f --data-raw $'Hi\u0021dad\xc3\xa4\303\244\xe4\ud83d\ude00\U0001f600\q\"'",
            {"body": 'Hi!dadäää😀😀\\q"'},
        ),
        ("curl https://h/f --data-raw '--x' -d -5", {"body": "--x&-5"}),
        ("curl https://h/f -d \"a\\\nb\" -d 'c\\\nd' -d e\\\nf -d $'g\\\nh'", {"body": "ab&c\\\nd&ef&g\\\nh"}),
        ("curl.exe https://h/f -d 'a`\nb'", {"body": "a`\nb"}),
        ("curl https://h/f -k \\\n| jq .", {"url": "https://h/f", "is_insecure": True}),
        ("""curl https://h/f --data-raw "a \\$'b'" """, {"body": "a $'b'"}),
        ("curl -G 'https://h/f?a=1' -d b=2 --data-urlencode 'c=d e'", {"url": "https://h/f?a=1&b=2&c=d%20e"}),
        ("curl -d a=1 -d @f --data-raw @x https://h/f", {"body": "a=1&p=qr=s&@x", "headers": FORM}),
        (
            "curl --data-urlencode 'a=b c' --data-urlencode d@f --data-binary @f https://h/f",
            {"body": "a=b%20c&d=p%3Dq%0Ar%3Ds%0A&p=q\nr=s\n", "method": "POST"},
        ),
        ("curl -G -d a=1 --data-urlencode 'ü&' https://h/f",
         {"url": "https://h/f?a=1&%C3%BC%26", "method": "GET", "body": "", "headers": []}),
        ("curl -T scan.png https://h/f", {"url": "https://h/f", "method": "PUT", "body_file": "scan.png"}),
        ("curl -T 'a/my scan.png' https://h/f/", {"url": "https://h/f/my%20scan.png", "body_file": "a/my scan.png"}),
        ("curl -T scan.png https://h", {"url": "https://h/scan.png"}),
        ("curl -T scan.png 'https://h/?a=1'", {"url": "https://h/?a=1"}),
        ("curl -G -d a=b 'https://h/f#part'", {"url": "https://h/f?a=b"}),
        ("curl --data-binary @scan.png https://h/f", {"method": "POST", "body_file": "scan.png", "headers": []}),
        ("curl https://me:p%40w@h/f", {"url": "https://h/f", "login": "me:p@w"}),
        ("curl -u me:pw https://h/f", {"login": "me:pw", "headers": []}),
        ("curl -u me:pw -H 'authorization: t' https://h/f", {"login": "", "headers": [("authorization", "t")]}),
        ("curl -H Authorization: https://me:pw@h/f", {"login": "", "headers": []}),
        ("curl -u me:pw --oauth2-bearer t https://h/f", {"login": "", "headers": [("Authorization", "Bearer t")]}),
        # As Chrome copies it for cmd of Windows, new and old; for PowerShell.
        (
            'curl ^"https://h/f?a=1^&b=2^" ^\r\n  -H ^"x: y^" ^\r\n --data-raw ^"^{^\\^"id^\\^":^\n\n7^}^"',
            {"url": "https://h/f?a=1&b=2", "headers": [("x", "y")], "body": '{"id":\n7}'},
        ),
        ('curl "https://h/f?a=1&b=2" ^\n --data-raw "{\\"id\\":7}" ^\n -k', {"body": '{"id":7}', "is_insecure": True}),
        ('curl.exe `\r\n -H "x: y" https://h/f', {"headers": [("x", "y")]}),
        # A header of one's own takes the place of that of an option.
        ("curl --compressed -A b -H accept-encoding:br -H User-Agent: https://h/f",
         {"headers": [("accept-encoding", "br")]}),
        (
            "curl -H content-length:2 --cert c.pem:pw https://h/f",
            {
                "headers": [],
                "without_effect": ["the password in --cert (-Jcertificate_password sets it)", "-H 'content-length:2'"],
            },
        ),
        (
            "curl -F 'a=\"b; c\";type=text/x' -F 'd=\"e\\\"f\"' https://h/f",
            {
                "form": [
                    {"name": "a", "sign": "", "value": "b; c", "content_type": ";type=text/x"},
                    {"name": "d", "sign": "", "value": 'e"f', "content_type": ""},
                ],
            },
        ),
        ("curl -b a=b -b 'c=d; e=f' https://h/f", {"headers": [("Cookie", "a=b; c=d; e=f")]}),
        (
            "curl --compressed -A agent/1 -e http://from --oauth2-bearer ${env:T} https://h/f",
            {
                "headers": [
                    ("Authorization", "Bearer ${env:T}"), ("User-Agent", "agent/1"), ("Referer", "http://from"),
                    ("Accept-Encoding", "gzip, deflate"),
                ],
            },
        ),
        ("curl -x http://proxy:3128 -U me:pw https://h/f", {"proxy": "http://me:pw@proxy:3128"}),
        ("curl -m 5 --connect-timeout 2 https://h/f", {"timeouts": {"timeout_s": "5", "connect_timeout_s": "2"}}),
        ("curl --cacert ca.pem -E both.pem:pw https://h/f", {"ca": "ca.pem", "certificate": "both.pem"}),
        (
            "curl https://h/f -o out -w '%{http_code}' --retry 3 -v",
            {"without_effect": ["--output", "--write-out", "--retry", "--verbose"], "headers": []},
        ),
    ],
)  # fmt: skip
def test_commands(command: str, expected: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_text("p=q\nr=s\n")
    Path("json").write_text('{"a":1}')
    Path("lines").write_bytes(b'{"a":\r\n1}\0')
    request = asdict(curl.parse(command))
    assert {name: request[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("wget https://h/f", "begins with curl, found wget"),
        ("", "found nothing"),
        ("curl 'https://h/f", "cut off"),
        ("curl 'https://h/[1-20:2].jpg'", "[1-20:2] stands for several URLs: write one out, or add -g"),
        ("curl 'https://{a,b}.example/?q={c}'", "{a,b} stands for several URLs"),
        ("curl https://h/f https://h/g", "one URL, found https://h/f and https://h/g"),
        ("curl -X GET", "one URL, found none"),
        ("curl https://h/f --unheard-of", "--unheard-of"),
        ("curl https://h/f -b jar.txt", "-b jar.txt"),
        ("curl https://h/f -H nothing", "-H nothing"),
        ("curl https://h/f -d @not-there -d a", "not-there"),
        ("curl https://h/f -F 'file=@scan.png;filename=x.png'", ";filename="),
        ("curl https://h/f -F file=@a.png,b.png", "one file"),
        ("curl https://h/f -F lang", "of the form name=value"),
        ("curl https://h/f -H $'X-A: b\\nX-C: d'", "a header is one line"),
        ("curl https://h/f --form-string a=@b", "-F 'a=<file'"),
        ("curl https://h/f -F $'a=b\\nc=d'", "-F 'a=<file'"),
        ("curl https://h/f -F a=b -d c", "either a form or a body"),
        ("curl https://h/f --cert a.pem --key b.pem", "--key: "),
        ("curl https://h/f --digest -u me:pw", "HTTP Authorization Manager"),
        ("curl https://h/f --socks5 127.0.0.1:1080", "socksProxyHost"),
        ('curl https://h/f -H "x: $(cat token)"', "variable of the environment"),
        ("curl https://h/f -d @- <<END\n{}\nEND", "file of its own"),
        ("curl ftp://h/f", "http://"),
        ("curl https://[h/f", "https://[h/f: Invalid IPv6 URL"),
        ("curl $BASE_URL/f", "host and port out"),
        ("curl https://h/f -F 'a=\"@b\"'", "-F 'a=<file'"),
        ("curl https://h/f --next https://h/g", "--next"),
        (r"curl https://h/f -d $'\U110000'", r"\U110000: there is no such character"),
    ],
)
def test_what_cannot_be_read_is_refused(command: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        curl.parse(command)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    "url", ["https://[2001:db8::1]/f", "https://h/?a[]=1&b={c}", "https://h/${env:A}", "https://h/[f]"]
)
def test_brackets_that_stand_for_one_url_are_sent(url: str) -> None:
    assert curl.parse(f"curl -X POST '{url}'").url == url
    assert curl.parse("curl -g 'https://h/[1-3]'").url == "https://h/[1-3]"


def test_a_certificate_that_is_not_checked_needs_no_authority(tmp_path: Path) -> None:
    new_plan.write(tmp_path / "a.jmx", "curl -k --cacert ca.pem https://h/f", paths.JMX / "requests.jmx")
    assert plans.read(tmp_path / "a.jmx").defaults["ca"] == "none"
