package framestorm;

import com.blazemeter.jmeter.threads.DynamicThread;
import com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup;
import java.util.Set;

/**
 * The Concurrency Thread Group of jmeter-plugins, as Elements puts it in place of the plan's: a Shutdown lets its users finish
 * what they send, and Stop interrupts them, as with JMeter's own Thread Group. The plug-in has the two the wrong way round,
 * and does not wait for its users after either, so that their last samples fail or are lost.
 */
public class Concurrency extends ConcurrencyThreadGroup {
    private static final long serialVersionUID = 1L;

    @Override
    public void stop() {
        running = false;
        end(threadStarter, threads);
    }

    @Override
    public void tellThreadsToStop() {
        super.stop();
    }

    @Override
    public void waitThreadsStopped() {
        super.waitThreadsStopped();
        while (!threads.isEmpty()) {
            joinThreadFrom(threads);
        }
    }

    /** Start nobody any more, and have each thread of a group end after its sample. */
    static void end(Thread starter, Set<DynamicThread> threads) {
        if (starter != null) {
            starter.interrupt();
        }
        threads.forEach(DynamicThread::stop);
    }
}
