"""Properties as the command line and Java's files set them."""

import subprocess
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.run import properties

FILE = rb"""# a comment
! another
plain=value
  spaced  :  with colon
bare
a\ b\=c another \
        line
path=C:\\tmp\\x
accent=caf\u00e9 \
# goes on, and is no comment
last=1
"""

# Prints a line for each file: the hexadecimal names and values, or that Java cannot read it.
PRINT = """
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Print {
    static String hex(Object text) {
        return HexFormat.of().formatHex(((String) text).getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties read = new Properties();
            try (InputStream in = Files.newInputStream(Path.of(file))) {
                read.load(in);
                StringBuilder line = new StringBuilder();
                read.forEach((name, value) -> line.append(hex(name)).append('=').append(hex(value)).append(' '));
                System.out.println(line);
            } catch (IllegalArgumentException error) {
                System.out.println("unreadable");
            }
        }
    }
}
"""
FILES = [
    *(b"", b"\n\n \t\n", b"a", b"a=", b"a=1", b"a=1\n", b"a=1\r\nb=2\r\n", b"a=1\rb=2", b"\xef\xbb\xbfa=1\nb=2\n"),
    # Blanks, also in the place of a separator, and at the ends.
    *(b"users=3 \n", b"  a \t= \f 1\t\n", b"a 1", b"a\t1 2", b"a : 1", b"a = : 1", b"a  :=1", b"a\f1\nb\f\f=\f2"),
    *(b"a\xa0b=1", b"a=\xa01\xa0", b"a\x0bb=\x1c1\x1d\x1e\x85", b"a=1\x01\n\x01b=2"),
    # Letters that are not of ASCII: Java reads bytes of ISO 8859-1, so that each of UTF-8 is a character.
    *(
        "city=Ålesund\nusers=3\n".encode(),
        "city=Ålesund\nusers=3\n".encode("latin-1"),
        "名=値\n".encode(),
        b"a=\xe2\x80\xa8b",
    ),
    # Backslashes.
    *(
        rb"data=C:\\data\\",
        rb"data=C:\data" + b"\\\nusers=3\n",
        rb"a=\t\n\r\f\b\q\"\'\#\!\=\:\ ",
        rb"a=\\\\",
        rb"a=1" + b"\\",
    ),
    *(rb"a\ b=1", rb"a\=b\:c=1", rb"a\\=1", rb"a\\\=b=1", rb"\ a=1", rb"\#a=1", rb"a\tb=1", rb"a=\ 1"),
    # Lines that go on.
    *(
        b"a=1,\\\n  2,\\\r\n\t3\nb=4",
        b"a=\\\n\nb=2",
        b"a\\\n=1",
        b"a\\\n\\\nb=1",
        b"a=1\\\\\n2=3",
        b"\\\na=1",
        b"a=1\\\n",
    ),
    *(b"# no\\\na=1", b"a=1\\\n# 2\nb=3", b"\\\n#a=1\nb=2", b"a=\\\r\\\r\n1"),
    # Comments.
    *(b"#a=1\n!b=2\n \t#c=3\n\f!d=4\ne=5#6 ! 7", b"a#b=1", b"#", b"!\n#\r\na=1"),
    # Characters by their numbers, right and wrong.
    *(
        rb"a=caf\u00e9 \u20AC \uD83D\ude00",
        rb"\u0061=1",
        rb"a\u003db=1",
        rb"a=\\u00e9",
        rb"a=\uu0041",
        rb"a=\u12",
        rb"a=C:\users",
    ),
    # The last of a name counts; without a separator, and with several.
    *(b"a=1\na=2\n", b"a==1", b"a=b=c", b"a:b=c"),
]


def test_a_file_is_read_as_java_does(tmp_path: Path) -> None:
    path = tmp_path / "my.properties"
    path.write_bytes(FILE)
    assert properties.read(path) == {
        "plain": "value",
        "spaced": "with colon",
        "bare": "",
        "a b=c": "another line",
        "path": r"C:\tmp\x",
        "accent": "café # goes on, and is no comment",
        "last": "1",
    }
    with pytest.raises(UsageError, match=r"none\.properties"):
        properties.read(tmp_path / "none.properties")


@pytest.mark.parametrize("content", [b"PK\x03\x04\x14\0\0\0", "users=5\n".encode("utf-16")])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my.properties"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"my\.properties is no file of properties"):
        properties.read(path)


def test_every_file_has_the_properties_that_java_finds_in_it(tmp_path: Path) -> None:
    (tmp_path / "Print.java").write_text(PRINT)
    files = [tmp_path / f"{number}.properties" for number in range(len(FILES))]
    for path, content in zip(files, FILES, strict=True):
        path.write_bytes(content)
    java = [paths.JAVA_HOME / "bin" / "java", "-XX:TieredStopAtLevel=1", tmp_path / "Print.java", *files]
    lines = subprocess.run(java, capture_output=True, text=True, check=True).stdout.splitlines()
    for path, content, line in zip(files, FILES, lines, strict=True):
        if line == "unreadable":
            with pytest.raises(UsageError, match="four digits"):
                properties.read(path)
        else:
            pairs = [[bytes.fromhex(part).decode() for part in word.split("=")] for word in line.split()]
            assert properties.read(path) == {name: value for name, value in pairs if name}, content


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    values = {"a": " lead\nand\ttab", "b": 'C:\\x "quoted"', "c": "été = #1", "d": "", "a name: é = #1!": "😀"}
    (tmp_path / "x").write_bytes(properties.written(values))
    assert properties.read(tmp_path / "x") == values


def test_the_last_of_a_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "my.properties"
    path.write_text("users=7\nramp=1\n")
    assert properties.assigned(["users=1", path, "url=http://h/?a=b"]) == {
        "users": "7",
        "ramp": "1",
        "url": "http://h/?a=b",
    }
    assert properties.assigned([path, "users=2", "ramp"]) == {"users": "2", "ramp": ""}
    with pytest.raises(UsageError, match="name=value"):
        properties.assigned(["=5"])
