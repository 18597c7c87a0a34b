package framestorm;

import java.io.File;
import java.rmi.NotBoundException;
import java.rmi.RemoteException;
import org.apache.jmeter.engine.ClientJMeterEngine;
import org.apache.jmeter.engine.JMeterEngine;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Obeys files named as JMeter's stop messages, in the folder that the property framestorm.stop_files names. Any account
 * of the machine could send those messages to JMeter's port, which is closed by its own property, and with them the order to
 * write a heap dump with its secrets. Into this folder only the user of the run can write.
 */
final class StopFiles implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(StopFiles.class);
    private static final String FOLDER = "framestorm.stop_files";
    private static final String SERVERS = "framestorm.servers";
    private static final long EVERY_MS = 100;
    private final String folder = JMeterUtils.getProperty(FOLDER);
    private final Thread before;
    private final Stop stop;

    private interface Stop {
        void stop(boolean isNow);
    }

    /** Watch for this machine's own engine, if there is such a folder. */
    static void watch(JMeterEngine engine) {
        start(new StopFiles(null, engine::stopTest));
    }

    /** Watch for the servers that the property framestorm.servers names, if this is their controller. */
    static void watchRemote() {
        String servers = JMeterUtils.getProperty(SERVERS);
        if (servers != null) {
            // This thread tells one server after the other to start, and ends: one that is not yet told cannot stop.
            start(new StopFiles(Thread.currentThread(), isNow -> {
                for (String each : servers.split(",")) {
                    stop(each, isNow);
                }
            }));
        }
    }

    private static void start(StopFiles files) {
        if (files.folder != null) {
            Thread thread = new Thread(files, "stop files");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void stop(String server, boolean isNow) {
        try {
            new ClientJMeterEngine(server).stopTest(isNow);
        } catch (NotBoundException | RemoteException error) {
            LOG.error("{} cannot be told to stop", server, error);
        }
    }

    private StopFiles(Thread before, Stop stop) {
        this.before = before;
        this.stop = stop;
    }

    @Override
    public void run() {
        try {
            if (before != null) {
                before.join();
            }
            while (true) {
                obey("Shutdown", false);
                obey("StopTestNow", true);
                Thread.sleep(EVERY_MS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** The file is removed, so that it is obeyed once. */
    private void obey(String order, boolean isNow) {
        if (new File(folder, order).delete()) {
            LOG.info("{} is asked for by a file", order);
            stop.stop(isNow);
        }
    }
}
