package framestorm;

import java.io.File;
import java.util.List;
import org.apache.jmeter.engine.JMeterEngine;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Obeys files named as JMeter's stop messages, in the folder that the property framestorm.stop_files names. Any account
 * of the machine could send those messages to JMeter's port, and with them the order to write a heap dump with its
 * secrets. Into this folder only the user of the run can write.
 */
public final class StopFiles implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(StopFiles.class);
    private static final long EVERY_MS = 100;
    private final String folder;
    private final List<JMeterEngine> engines;

    /** Returns whether there is such a folder. If so, JMeter opens no port. */
    public static boolean watch(List<JMeterEngine> engines) {
        String folder = JMeterUtils.getProperty("framestorm.stop_files");
        if (folder == null) {
            return false;
        }
        Thread thread = new Thread(new StopFiles(folder, engines), "stop files");
        thread.setDaemon(true);
        thread.start();
        return true;
    }

    private StopFiles(String folder, List<JMeterEngine> engines) {
        this.folder = folder;
        this.engines = engines;
    }

    @Override
    public void run() {
        try {
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
            engines.forEach(engine -> engine.stopTest(isNow));
        }
    }
}
