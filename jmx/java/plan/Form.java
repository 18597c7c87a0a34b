package framestorm.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.protocol.http.util.HTTPArgument;
import org.apache.jmeter.protocol.http.util.HTTPFileArg;
import org.apache.jmeter.services.FileServer;

/** The fields of a multipart form, in place of a body. */
final class Form {
    // As framestorm/model/form.py reads it; a test compares the two.
    private static final Pattern FIELD = Pattern.compile(
        "(?s)([!-<>-~][ -<>-~]*)=([@<]?)(.*?)(?:;type=([\\w.+-]+/[^;=]+(?:; *charset=[\\w-]+)?))?");

    final List<Field> fields = new ArrayList<>();

    Form(String property, Secrets secrets) throws IOException {
        boolean isFile = property.startsWith("@");
        String folder = isFile ? Given.file(property).getParent() : FileServer.getFileServer().getBaseDir();
        // The conductor puts the lines of a file in its place.
        boolean hasLines = property.indexOf('\n') >= 0 || property.indexOf('\r') >= 0;
        for (String line : isFile ? Given.lines(Given.textOf(Given.file(property)))
                : hasLines ? Given.lines(property) : Given.linesOf(property)) {
            Matcher match = FIELD.matcher(line);
            if (!match.matches()) {
                throw new IllegalArgumentException(
                    "-Jform: '" + line + "' is not of the form name=value, name=@file or name=<file, with a name in ASCII");
            }
            String sign = match.group(2);
            File file = sign.isEmpty() ? null : Given.file(match.group(3), folder);
            boolean isUpload = sign.equals("@");
            fields.add(new Field(match.group(1), match.group(4), isUpload ? Bodies.files("form", file) : List.of(),
                isUpload ? "" : secrets.resolved(file == null ? match.group(3) : Given.textOf(file))));
        }
    }

    boolean isEmpty() {
        return fields.isEmpty();
    }

    /** How many files each field sends in turn. */
    LongStream turns() {
        return fields.stream().mapToLong(each -> each.files.size());
    }

    String templates() {
        return fields.stream().map(each -> each.value).collect(Collectors.joining(" "));
    }

    void addTo(HTTPSamplerBase sampler, long index, Map<String, JsonNode> row) {
        // As browsers and curl do: no header of a value's type.
        sampler.setDoBrowserCompatibleMultipart(
            fields.stream().noneMatch(each -> each.type != null && each.files.isEmpty()));
        List<HTTPFileArg> uploads = new ArrayList<>();
        for (Field field : fields) {
            if (!field.files.isEmpty()) {
                File file = field.files.get((int) (index % field.files.size()));
                uploads.add(new HTTPFileArg(file.getPath(), field.name, field.type == null ? Bodies.typeOf(file) : field.type));
            } else {
                boolean isJson = field.type != null && field.type.contains("json");
                Function<JsonNode, String> written = isJson ? DataRows::escaped : DataRows::plain;
                HTTPArgument argument = new HTTPArgument(field.name, DataRows.filled(field.value, row, written));
                argument.setContentType(field.type == null ? "text/plain" : field.type);
                sampler.getArguments().addArgument(argument);
            }
        }
        sampler.setHTTPFiles(uploads.toArray(HTTPFileArg[]::new));
    }

    /** A value, or files of which each request sends the next; the type is null if none is given. */
    static final class Field {
        final String name;
        final String type;
        final List<File> files;
        final String value;

        Field(String name, String type, List<File> files, String value) {
            this.name = name;
            this.type = type;
            this.files = files;
            this.value = value;
        }
    }
}
