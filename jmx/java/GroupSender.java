package framestorm;

import java.io.ObjectStreamException;
import java.io.Serializable;
import java.net.ConnectException;
import java.rmi.MarshalException;
import java.rmi.RemoteException;
import java.rmi.ServerException;
import java.rmi.UnmarshalException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.jmeter.samplers.AbstractSampleSender;
import org.apache.jmeter.samplers.RemoteSampleListener;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jorphan.util.JMeterError;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * JMeter's way of sending samples to a controller, by the property `mode`: a thread goes on when the controller has its
 * sample, as in the mode Standard, so that a slave that is lost takes no finished sample with it. But samples that are
 * ready while others are on their way go together in one call.
 */
public final class GroupSender extends AbstractSampleSender implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(GroupSender.class);
    private final RemoteSampleListener listener;
    private final transient Lock call = new ReentrantLock(); // one at a time
    private transient Group open; // until its call begins

    /** Called by JMeter's controller, which sends this to the slaves. */
    public GroupSender(RemoteSampleListener listener) {
        this.listener = listener;
    }

    @Override
    public void sampleOccurred(SampleEvent event) {
        Group group;
        boolean isFirst;
        synchronized (this) {
            isFirst = open == null;
            if (isFirst) {
                open = new Group();
            }
            group = open;
            group.events.add(event);
        }
        if (isFirst) {
            call.lock();
            try {
                synchronized (this) {
                    open = null;
                }
                group.send(listener);
            } finally {
                call.unlock();
            }
        }
        group.await();
    }

    @Override
    public void testEnded(String host) {
        LOG.info("Test Ended on {}", host);
        try {
            listener.testEnded(host);
        } catch (RemoteException error) {
            LOG.warn("testEnded(host)", error);
        }
    }

    /** A slave makes its own of what the controller sent. */
    private Object readResolve() throws ObjectStreamException {
        return new GroupSender(listener);
    }

    /** The samples of one call. */
    private static final class Group {
        private final List<SampleEvent> events = new ArrayList<>();
        private final CompletableFuture<Void> sent = new CompletableFuture<>();

        private void send(RemoteSampleListener listener) {
            try {
                send(listener, events);
            } finally {
                sent.complete(null);
            }
        }

        private void send(RemoteSampleListener listener, List<SampleEvent> some) {
            try {
                listener.processBatch(some);
            } catch (RemoteException error) {
                if (some.size() > 1 && isUnread(error)) {
                    some.forEach(each -> send(listener, Collections.singletonList(each)));
                } else if (error.getCause() instanceof ConnectException) {
                    sent.completeExceptionally(new JMeterError("Could not return sample", error));
                } else {
                    LOG.error("sampleOccurred", error);
                }
            }
        }

        /** One sample that cannot be sent, or is of a class that the controller lacks, keeps all from being read. */
        private static boolean isUnread(RemoteException error) {
            return error instanceof MarshalException
                || error instanceof ServerException && error.getCause() instanceof UnmarshalException;
        }

        /** Also a thread that is interrupted waits: its sample is on the way. */
        private void await() {
            try {
                sent.join();
            } catch (CompletionException error) {
                throw (JMeterError) error.getCause();
            }
        }
    }
}
