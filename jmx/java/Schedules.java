package framestorm;

import com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup;
import groovy.json.JsonOutput;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import kg.apc.jmeter.timers.VariableThroughputTimer;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.ThreadListener;
import org.apache.jmeter.testelement.property.JMeterProperty;
import org.apache.jmeter.testelement.property.PropertyIterator;
import org.apache.jmeter.testelement.property.StringProperty;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.openmodel.OpenModelThreadGroup;
import org.apache.jmeter.threads.openmodel.ThreadScheduleUtils;
import org.apache.jmeter.timers.poissonarrivals.PreciseThroughputTimer;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has each schedule count from the start of its own thread group, as JMeter does from 6.0 on: JMeter 5.5 counts from the
 * test's start, which lies before the warm-up, setUp Thread Groups and groups that run before. An Arrivals Thread Group
 * keeps a rate that is no whole number, for which the plug-in sends nothing. No class is patched: elements of the test
 * are exchanged in memory, before anything of it is started.
 */
public final class Schedules {
    private static final Logger LOG = LoggerFactory.getLogger(Schedules.class);
    private static final Map<AbstractThreadGroup, Long> STARTS = Collections.synchronizedMap(new IdentityHashMap<>());

    /** Exchange what has a schedule; `listeners` are those of the test, which hear of its start and end. */
    static void exchange(HashTree test, Collection<Object> listeners) {
        STARTS.clear();
        try {
            exchangeIn(test, listeners);
        } catch (RuntimeException error) {
            LOG.error("schedules count from the test's start", error);
        }
    }

    private static void exchangeIn(HashTree tree, Collection<Object> listeners) {
        for (Object each : List.copyOf(tree.list())) {
            exchangeIn(tree.getTree(each), listeners);
            Object other = each;
            if (each.getClass() == PreciseThroughputTimer.class) {
                other = copy((TestElement) each, new Timer());
            } else if (each.getClass() == ArrivalsThreadGroup.class) {
                other = copy((TestElement) each, new Arrivals());
            } else if (each.getClass() == VariableThroughputTimer.class) {
                other = copy((TestElement) each, new ShapingTimer());
            } else if (each instanceof OpenModelThreadGroup) {
                countFromStart((OpenModelThreadGroup) each);
            }
            if (other != each) {
                tree.replaceKey(each, other);
                listeners.removeIf(listener -> listener == each);
                listeners.add(other);
            }
        }
    }

    private static TestElement copy(TestElement element, TestElement other) {
        for (PropertyIterator properties = element.propertyIterator(); properties.hasNext();) {
            other.setProperty(properties.next());
        }
        other.setRunningVersion(true);
        return other;
    }

    /** The group reads its schedule, and then when the test started: that is now. */
    private static void countFromStart(OpenModelThreadGroup group) {
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
                tellEnd(group, System.currentTimeMillis() + (long) (lengthS * 1000));
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
            tellEnd(JMeterContextService.getContext().getThreadGroup().getName(), System.currentTimeMillis());
            super.stopTest();
        }
    }

    /** Read by framestorm/results/jmeter_log.py: samples that end later, and fail, were cut off. */
    private static void tellEnd(String group, long atMs) {
        LOG.info("{\"type\":\"group_end\",\"at_ms\":{},\"group\":{}}", atMs, JsonOutput.toJson(group));
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

    /** An Arrivals Thread Group that starts 2.5 arrivals per second where these are asked for, not none. */
    public static final class Arrivals extends ArrivalsThreadGroup {
        private static final long serialVersionUID = 1L;

        @Override
        public double getTargetLevelAsDouble() {
            try {
                return Double.parseDouble(getTargetLevel().trim());
            } catch (NumberFormatException error) {
                return super.getTargetLevelAsDouble();
            }
        }
    }

    private Schedules() {
    }
}
