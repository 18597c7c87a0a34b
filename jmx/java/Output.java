package framestorm;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.jmeter.util.JMeterUtils;

/**
 * What a program prints that an OS Process Sampler runs. So much of it is kept as the property framestorm.output_bytes
 * says, then a line that says so; the rest is read and dropped. Otherwise one that prints without end would take all
 * memory, and with it the run.
 */
public final class Output {
    private static final long AT_MOST = JMeterUtils.getPropDefault("framestorm.output_bytes", Long.MAX_VALUE);
    private static final String CUT = "\noutput beyond " + AT_MOST + " bytes was dropped (framestorm.output_bytes)\n";

    /** Called by JMeter for each stream of a program. Where the property is not set, all of it is kept. */
    public static long copy(InputStream from, OutputStream to) throws IOException {
        byte[] buffer = new byte[8192];
        long kept = 0;
        boolean isCut = false;
        for (int read = from.read(buffer); read >= 0; read = from.read(buffer)) {
            int fits = (int) Math.min(read, AT_MOST - kept);
            to.write(buffer, 0, fits);
            kept += fits;
            if (fits < read && !isCut) {
                isCut = true;
                to.write(CUT.getBytes(StandardCharsets.US_ASCII));
            }
        }
        return kept;
    }

    private Output() { }
}
