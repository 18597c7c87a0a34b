package framestorm;

import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The state of a script file, looked up at most once a second; JMeter itself asks for it at each run of the script. */
public final class ScriptFile {
    private static final long KNOWN_FOR_NS = TimeUnit.SECONDS.toNanos(1);
    private static final Map<File, ScriptFile> KNOWN = new ConcurrentHashMap<>();
    private final long atNs = System.nanoTime();
    private final boolean exists;
    private final boolean canRead;
    private final long lastModified;

    /** Called by JMeter instead of methods of the file itself. */
    public static ScriptFile of(File file) {
        ScriptFile known = KNOWN.get(file);
        if (known == null || System.nanoTime() - known.atNs > KNOWN_FOR_NS) {
            known = new ScriptFile(file);
            KNOWN.put(file, known);
        }
        return known;
    }

    private ScriptFile(File file) {
        exists = file.exists();
        canRead = file.canRead();
        lastModified = file.lastModified();
    }

    public boolean exists() {
        return exists;
    }

    public boolean canRead() {
        return canRead;
    }

    public long lastModified() {
        return lastModified;
    }
}
