// Makes the next request to any function as the plan's properties describe it: URL, headers and body, filled in from files
// and data rows, in turn over all threads. Secrets (${env:NAME}) are resolved here and nowhere else.

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.ObjectMapper
import framestorm.ClientCertificate
import framestorm.Given
import framestorm.Running
import framestorm.Secrets
import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicLong
import java.util.regex.Matcher
import java.util.regex.Pattern
import org.apache.jmeter.config.Arguments
import org.apache.jmeter.protocol.http.control.Header
import org.apache.jmeter.protocol.http.control.HeaderManager
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase
import org.apache.jmeter.protocol.http.util.HTTPArgument
import org.apache.jmeter.protocol.http.util.HTTPFileArg
import org.apache.jmeter.save.CSVSaveService
import org.apache.jmeter.services.FileServer
import org.apache.jmeter.threads.JMeterVariables

@CompileStatic
class FormField { // a value, or files of which each request sends the next
    String name, value, type
    List<File> files
}

@CompileStatic
class Requests { // loaded anew for each run
    static final ObjectMapper JSON = new ObjectMapper()
    static final Pattern COLUMN = ~/\{([^{}"]+)\}/
    // As framestorm/model/form.py reads it; a test compares the two.
    static final Pattern FIELD = ~/(?s)([!-<>-~][ -<>-~]*)=([@<]?)(.*?)(?:;type=([\w.+-]+\/[^;=]+(?:; *charset=[\w-]+)?))?/
    static final Map<String, String> TYPES = [json: 'application/json', jsonl: 'application/jsonl', xml: 'application/xml']
    static final List<String> WITH_BODY = ['POST', 'PUT', 'PATCH']
    static volatile Requests only

    final Secrets secrets = new Secrets()
    final String url, text, contentType
    final List<Header> headers
    final List<FormField> form
    final List<File> files // sent as they are
    final List<Map<String, JsonNode>> rows = []
    final boolean isRowTheBody, redirects, keepAlive
    final int turns // how many rows or files are sent in turn; 0: all requests are equal
    final URI proxy
    final AtomicLong next = new AtomicLong()

    static synchronized Requests of(JMeterVariables vars, boolean isFirst) {
        if (only == null || isFirst) { // the warm-up may have come before
            only = new Requests(vars)
        }
        return only
    }

    Requests(JMeterVariables vars) {
        url = secrets.resolved(property(vars, 'url'))
        String body = property(vars, 'body')
        String rowsFile = property(vars, 'rows')
        isRowTheBody = !rowsFile && body ==~ /(?s)@.+\.(csv|jsonl)/
        if (isRowTheBody) {
            rowsFile = body
            body = ''
        }
        if (rowsFile) {
            readRows(Given.file(rowsFile))
        }
        if (body.startsWith('@') && !(rowsFile && Given.file(body).isFile())) {
            files = filesOf('body', Given.file(body))
            text = ''
        } else { // a file is a template only where there are rows to fill it with
            files = []
            text = secrets.resolved(body.startsWith('@') ? Given.textOf(Given.file(body)) : body)
        }
        form = readForm(property(vars, 'form'))
        if (form && (body || isRowTheBody || property(vars, 'content_type') || !(property(vars, 'method', 'POST') in WITH_BODY))) {
            throw new IllegalArgumentException(
                "-Jform: a form is sent by ${WITH_BODY.join(', ')} in place of body and content_type; set only one of them")
        }
        turns = ([rows, files] + form*.files).collect { it ? it.size() : 0 }.max()
        headers = Given.headers(property(vars, 'headers'), secrets)
        List<String> conditions = [property(vars, 'expect'), property(vars, 'reject')]
        String templates = ([url, text] + conditions + headers*.value + form*.value).join(' ')
        if (rows && !isRowTheBody) {
            checkColumns(rowsFile, templates)
        }
        checkHeaders()
        contentType = property(vars, 'content_type') ?: isRowTheBody ? TYPES.json : typeOf(text)
        redirects = property(vars, 'follow_redirects', 'true') == 'true'
        keepAlive = property(vars, 'keep_alive', 'true') == 'true'
        String proxyText = secrets.resolved(property(vars, 'proxy'))
        try {
            proxy = proxyText ? new URI((proxyText.contains('://') ? '' : 'http://') + proxyText) : null
        } catch (URISyntaxException error) { // its message has the password
            throw new IllegalArgumentException("-Jproxy=${property(vars, 'proxy')}: $error.reason; percent-encode the password")
        }
        if (proxy && (!proxy.host || proxy.port < 0)) {
            throw new IllegalArgumentException("-Jproxy=${property(vars, 'proxy')}: expected host:port")
        }
        String certificate = property(vars, 'certificate')
        String password = secrets.resolved(property(vars, 'certificate_password'))
        if (certificate) {
            ClientCertificate.use(Given.file(certificate), password)
        }
    }

    // A plan of one's own declares what it needs of the properties; those that it leaves out have the default.
    static String property(JMeterVariables vars, String name, String missing = '') {
        return vars.get(name) ?: missing
    }

    List<FormField> readForm(String property) {
        boolean isFile = property.startsWith('@')
        String folder = isFile ? Given.file(property).parent : FileServer.fileServer.baseDir
        String lines = isFile ? Given.textOf(Given.file(property)) : property
        return lines.replace('\\n', '\n').readLines()*.trim().findAll().collect { String line ->
            Matcher match = FIELD.matcher(line)
            if (!match.matches()) {
                throw new IllegalArgumentException(
                    "-Jform: '$line' is not of the form name=value, name=@file or name=<file, with a name in ASCII")
            }
            String sign = match.group(2)
            File named = sign ? Given.file(match.group(3), folder) : null
            return new FormField(name: match.group(1), type: match.group(4),
                files: sign == '@' ? filesOf('form', named) : null,
                value: sign == '@' ? '' : secrets.resolved(sign ? Given.textOf(named) : match.group(3)))
        }
    }

    static List<File> filesOf(String property, File file) {
        List<File> found = file.isDirectory() ? file.listFiles().findAll { !it.hidden && it.isFile() }.sort() : [file]
        if (!found || !found.every { it.canRead() }) {
            throw new FileNotFoundException("-J$property=@$file: ${found ? 'cannot be read' : 'the folder has no file'}")
        }
        return found
    }

    void readRows(File file) {
        if (file.name.endsWith('.jsonl')) {
            Given.textOf(file).readLines().findAll { it.trim() }.eachWithIndex { String line, int number ->
                JsonNode row = objectOf(line)
                if (row == null) {
                    throw new IllegalArgumentException("$file: line ${number + 1} is not a JSON object")
                }
                rows.add(row.fields().collectEntries { [it.key, it.value] } as Map<String, JsonNode>)
            }
        } else {
            BufferedReader lines = new BufferedReader(new StringReader(Given.textOf(file)))
            String[] names = CSVSaveService.csvReadFile(lines, (char) ',')
            if (names.toUnique().length < names.length) {
                throw new IllegalArgumentException("$file: two columns have the same name")
            }
            for (String[] values = names; values.length > 0 && names.length > 0;) {
                values = CSVSaveService.csvReadFile(lines, (char) ',')
                if (values.length == 0) {
                    break
                }
                if (values == [''] as String[] && names.length > 1) { // an empty line
                    continue
                }
                if (values.length != names.length) {
                    throw new IllegalArgumentException(
                        "$file: row ${rows.size() + 1} has ${values.length} values, its header ${names.length}")
                }
                Map<String, JsonNode> row = [:]
                names.eachWithIndex { String name, int i -> row[name] = JSON.nodeFactory.textNode(values[i]) as JsonNode }
                rows.add(row)
            }
        }
        if (!rows) {
            throw new IllegalArgumentException("$file has no rows")
        }
    }

    static JsonNode objectOf(String text) {
        try {
            JsonNode value = JSON.readTree(text)
            return value.object ? value : null
        } catch (JsonProcessingException ignored) {
            return null
        }
    }

    static String typeOf(String text) {
        return text ==~ /(?s)\s*[{\[].*/ ? TYPES.json : text ==~ /(?s)\s*<.*/ ? TYPES.xml : 'text/plain; charset=utf-8'
    }

    static String typeOf(File file) {
        String ending = file.name.toLowerCase(Locale.ROOT).replaceFirst(/.*\./, '')
        return TYPES[ending] ?: Files.probeContentType(file.toPath()) ?: 'application/octet-stream'
    }

    // The text with {column} filled in; other braces stay.
    static String filled(String template, Map<String, JsonNode> row, Closure<String> written) {
        if (!row || template.indexOf('{') < 0) {
            return template
        }
        Matcher matcher = COLUMN.matcher(template)
        StringBuilder filled = new StringBuilder()
        while (matcher.find()) {
            JsonNode value = row[matcher.group(1)]
            matcher.appendReplacement(filled, Matcher.quoteReplacement(value == null ? matcher.group() : written(value)))
        }
        return matcher.appendTail(filled).toString()
    }

    static String filled(Header header, Map<String, JsonNode> row) {
        return filled(header.value, row) { JsonNode value -> plain(value).replaceAll(/[\r\n]+/, ' ') }
    }

    static String plain(JsonNode value) {
        return value.textual ? value.textValue() : value.toString()
    }

    static String escaped(JsonNode value) { // a text stands between the quotes of the template
        String json = JSON.writeValueAsString(value)
        return value.textual ? json.substring(1, json.length() - 1) : json
    }

    void prepare(HTTPSamplerBase sampler, JMeterVariables vars) {
        int index = turns ? (int) (next.getAndIncrement() % turns) : 0
        if (turns > 1) {
            vars.put('index', index as String)
        }
        Map<String, JsonNode> row = rows ? rows[index % rows.size()] : null
        // The sampler's path: once a run has begun, what a script sets there itself is not kept.
        String filledUrl = filled(url, row) { JsonNode value -> URLEncoder.encode(plain(value), 'UTF-8').replace('+', '%20') }
        vars.put('request_url', Given.encoded(filledUrl))
        File file = files ? files[index % files.size()] : null
        String type = file ? property(vars, 'content_type') ?: typeOf(file) : contentType
        sampler.headerManager = headersFor(row, file || text || isRowTheBody || sampler.method in WITH_BODY ? type : null)
        sampler.arguments = new Arguments()
        sampler.HTTPFiles = new HTTPFileArg[0]
        sampler.doMultipart = !form.empty
        sampler.postBodyRaw = false
        if (form) {
            addForm(sampler, index, row)
        } else if (file) {
            sampler.HTTPFiles = [new HTTPFileArg(file.path, '', type)] as HTTPFileArg[]
        } else {
            boolean isJson = type.contains('json')
            String sent = isRowTheBody ? JSON.writeValueAsString(row)
                : filled(text, row) { JsonNode value -> isJson ? escaped(value) : plain(value) }
            // An empty body too: as the empty form that JMeter makes of none, it would be lost at a redirect.
            if (sent || sampler.method in WITH_BODY) {
                sampler.addNonEncodedArgument('', sent, '')
                sampler.postBodyRaw = true
            }
        }
        // A DELETE might become a GET, and its answer would not show it.
        sampler.autoRedirects = redirects && sampler.method != 'DELETE'
        sampler.useKeepAlive = keepAlive
        if (proxy) {
            sampler.proxyScheme = proxy.scheme
            sampler.proxyHost = proxy.host
            sampler.proxyPortInt = proxy.port as String
            List<String> login = (proxy.userInfo ?: ':').split(':', 2) as List<String>
            sampler.proxyUser = login[0]
            sampler.proxyPass = login[1]
        }
        vars.putObject('secrets', secrets.shown)
        if (row) { // for what is expected of the answer
            vars.putObject('filling', { String template -> filled(template, row) { JsonNode value -> plain(value) } })
        }
    }

    void checkColumns(String rowsFile, String templates) {
        Set<String> used = [] as TreeSet
        rows.each { used.addAll(it.keySet()) }
        used.retainAll { String name -> templates.contains("{$name}".toString()) }
        if (!used) {
            throw new IllegalArgumentException("-Jrows=$rowsFile: url, headers, body, form, expect and reject use none of " +
                "its columns, which are ${rows[0].keySet().join(' and ')}")
        }
        int lacking = rows.findIndexOf { !it.keySet().containsAll(used) }
        if (lacking >= 0) {
            throw new IllegalArgumentException(
                "-Jrows=$rowsFile: row ${lacking + 1} has no ${(used - rows[lacking].keySet()).join(' and no ')}, " +
                'which url, headers, body, form, expect or reject use')
        }
    }

    void checkHeaders() {
        for (Header header : headers) {
            for (Map<String, JsonNode> row : rows ?: [null as Map<String, JsonNode>]) {
                Given.checkHeader(header.name, filled(header, row))
            }
        }
    }

    void addForm(HTTPSamplerBase sampler, int index, Map<String, JsonNode> row) {
        // As browsers and curl do: no header of a value's type.
        sampler.doBrowserCompatibleMultipart = !form.any { it.type && !it.files }
        List<HTTPFileArg> uploads = []
        form.each { FormField field ->
            if (field.files) {
                File file = field.files[index % field.files.size()]
                uploads.add(new HTTPFileArg(file.path, field.name, field.type ?: typeOf(file)))
            } else {
                boolean isJson = field.type?.contains('json')
                HTTPArgument argument = new HTTPArgument(field.name,
                    filled(field.value, row) { JsonNode value -> isJson ? escaped(value) : plain(value) })
                argument.contentType = field.type ?: 'text/plain'
                sampler.arguments.addArgument(argument)
            }
        }
        sampler.HTTPFiles = uploads as HTTPFileArg[]
    }

    HeaderManager headersFor(Map<String, JsonNode> row, String type) {
        HeaderManager manager = new HeaderManager()
        boolean hasType = false
        for (Header header : headers) {
            boolean isType = header.name.equalsIgnoreCase('Content-Type')
            if (isType && form) { // JMeter's has the boundary of the parts
                continue
            }
            hasType |= isType
            manager.add(new Header(header.name, filled(header, row)))
        }
        if (type && !hasType && !form) {
            manager.add(new Header('Content-Type', type))
        }
        return manager
    }
}

boolean isFirst = !(sampler instanceof HTTPSamplerBase) // run once before all others, to find mistakes
try {
    if (isFirst) {
        binding.getVariable('SampleResult').setIgnore()
    }
    def requests = Requests.of(vars, isFirst)
    // A thread that was stopped before its sampler takes no data row from those whose arrival is still to be sent.
    if (!isFirst && Running.goesOn(ctx.thread)) {
        requests.prepare(sampler, vars)
    }
} catch (Exception error) {
    ctx.thread.stop() // before the sampler: nothing is sent
    ctx.engine?.askThreadsToStop() // the warm-up has none
    if (isFirst) {
        log.error(JsonOutput.toJson([type: 'refused', why: error.message]))
    }
    throw error
}
