package framestorm

// What properties give to requests: files, secrets and headers, for jmx/groovy/request.groovy and frame.groovy.

import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import java.util.regex.Matcher
import java.util.regex.Pattern
import org.apache.jmeter.protocol.http.control.Header
import org.apache.jmeter.services.FileServer

@CompileStatic
class Secrets { // those of ${env:NAME}
    static final Pattern SECRET = ~/\$\{env:(\w+)\}/

    // What a secret's value may look like in a request or its answer, the longest first, and how it is written in the
    // properties: that is shown instead.
    final Map<String, String> shown = new TreeMap<String, String>({ String a, String b ->
        b.length() <=> a.length() ?: a <=> b
    } as Comparator<String>)

    String resolved(String template) {
        return template.replaceAll(SECRET) { List<String> match ->
            String value = System.getenv(match[1])
            if (value == null) {
                throw new IllegalArgumentException("the environment has no variable ${match[1]}, which ${match[0]} asks for")
            }
            if (value) {
                String inForm = URLEncoder.encode(value, 'UTF-8')
                String inUrl = Given.encoded(value), inJson = JsonOutput.toJson(value)[1..-2]
                for (String each : [value, inForm, inForm.replace('+', '%20'), inUrl, inJson]) {
                    shown[each] = match[0]
                }
            }
            return value
        }
    }
}

@CompileStatic
class Given {
    static final Pattern NOT_IN_URL = ~/["<>\\^`{|}\s]|%(?![0-9A-Fa-f]{2})/ // percent-encoded, as by browsers
    static final Pattern NOT_IN_HEADER = ~/[^\t -~\u00A0-\u00FF]/ // JMeter would send ? for it

    // The file of @path; JMeter's own reading of a relative path is beside the plan.
    static File file(String reference, String folder = FileServer.fileServer.baseDir) {
        File named = new File(reference - ~/^@/)
        return named.absolute ? named : new File(folder, named.path)
    }

    // Without the mark that Windows writes at the beginning.
    static String textOf(File file) {
        String text = file.getText('UTF-8')
        if (text.contains('\uFFFD')) {
            throw new IllegalArgumentException("$file is not text in UTF-8")
        }
        return text.startsWith('\uFEFF') ? text.substring(1) : text
    }

    static String encoded(String url) {
        return url.replaceAll(NOT_IN_URL) { String each -> String.format('%%%02X', (int) each.charAt(0)) }
    }

    // As client/headers.py reads them.
    static List<Header> headers(String property, Secrets secrets) {
        String lines = property.startsWith('@') ? textOf(file(property)) : property
        return lines.replace('\\n', '\n').readLines()*.trim().findAll().collect { String line ->
            int colon = line.indexOf(':')
            if (!(line ==~ /[!#-'*+.^`|~\w-]+\s*:.*/)) {
                throw new IllegalArgumentException("header '$line' is not of the form Name: value")
            }
            if (line ==~ /(?i)transfer-encoding\s*:.*/) { // JMeter would send nothing
                throw new IllegalArgumentException('-Jheaders: leave Transfer-Encoding out: JMeter sends bodies with their length')
            }
            return new Header(line.substring(0, colon).trim(), secrets.resolved(line.substring(colon + 1).trim()))
        }
    }

    static void checkHeader(String name, String value) {
        Matcher wrong = NOT_IN_HEADER.matcher(value)
        if (wrong.find()) { // it may be of a secret: the value is not shown
            throw new IllegalArgumentException("-Jheaders: $name: its value has the character " +
                String.format('U+%04X', wrong.group().codePointAt(0)) + ', which JMeter cannot send in a header: ' +
                'percent-encode it, or leave it out')
        }
    }
}
