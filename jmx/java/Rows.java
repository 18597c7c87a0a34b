package framestorm;

import framestorm.plan.Traceparent;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.jmeter.engine.util.NoThreadClone;
import org.apache.jmeter.reporters.Summariser;
import org.apache.jmeter.samplers.Remoteable;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.SampleSaveConfiguration;
import org.apache.jmeter.save.CSVSaveService;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes samples.jtl: JMeter's CSV, whose listener of `-l` knows no column of a class, with elapsed_us and what each row is
 * (SampleKinds). Listeners of the plan write what they would without the kit. Over slaves it hears in the controller, and
 * passes samples on to those listeners of the plan that hear of every sample (Recipient). As that of `-l` it tells JMeter's
 * summariser of each sample: as a listener of its own, that would be sent every sample once more.
 */
public final class Rows extends AbstractTestElement
        implements SampleListener, TestStateListener, Remoteable, NoThreadClone {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(Rows.class);
    private static final String FILE = "Rows.file";
    private static final String SUMMARISER = "summariser.name";
    private static final String LOCAL = "local";
    private static final int DEEPEST = 10; // as in CSVSaveService
    private static final Object LOCK = new Object();
    // The controller of slaves has a clone for each of them, and all write to one file.
    private static RandomAccessFile out;
    private static int tests;
    private transient Summariser summariser;
    private transient String host = LOCAL;

    static Rows into(String file) {
        Rows rows = new Rows();
        String name = JMeterUtils.getPropDefault(SUMMARISER, "");
        rows.summariser = name.isEmpty() ? null : new Summariser(name);
        JMeterUtils.setProperty(SUMMARISER, ""); // JMeter looks there once it has the tree
        rows.setName("samples.jtl");
        rows.setProperty(FILE, file);
        return rows;
    }

    @Override
    public Object clone() {
        Rows clone = (Rows) super.clone();
        clone.summariser = summariser;
        return clone;
    }

    @Override
    public void testStarted() {
        testStarted(LOCAL);
    }

    @Override
    public void testStarted(String host) {
        this.host = host;
        synchronized (LOCK) {
            if (tests++ == 0) {
                open(new File(getPropertyAsString(FILE)));
            }
        }
        if (summariser != null) {
            summariser.testStarted(host);
        }
    }

    @Override
    public void testEnded() {
        testEnded(LOCAL);
    }

    @Override
    public void testEnded(String host) {
        if (summariser != null) {
            summariser.testEnded(host);
        }
        synchronized (LOCK) {
            if (--tests == 0 && out != null) {
                try {
                    out.close();
                } catch (IOException error) {
                    LOG.error("cannot close {}", getPropertyAsString(FILE), error);
                }
                out = null;
            }
        }
    }

    @Override
    public void sampleOccurred(SampleEvent event) {
        if (summariser != null) {
            summariser.sampleOccurred(event);
        }
        Recipient.of(host).forEach(each -> each.sampleOccurred(event));
        if (event.getResult().markFile(getPropertyAsString(FILE))) {
            return; // it has been written: listeners may hear of a sample twice
        }
        StringBuilder rows = new StringBuilder();
        add(rows, event, event.getResult(), SampleSaveConfiguration.staticConfig(), 0);
        synchronized (LOCK) {
            if (out == null) {
                LOG.error("a sample came after the end of the test and is lost: {}", event.getResult().getSampleLabel());
                return;
            }
            try {
                append(rows); // at once: the rows of a killed run are on disk
            } catch (IOException error) {
                LOG.error("cannot write to {}", getPropertyAsString(FILE), error);
            }
        }
    }

    @Override
    public void sampleStarted(SampleEvent event) { }

    @Override
    public void sampleStopped(SampleEvent event) { }

    private static void add(StringBuilder rows, SampleEvent event, SampleResult result, SampleSaveConfiguration form, int depth) {
        rows.append(CSVSaveService.resultToDelimitedString(event, result, form, form.getDelimiter()));
        if (Microseconds.ARE_KEPT) {
            String us = Microseconds.of(event.getResult());
            rows.append(form.getDelimiter()).append(us == null ? "" : us);
            rows.append(form.getDelimiter()).append(SampleKinds.of(event, result));
        }
        if (Traces.ARE_ASKED) {
            rows.append(form.getDelimiter()).append(Traceparent.idIn(result.getRequestHeaders()));
        }
        rows.append('\n');
        if (form.saveSubresults() && depth <= DEEPEST) {
            for (SampleResult each : result.getSubResults()) {
                add(rows, event, each, form, depth + 1);
            }
        }
    }

    private static void open(File file) {
        try {
            out = new RandomAccessFile(file, "rw");
            out.seek(out.length());
            if (out.length() == 0) {
                SampleSaveConfiguration form = SampleSaveConfiguration.staticConfig();
                String of = form.getDelimiter() + "\"";
                append(CSVSaveService.printableFieldNamesToString(form)
                    + (Microseconds.ARE_KEPT ? of + "elapsed_us\"" + of + "sample_kind\"" : "")
                    + (Traces.ARE_ASKED ? of + Traces.COLUMN + "\"\n" : "\n"));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Write rows. Of those that do not fit on the disk no part stays: its quotation marks would spoil later ones. */
    private static void append(CharSequence rows) throws IOException {
        long end = out.getFilePointer();
        try {
            out.write(rows.toString().getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            out.setLength(end);
            throw error;
        }
    }
}
