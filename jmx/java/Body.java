package framestorm;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.jmeter.util.JMeterUtils;

/**
 * The body of an answer as the HTTP sampler reads it. All bodies that users hold at a time get a part of the heap (the
 * property framestorm.bodies_part_of_heap): what does not fit in is read to its end and dropped. Otherwise a few answers
 * without end would take all memory and with it the run.
 */
public final class Body extends InputStream {
    private static final double PART = Double.parseDouble(JMeterUtils.getPropDefault("framestorm.bodies_part_of_heap", "0"));
    private static final long AT_MOST = (long) (PART * Runtime.getRuntime().maxMemory());
    // JMeter keeps no more of an answer than this; 0: all.
    private static final long MOST = JMeterUtils.getPropDefault("httpsampler.max_bytes_to_store_per_request", 0L);
    private static final AtomicLong HELD = new AtomicLong();
    private static final Map<Thread, Body> OF_USERS = new ConcurrentHashMap<>();
    private InputStream body;
    private long held;
    private long all;
    private boolean isCut;

    /** Called by JMeter for each answer. Where the property is not set, all of it is kept. */
    public static InputStream of(InputStream body) {
        if (AT_MOST <= 0) {
            return body;
        }
        release();
        Body held = new Body(body);
        OF_USERS.put(Thread.currentThread(), held);
        return held;
    }

    /** Whether a part of this user's last answer was dropped. */
    public static boolean isCut() {
        Body last = OF_USERS.get(Thread.currentThread());
        return last != null && last.isCut;
    }

    /** Whether this user's last answer is longer than what JMeter keeps of it. */
    public static boolean isTooLong() {
        Body last = OF_USERS.get(Thread.currentThread());
        return last != null && MOST > 0 && last.all > MOST;
    }

    /** This user's last answer is held no more. */
    public static void release() {
        release(Thread.currentThread());
    }

    private static void release(Thread user) {
        Body last = OF_USERS.remove(user);
        if (last != null) {
            HELD.addAndGet(-last.held);
        }
    }

    private Body(InputStream body) {
        this.body = body;
    }

    @Override
    public int read(byte[] into, int from, int length) throws IOException {
        int read = body.read(into, from, length);
        while (read > 0 && !isKept(read)) {
            read = body.read(into, from, length);
        }
        return read;
    }

    private boolean isKept(int bytes) {
        long kept = MOST > 0 ? Math.max(0, Math.min(bytes, MOST - all)) : bytes;
        all += bytes;
        if (!isCut && kept > 0) {
            held += kept;
            if (HELD.addAndGet(kept) > AT_MOST) {
                // What users held that have ended since.
                OF_USERS.keySet().stream().filter(user -> !user.isAlive()).forEach(Body::release);
                isCut = HELD.get() > AT_MOST;
            }
        }
        return !isCut;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public void close() throws IOException {
        body.close();
        body = InputStream.nullInputStream();
    }
}
