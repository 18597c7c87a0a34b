package framestorm.plan;

import com.fasterxml.jackson.databind.JsonNode;
import framestorm.ClientCertificate;
import framestorm.Running;
import java.io.File;
import java.io.IOException;
import java.math.BigInteger;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.jmeter.config.Arguments;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.protocol.http.util.HTTPFileArg;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterVariables;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the requests of a test to any function as the plan's properties describe them: URL, headers and body, filled in from
 * files and data rows, in turn over all threads. Secrets (${env:NAME}) are resolved here and nowhere else.
 */
public final class Requests {
    private static final Logger LOG = LoggerFactory.getLogger(Requests.class);
    private static final PerTest<Requests> OF_TEST = new PerTest<>();
    private static final Pattern ROWS_AS_BODY = Pattern.compile("(?s)@.+\\.(csv|jsonl)");
    private static final List<String> WITH_BODY = List.of("POST", "PUT", "PATCH");

    final Form form;
    private final JMeterVariables vars; // of the thread that is first; properties are the same in all
    private final Secrets secrets = new Secrets();
    private final String url;
    private final String text;
    private final String contentType;
    private final List<Header> headers;
    private final List<File> files; // sent as they are
    private final DataRows rows;
    private final boolean isRowTheBody;
    private final boolean isTypeGiven;
    private final boolean redirects;
    private final boolean keepAlive;
    private final long turns; // requests until the same rows and files are sent again; 0: all requests are equal
    private final URI proxy;
    private final AtomicLong next = new AtomicLong();

    /** Called once before all requests: reads the files that the properties name, and finds mistakes. */
    public static void check(JMeterContext ctx, SampleResult result) {
        result.setIgnore();
        try {
            Given.checkLoad(ctx.getVariables());
            of(ctx);
        } catch (Exception error) {
            Refusal.stop(ctx, LOG, error);
        }
    }

    /** Called before each request. */
    public static void prepare(JMeterContext ctx) throws Exception {
        try {
            Requests requests = of(ctx);
            // A thread that was stopped before its sampler takes no data row from those whose arrival is still to be sent.
            if (Running.goesOn(ctx.getThread())) {
                requests.prepare((HTTPSamplerBase) ctx.getCurrentSampler(), ctx.getVariables());
            }
        } catch (Exception error) {
            Refusal.stop(ctx);
            throw error;
        }
    }

    static Requests of(JMeterContext ctx) throws Exception {
        return OF_TEST.get(ctx, () -> new Requests(ctx.getVariables()));
    }

    private Requests(JMeterVariables vars) throws IOException, GeneralSecurityException {
        this.vars = vars;
        url = secrets.resolved(property("url"));
        String body = property("body");
        isRowTheBody = property("rows").isEmpty() && ROWS_AS_BODY.matcher(body).matches();
        String rowsFile = isRowTheBody ? body : property("rows");
        rows = rowsFile.isEmpty() ? new DataRows() : new DataRows(Given.file(rowsFile));
        String ofOne = isRowTheBody ? "" : body;
        boolean isFile = ofOne.startsWith("@");
        boolean isTemplate = !isFile || isTemplate(Given.file(ofOne));
        files = isTemplate ? List.of() : Bodies.files("body", Given.file(ofOne));
        text = !isTemplate ? "" : secrets.resolved(isFile ? Given.textOf(Given.file(ofOne)) : ofOne);
        form = new Form(property("form"), secrets);
        isTypeGiven = !property("content_type").isEmpty();
        if (!form.isEmpty() && (!body.isEmpty() || isTypeGiven || !WITH_BODY.contains(Given.property(vars, "method", "POST")))) {
            throw new IllegalArgumentException("-Jform: a form is sent by " + String.join(", ", WITH_BODY)
                + " in place of body and content_type; set only one of them");
        }
        turns = LongStream.concat(LongStream.of(rows.size(), files.size()), form.turns()).filter(each -> each > 0)
            .reduce(Requests::leastCommonMultiple).orElse(0);
        headers = Given.headers(property("headers"), secrets);
        if (!rows.isEmpty() && !isRowTheBody) {
            rows.check(rowsFile, templates());
        }
        for (Header header : headers) {
            rows.orNone().forEach(row -> Given.checkHeader(header.getName(), filled(header, row)));
        }
        contentType = Given.property(vars, "content_type", isRowTheBody ? Bodies.JSON : Bodies.typeOf(text));
        redirects = Given.property(vars, "follow_redirects", "true").equals("true");
        keepAlive = Given.property(vars, "keep_alive", "true").equals("true");
        proxy = proxy();
        if (!property("certificate").isEmpty()) {
            ClientCertificate.use(Given.file(property("certificate")), secrets.resolved(property("certificate_password")));
        }
    }

    private static long leastCommonMultiple(long first, long second) {
        long divisor = BigInteger.valueOf(first).gcd(BigInteger.valueOf(second)).longValue();
        return Math.multiplyExact(first / divisor, second);
    }

