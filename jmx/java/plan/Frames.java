package framestorm.plan;

import framestorm.Running;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterVariables;

/** The frames that are sent in turn over all threads of a test, and how each is sent. */
public final class Frames {
    private static final PerTest<Frames> OF_TEST = new PerTest<>();

    private final Secrets secrets = new Secrets();
    private final AtomicLong next = new AtomicLong();
    private final List<Header> headers;
    private final Encoding encoding;
    private final List<String> paths;

    /** Called before each request: chooses its frame. */
    public static void prepare(JMeterContext ctx) throws Exception {
        JMeterVariables vars = ctx.getVariables();
        Frames frames;
        try {
            frames = OF_TEST.get(ctx, () -> new Frames(vars));
        } catch (IOException | IllegalArgumentException error) {
            Refusal.stop(ctx);
            throw error;
        }
        // A thread that was stopped before its sampler takes no frame from those whose arrival is still to be sent.
        if (Running.goesOn(ctx.getThread())) {
            frames.prepare((HTTPSamplerBase) ctx.getCurrentSampler(), vars);
        }
    }

    private Frames(JMeterVariables vars) throws IOException {
        headers = Given.headers(vars.get("headers"), secrets);
        headers.forEach(each -> Given.checkHeader(each.getName(), each.getValue()));
        String name = vars.get("encoding");
        encoding = Stream.of(Encoding.values()).filter(each -> each.name.equals(name)).findFirst()
            .orElseThrow(() -> new IllegalArgumentException("encoding " + name + " is not one of " + Encoding.names()));
        paths = list(new File(vars.get("frame_dir")).getAbsolutePath(), Integer.parseInt(vars.get("frames")));
    }

    private List<String> list(String folder, int limit) throws IOException {
        String[] all = new File(folder).list();
        List<String> names = Stream.of(all == null ? new String[0] : all)
            .filter(each -> each.endsWith(encoding.suffix)).sorted().collect(Collectors.toList());
        if (names.isEmpty()) {
            throw new FileNotFoundException(
                "no *" + encoding.suffix + " frames in " + folder + ": cut the video first, see frame_dir");
        }
        return IntStream.range(0, limit > 0 ? limit : names.size())
            .mapToObj(at -> folder + "/" + names.get(at % names.size())).collect(Collectors.toList());
    }

    private void prepare(HTTPSamplerBase sampler, JMeterVariables vars) {
        int index = (int) (next.getAndIncrement() % paths.size());
        vars.put("index", String.valueOf(index));
        vars.put("frame_file", paths.get(index));
        vars.put("content_type", encoding.type);
        vars.put("accept", encoding.accept); // for the check of the answer
        HeaderManager manager = new HeaderManager();
        headers.forEach(each -> manager.add(new Header(each.getName(), each.getValue())));
        for (Header each : List.of(new Header("Content-Type", encoding.type), new Header("Accept", encoding.accept))) {
            if (headers.stream().noneMatch(own -> own.getName().equalsIgnoreCase(each.getName()))) {
                manager.add(each);
            }
        }
        Traceparent.fillIn(manager, sampler, vars);
        sampler.setHeaderManager(manager);
        secrets.putInto(vars);
    }

    /** How the frame client sends frames, and what it asks for. */
    private enum Encoding {
        PNG_BASE64("png-base64", ".b64", "text/plain", "application/json"),
        PNG("png", ".png", "image/png", "image/png"),
        JPEG("jpeg", ".jpg", "image/jpeg", "image/jpeg");

        final String name;
        final String suffix;
        final String type;
        final String accept;

        Encoding(String name, String suffix, String type, String accept) {
            this.name = name;
            this.suffix = suffix;
            this.type = type;
            this.accept = accept;
        }

        static List<String> names() {
            return Stream.of(values()).map(each -> each.name).collect(Collectors.toList());
        }
    }
}
