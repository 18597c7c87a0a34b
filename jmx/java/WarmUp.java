package framestorm;

import framestorm.plan.Call;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.io.Writer;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.script.Compilable;
import javax.script.CompiledScript;
import javax.script.ScriptEngine;
import javax.script.ScriptException;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.jmeter.control.LoopController;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.extractor.JSR223PostProcessor;
import org.apache.jmeter.modifiers.JSR223PreProcessor;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.SampleSaveConfiguration;
import org.apache.jmeter.save.CSVSaveService;
import org.apache.jmeter.save.SaveService;
import org.apache.jmeter.testbeans.TestBeanHelper;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.TestPlan;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.ListenerNotifier;
import org.apache.jmeter.threads.ThreadGroup;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jmeter.util.JSR223TestElement;
import org.apache.jorphan.collections.HashTree;
import org.apache.jorphan.collections.ListedHashTree;
import org.apache.jorphan.collections.SearchByClass;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has Java load and compile what a plan's first samples need, before the first of them: else it would be charged to the
 * function. Nothing is sent to the function: samplers of the same kinds as the plan's send to a sink in this process.
 * Scripts of a plan may have side effects, so none is run but the kit's own calls that make a request and judge its answer.
 */
public final class WarmUp {
    private static final Logger LOG = LoggerFactory.getLogger(WarmUp.class);
    private static final String PROPERTY = "framestorm.warm_up";
    // A method is compiled after 200 calls; some are called by each thread only.
    private static final int THREADS = 16;
    private static final int REQUESTS_PER_THREAD = 60;
    private static final int AT_MOST_S = 2;
    private static final int LINE_AT_MOST = 8192; // any account of this machine may connect
    private static final String BODY = "{\"warm\": \"up\"}";

    /** Called by TestStart, on each machine that makes load; `listeners` get those that hear of the start and end of the test. */
    public static void run(HashTree plan, Collection<Object> listeners, StandardJMeterEngine engine) {
        Elements.exchange(plan, listeners);
        Unreplaced.listen(plan, listeners);
        SelfCheck.listen(plan, listeners);
        Peers.listen(listeners);
        if (!JMeterUtils.getPropDefault(PROPERTY, false)) {
            return;
        }
        Stalls.watch(engine);
        long startNs = System.nanoTime();
        try {
            // JMeter adds a plan's class path after this, and a script is compiled otherwise without its classes.
            boolean isComplete =
                    elements(plan, TestPlan.class).stream().allMatch(each -> each.getTestPlanClasspath().isEmpty());
            Collection<JSR223TestElement> scripts = elements(plan, JSR223TestElement.class);
            if (isComplete) {
                for (JSR223TestElement each : scripts) {
                    compile(each);
                }
            }
            int requests = 0;
            Collection<HTTPSamplerBase> samplers = elements(plan, HTTPSamplerBase.class);
            // HttpClient would send them to the proxy that these properties name, which must not get any.
            boolean hasProxy = !System.getProperty("http.proxyHost", "").isEmpty();
            if (!samplers.isEmpty() && !hasProxy) {
                requests = request(samplers.iterator().next(), runnable(plan, !scripts.isEmpty()));
            }
            LOG.info("warmed up by {} requests to itself in {} ms", requests, (System.nanoTime() - startNs) / 1_000_000);
        } catch (IOException | ReflectiveOperationException | RuntimeException error) {
            LOG.warn("not warmed up, so the first samples take longer", error);
        }
    }

    private static <T> Collection<T> elements(HashTree plan, Class<T> type) {
        SearchByClass<T> search = new SearchByClass<>(type);
        plan.traverse(search);
        return search.getSearchResults();
    }

    /** Compile a script into JMeter's cache, without running it. */
    @SuppressWarnings("unchecked")
    private static void compile(JSR223TestElement element) throws ReflectiveOperationException {
        JSR223TestElement script = (JSR223TestElement) element.clone();
        try {
            TestBeanHelper.prepare(script);
            ScriptEngine engine = JSR223TestElement.getInstance().getEngineByName(script.getScriptLanguage());
            if (!(engine instanceof Compilable) || !"groovy".equals(script.getScriptLanguage())) {
                return;
            }
            Field field = JSR223TestElement.class.getDeclaredField("compiledScriptsCache");
            field.setAccessible(true);
            Map<String, CompiledScript> cache = (Map<String, CompiledScript>) field.get(null);
            String text = script.getScript();
            String key = null;
            if (script.getFilename() != null && !script.getFilename().isEmpty()) {
                Path file = Path.of(script.getFilename()).toAbsolutePath();
                text = Files.readString(file);
                key = "groovy#" + file + "#" + file.toFile().lastModified();
            } else if (!"false".equals(script.getCacheKey())) {
                key = DigestUtils.md5Hex(text);
            }
            if (key != null && !cache.containsKey(key)) {
                cache.put(key, ((Compilable) engine).compile(text));
            }
        } catch (IOException | ScriptException | RuntimeException error) {
            LOG.info("{} is compiled when it is first run: {}", element.getName(), error.toString());
        }
    }