    // A file is a template only where there is something to fill it with; else it is sent as it is, with its type.
    private boolean isTemplate(File file) throws IOException {
        if (rows.isEmpty() || !file.isFile()) {
            return false;
        }
        String content = new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
        return content.indexOf('\0') < 0 && (content.contains("${env:") || !rows.columnsOf(content).isEmpty());
    }

    private String property(String name) {
        return Given.property(vars, name);
    }

    private String templates() {
        Stream<String> ofHeaders = headers.stream().map(Header::getValue);
        Stream<String> others = Stream.of(url, text, property("expect"), property("reject"), form.templates());
        return Stream.concat(others, ofHeaders).collect(Collectors.joining(" "));
    }

    private URI proxy() {
        String address = secrets.resolved(property("proxy"));
        if (address.isEmpty()) {
            return null;
        }
        URI uri;
        try {
            uri = new URI((address.contains("://") ? "" : "http://") + address);
        } catch (URISyntaxException error) { // its message has the password
            throw new IllegalArgumentException(
                "-Jproxy=" + property("proxy") + ": " + error.getReason() + "; percent-encode the password");
        }
        if (uri.getHost() == null || uri.getHost().isEmpty() || uri.getPort() < 0) {
            throw new IllegalArgumentException("-Jproxy=" + property("proxy") + ": expected host:port");
        }
        return uri;
    }

    private static String filled(Header header, Map<String, JsonNode> row) {
        return DataRows.filled(header.getValue(), row, value -> DataRows.plain(value).replaceAll("[\\r\\n]+", " "));
    }

    private static String inUrl(JsonNode value) {
        return URLEncoder.encode(DataRows.plain(value), StandardCharsets.UTF_8).replace("+", "%20");
    }

    private void prepare(HTTPSamplerBase sampler, JMeterVariables ofUser) {
        long index = turns > 0 ? next.getAndIncrement() % turns : 0;
        if (turns > 1) {
            ofUser.put("index", String.valueOf(index));
        }
        Map<String, JsonNode> row = rows.get(index);
        // The sampler's path: once a run has begun, what is set there itself is not kept.
        ofUser.put("request_url", Given.encoded(DataRows.filled(url, row, Requests::inUrl)));
        File file = files.isEmpty() ? null : files.get((int) (index % files.size()));
        String type = file == null || isTypeGiven ? contentType : Bodies.typeOf(file);
        boolean sendsBody = WITH_BODY.contains(sampler.getMethod());
        boolean hasType = file != null || !text.isEmpty() || isRowTheBody || sendsBody;
        HeaderManager manager = headersFor(row, hasType ? type : "");
        Traceparent.fillIn(manager, sampler, ofUser);
        sampler.setHeaderManager(manager);
        sampler.setArguments(new Arguments());
        sampler.setHTTPFiles(new HTTPFileArg[0]);
        sampler.setDoMultipart(!form.isEmpty());
        sampler.setPostBodyRaw(false);
        if (!form.isEmpty()) {
            form.addTo(sampler, index, row);
        } else if (file != null) {
            sampler.setHTTPFiles(new HTTPFileArg[] {new HTTPFileArg(file.getPath(), "", type)});
        } else {
            Function<JsonNode, String> written = type.contains("json") ? DataRows::escaped : DataRows::plain;
            String sent = isRowTheBody ? DataRows.json(row) : DataRows.filled(text, row, written);
            // An empty body too: as the empty form that JMeter makes of none, it would be lost at a redirect.
            if (!sent.isEmpty() || sendsBody) {
                sampler.addNonEncodedArgument("", sent, "");
                sampler.setPostBodyRaw(true);
            }
        }
        // A DELETE might become a GET, and its answer would not show it.
        sampler.setAutoRedirects(redirects && !"DELETE".equals(sampler.getMethod()));
        sampler.setUseKeepAlive(keepAlive);
        if (proxy != null) {
            setProxy(sampler);
        }
        secrets.putInto(ofUser);
        if (row != null) { // for what is expected of the answer
            UnaryOperator<String> filling = template -> DataRows.filled(template, row, DataRows::plain);
            ofUser.putObject("filling", filling);
        }
    }

    private void setProxy(HTTPSamplerBase sampler) {
        String[] login = (proxy.getUserInfo() == null ? ":" : proxy.getUserInfo()).split(":", 2);
        sampler.setProxyScheme(proxy.getScheme());
        sampler.setProxyHost(proxy.getHost());
        sampler.setProxyPortInt(String.valueOf(proxy.getPort()));
        sampler.setProxyUser(login[0]);
        sampler.setProxyPass(login.length > 1 ? login[1] : "");
    }

    private HeaderManager headersFor(Map<String, JsonNode> row, String type) {
        HeaderManager manager = new HeaderManager();
        boolean hasType = false;
        for (Header header : headers) {
            boolean isType = header.getName().equalsIgnoreCase("Content-Type");
            if (isType && !form.isEmpty()) { // JMeter's has the boundary of the parts
                continue;
            }
            hasType |= isType;
            manager.add(new Header(header.getName(), filled(header, row)));
        }
        if (!type.isEmpty() && !hasType && form.isEmpty()) {
            manager.add(new Header("Content-Type", type));
        }
        return manager;
    }
}
