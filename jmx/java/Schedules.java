package framestorm;

import groovy.json.JsonOutput;
import java.lang.reflect.Field;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ResourceBundle;
import kg.apc.jmeter.timers.VariableThroughputTimer;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.ThreadListener;
import org.apache.jmeter.testelement.property.IntegerProperty;
import org.apache.jmeter.testelement.property.JMeterProperty;
import org.apache.jmeter.testelement.property.LongProperty;
import org.apache.jmeter.testelement.property.StringProperty;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.openmodel.OpenModelThreadGroup;
import org.apache.jmeter.threads.openmodel.ThreadScheduleUtils;
import org.apache.jmeter.timers.ConstantThroughputTimer;
import org.apache.jmeter.timers.poissonarrivals.PreciseThroughputTimer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has each schedule count from the start of its own thread group, as JMeter does from 6.0 on: JMeter 5.5 counts from the
 * test's start, which lies before the warm-up, setUp Thread Groups and groups that run before.
 */
public final class Schedules {
    private static final Logger LOG = LoggerFactory.getLogger(Schedules.class);
    private static final List<Locale> LOCALES = List.of(Locale.ROOT, Locale.GERMAN, Locale.FRENCH, Locale.JAPANESE,
        Locale.KOREAN, new Locale("es"), new Locale("tr"), new Locale("pt", "BR"), Locale.SIMPLIFIED_CHINESE,
        Locale.TRADITIONAL_CHINESE);
    private static final Map<AbstractThreadGroup, Long> STARTS = Collections.synchronizedMap(new IdentityHashMap<>());

    /** Forget the starts of an earlier test. */
    static void begin() {
        STARTS.clear();
    }

    /** The group reads its schedule, and then when the test started: that is now. */
    static void countFromStart(OpenModelThreadGroup group) {
        JMeterProperty schedule = group.getProperty(OpenModelThreadGroup.SCHEDULE);
        group.removeProperty(OpenModelThreadGroup.SCHEDULE);
        group.setProperty(new Schedule(schedule, group.getName()));
    }

    /** Have JMeter take this moment for the test's start. */
    private static void beginTest() {
        try {
            Field start = JMeterContextService.class.getDeclaredField("testStart");
            start.setAccessible(true);
            start.setLong(null, System.currentTimeMillis());
        } catch (ReflectiveOperationException | RuntimeException error) {
            LOG.error("a schedule counts from the test's start", error);
        }
    }

    /** The schedule of an Open Model Thread Group, which JMeter reads as it starts the group. */
    public static final class Schedule extends StringProperty {
        private static final long serialVersionUID = 1L;
        private final JMeterProperty planned;
        private final String group;

        Schedule(JMeterProperty planned, String group) {
            super(planned.getName(), "");
            this.planned = planned;
            this.group = group;
        }

        @Override
        public String getStringValue() {
            String text = planned.getStringValue();
            try {
                double lengthS = ThreadScheduleUtils.ThreadSchedule(text).getTotalDuration();
                tellEnd(group, "", System.currentTimeMillis() + (long) (lengthS * 1000));
            } catch (Exception ignored) { // JMeter says what is wrong with it
            }
            beginTest();
            return text;
        }
    }

    /** A Throughput Shaping Timer that tells when it begins to end the threads of its group, in their samples too. */
    public static final class ShapingTimer extends VariableThroughputTimer {
        private static final long serialVersionUID = 1L;

        @Override
        protected void stopTest() {
            JMeterContext context = JMeterContextService.getContext();
            String thread = context.getThread().getThreadName();
            tellEnd(context.getThreadGroup().getName(), thread, System.currentTimeMillis());
            super.stopTest();
        }
    }

    /**
     * Read by framestorm/results/jmeter_log.py: samples that end later, and fail, were cut off. Of groups with one name,
     * it is the one with that thread, or else that which JMeter starts now.
     */
    private static void tellEnd(String group, String thread, long atMs) {
        LOG.info("{\"type\":\"group_end\",\"at_ms\":{},\"group\":{},\"thread\":{}}", atMs,
            JsonOutput.toJson(group), JsonOutput.toJson(thread));
    }

    /** A Precise Throughput Timer whose events count from the start of the first user of their thread group. */
    public static final class Timer extends PreciseThroughputTimer implements ThreadListener {
        private static final long serialVersionUID = 1L;

        @Override
        public void threadStarted() {
            STARTS.putIfAbsent(JMeterContextService.getContext().getThreadGroup(), System.currentTimeMillis());
        }

        @Override
        public long delay() {
            Long startMs = STARTS.get(getThreadContext().getThreadGroup());
            if (startMs != null) {
                try {
                    Field start = PreciseThroughputTimer.class.getDeclaredField("testStarted");
                    start.setAccessible(true);
                    start.setLong(this, startMs);
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            }
            return super.delay();
        }

        @Override
        public void threadFinished() { // nothing is kept for a thread
        }
    }

    /** Old plans have the timer's mode in words, which JMeter understands in its own language of the moment only. */
    static void setMode(ConstantThroughputTimer timer) {
        String words = timer.getPropertyAsString(ConstantThroughputTimer.CALC_MODE);
        for (ConstantThroughputTimer.Mode mode : ConstantThroughputTimer.Mode.values()) {
            for (Locale locale : LOCALES) {
                ResourceBundle names = ResourceBundle.getBundle(ConstantThroughputTimer.class.getName() + "Resources",
                    locale, ResourceBundle.Control.getNoFallbackControl(ResourceBundle.Control.FORMAT_PROPERTIES));
                if (words.equals(names.getString(mode.toString()))) {
                    timer.removeProperty(ConstantThroughputTimer.CALC_MODE);
                    timer.setProperty(new IntegerProperty(ConstantThroughputTimer.CALC_MODE, mode.ordinal()));
                    return;
                }
            }
        }
    }

    /** Has each user of a thread group wait before its first sample, so that slaves start their users in turn. */
    public static final class Shift extends AbstractTestElement implements ThreadListener {
        private static final long serialVersionUID = 1L;
        static final String NAME = "framestorm.shift_ms"; // framestorm/hosts/shares.py writes it
        private static final long LOOK_EVERY_MS = 200;

        static Shift of(long shiftMs) {
            Shift shift = new Shift();
            shift.setProperty(new LongProperty(NAME, shiftMs));
            shift.setRunningVersion(true);
            return shift;
        }

        @Override
        public void threadStarted() {
            JMeterThread thread = JMeterContextService.getContext().getThread();
            long endNs = System.nanoTime() + getPropertyAsLong(NAME) * 1_000_000;
            try {
                for (long leftNs = endNs - System.nanoTime(); leftNs > 0 && Running.goesOn(thread);
                        leftNs = endNs - System.nanoTime()) {
                    Thread.sleep(Math.min(LOOK_EVERY_MS, leftNs / 1_000_000 + 1));
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            } catch (IllegalAccessException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void threadFinished() { // nothing is kept for a thread
        }
    }

    private Schedules() {
    }
}
