package framestorm.plan;

import framestorm.Load;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.services.FileServer;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.util.JMeterUtils;

/** What properties give to requests: texts, files, headers. */
final class Given {
    private static final Pattern NOT_IN_URL = Pattern.compile("[\"<>\\\\^`{|}\\s]|%(?![0-9A-Fa-f]{2})"); // encoded, as by browsers
    private static final Pattern NOT_IN_PATH = Pattern.compile("[\\[\\]]|" + NOT_IN_URL);
    private static final Pattern URL_PARTS = Pattern.compile("(?s)((?:\\w+://[^/?#]*)?)([^?#]*)(.*)");
    private static final Pattern NOT_IN_HEADER = Pattern.compile("[^\\t -~\\u00A0-\\u00FF]"); // JMeter would send ? for it
    private static final Pattern HEADER = Pattern.compile("[!#-'*+.^`|~\\w-]+\\s*:.*");
    private static final String BYTE_ORDER_MARK = "\uFEFF"; // as Windows writes it at the beginning

    /** The value of a property. A plan of one's own declares what it needs of them; others have the default. */
    static String property(JMeterVariables vars, String name, String missing) {
        String value = vars.get(name);
        return value == null || value.isEmpty() ? missing : value;
    }

    static String property(JMeterVariables vars, String name) {
        return property(vars, name, "");
    }

    /** Refuse a load in words that nothing has read: another load would be made in its place. */
    static void checkLoad(JMeterVariables vars) {
        if (!property(vars, "load").isEmpty() && JMeterUtils.getPropDefault(Load.PROPERTY, "").isEmpty()) {
            String level = vars.get("rate_per_s") == null ? "users" : "rate_per_s";
            throw new IllegalArgumentException(
                "load: ./run.sh reads the words; JMeter alone takes " + level + ", ramp_s and hold_s");
        }
    }

    /** The file of @path; JMeter's own reading of a relative path is beside the plan. */
    static File file(String reference) {
        return file(reference, FileServer.getFileServer().getBaseDir());
    }

    static File file(String reference, String folder) {
        File named = new File(reference.startsWith("@") ? reference.substring(1) : reference);
        return named.isAbsolute() ? named : new File(folder, named.getPath());
    }

    static String textOf(File file) throws IOException {
        String text;
        try (InputStream input = new FileInputStream(file)) {
            text = new String(input.readAllBytes(), StandardCharsets.UTF_8);
        }
        if (text.indexOf('\uFFFD') >= 0) {
            throw new IllegalArgumentException(file + " is not text in UTF-8");
        }
        return withoutMark(text);
    }

    static String withoutMark(String text) {
        return text.startsWith(BYTE_ORDER_MARK) ? text.substring(1) : text;
    }

    /** The lines of a property that has one to a line, or \n between them. */
    static List<String> linesOf(String property) {
        return lines(property.replace("\\n", "\n"));
    }

    /** The lines of a file, in which \n is what it is. */
    static List<String> lines(String text) {
        return text.lines().map(String::trim).filter(each -> !each.isEmpty()).collect(Collectors.toList());
    }

    static String encoded(String url) {
        Matcher parts = URL_PARTS.matcher(url);
        parts.matches();
        // Java has brackets around an IPv6 address and in a query, but in no path.
        return encoded(NOT_IN_URL, parts.group(1)) + encoded(NOT_IN_PATH, parts.group(2)) + encoded(NOT_IN_URL, parts.group(3));
    }

    private static String encoded(Pattern wrong, String text) {
        return wrong.matcher(text).replaceAll(each -> String.format("%%%02X", (int) each.group().charAt(0)));
    }

    /** Headers, as client/headers.py reads them. */
    static List<Header> headers(String property, Secrets secrets) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (String line : property.startsWith("@") ? lines(textOf(file(property))) : linesOf(property)) {
            int colon = line.indexOf(':');
            if (!HEADER.matcher(line).matches()) {
                throw new IllegalArgumentException("header '" + line + "' is not of the form Name: value");
            }
            String name = line.substring(0, colon).trim();
            if (name.toLowerCase(Locale.ROOT).equals("transfer-encoding")) { // JMeter would send nothing
                throw new IllegalArgumentException(
                    "-Jheaders: leave Transfer-Encoding out: JMeter sends bodies with their length");
            }
            headers.add(new Header(name, secrets.resolved(line.substring(colon + 1).trim())));
        }
        return headers;
    }

    static void checkHeader(String name, String value) {
        Matcher wrong = NOT_IN_HEADER.matcher(value);
        if (wrong.find()) { // it may be of a secret: the value is not shown
            throw new IllegalArgumentException("-Jheaders: " + name + ": its value has the character "
                + String.format("U+%04X", wrong.group().codePointAt(0)) + ", which JMeter cannot send in a header: "
                + "percent-encode it, or leave it out");
        }
    }

    private Given() {
    }
}