    /** What of the plan may be run with requests to the sink: the kit's calls; else scripts in place of the plan's. */
    private static List<TestElement> runnable(HashTree plan, boolean hasScripts) {
        List<TestElement> calls = Stream.concat(elements(plan, Call.Before.class).stream(), elements(plan, Call.After.class).stream())
            .filter(each -> Set.of(Call.MAKES_REQUEST, Call.JUDGES_ANSWER).contains(Call.line(each)))
            .map(each -> (TestElement) each.clone()).collect(Collectors.toList());
        String proxy = JMeterContextService.getContext().getVariables().get("proxy");
        boolean isMade = calls.stream().anyMatch(each -> Call.line(each).equals(Call.MAKES_REQUEST));
        if (isMade && (proxy == null || proxy.isEmpty())) {
            return calls;
        }
        return !hasScripts ? List.of() : List.of(script(new JSR223PreProcessor()), script(new JSR223PostProcessor()));
    }

    /** Run a thread group of requests to a sink, as JMeter would run one of the plan's; how many were answered. */
    private static int request(HTTPSamplerBase planned, List<TestElement> scripts) throws IOException {
        try (ServerSocket sink = new ServerSocket(0, THREADS, InetAddress.getLoopbackAddress())) {
            startDaemon("warm-up sink", () -> accept(sink));
            HTTPSamplerProxy sampler = new HTTPSamplerProxy();
            sampler.setName("warm-up");
            sampler.setImplementation(planned.getPropertyAsString("HTTPSampler.implementation"));
            sampler.setProtocol("http");
            sampler.setDomain(sink.getInetAddress().getHostAddress());
            sampler.setPort(sink.getLocalPort());
            sampler.setPath("/");
            sampler.setMethod("POST");
            sampler.setResponseTimeout(String.valueOf(AT_MOST_S * 1000));
            sampler.setUseKeepAlive(true);
            sampler.setPostBodyRaw(true);
            sampler.addNonEncodedArgument("", BODY, "");
            HeaderManager headers = new HeaderManager();
            headers.add(new Header("Content-Type", "application/json"));

            LoopController loop = new LoopController();
            loop.setLoops(REQUESTS_PER_THREAD);
            loop.initialize();
            ThreadGroup group = new ThreadGroup();
            group.setName("warm-up");
            group.setNumThreads(THREADS);
            group.setRampUp(0);
            group.setSamplerController(loop);
            group.setScheduler(true);
            group.setDuration(AT_MOST_S);
            group.setProperty(ThreadGroup.ON_SAMPLE_ERROR, ThreadGroup.ON_SAMPLE_ERROR_CONTINUE);
            ListedHashTree tree = new ListedHashTree();
            HashTree inGroup = tree.add(group);
            HashTree inSampler = inGroup.add(sampler);
            inSampler.add(headers);
            inSampler.add(scripts);
            inGroup.add(new Listener());
            // Without the engine: a script that cannot use a property would stop the test before its set-up says why.
            group.start(0, new ListenerNotifier(), tree, null);
            group.waitThreadsStopped();
            return Listener.ANSWERED.getAndSet(0);
        }
    }

    private static TestElement script(JSR223TestElement element) {
        element.setProperty("scriptLanguage", "groovy");
        element.setProperty("cacheKey", "true");
        element.setProperty("script", "vars.put('warm', String.valueOf(vars.get('warm')).take(4))");
        return element;
    }

    private static void startDaemon(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void accept(ServerSocket sink) {
        try {
            while (true) {
                Socket socket = sink.accept();
                socket.setTcpNoDelay(true);
                startDaemon("warm-up connection", () -> answer(socket));
            }
        } catch (IOException ignored) { // closed
        }
    }

    private static void answer(Socket socket) {
        byte[] answer = ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + BODY.length()
            + "\r\n\r\n" + BODY).getBytes(StandardCharsets.US_ASCII);
        try (socket; InputStream in = new BufferedInputStream(socket.getInputStream());
                OutputStream out = socket.getOutputStream()) {
            while (true) {
                long bytes = 0;
                for (String line = line(in); !line.isEmpty(); line = line(in)) {
                    if (line.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                        bytes = Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                    }
                }
                in.skipNBytes(bytes);
                out.write(answer);
            }
        } catch (IOException | NumberFormatException ignored) { // closed by the client, or not one of ours
        }
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0 || line.length() > LINE_AT_MOST) {
                throw new EOFException();
            }
            line.append((char) next);
        }
        return line.toString().trim();
    }

    /** Formats samples as the plan's listeners do, and forgets them. */
    public static final class Listener extends AbstractTestElement implements SampleListener {
        private static final long serialVersionUID = 1L;
        private static final AtomicInteger ANSWERED = new AtomicInteger(); // each thread has its own clone

        @Override
        public void sampleOccurred(SampleEvent event) {
            SampleResult result = event.getResult();
            SampleSaveConfiguration csv = SampleSaveConfiguration.staticConfig();
            CSVSaveService.resultToDelimitedString(event, result, csv, csv.getDelimiter());
            try (Writer nowhere = new StringWriter()) {
                result.setSaveConfig(csv);
                SaveService.saveSampleResult(event, nowhere);
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
            if (result.isResponseCodeOK()) { // whatever the plan expects of it
                ANSWERED.incrementAndGet();
            }
        }

        @Override
        public void sampleStarted(SampleEvent event) { // no transactions here
        }

        @Override
        public void sampleStopped(SampleEvent event) {
        }
    }

    private WarmUp() {
    }
}
