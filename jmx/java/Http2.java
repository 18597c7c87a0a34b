package framestorm;

import java.net.ProtocolException;
import org.apache.http.util.CharArrayBuffer;

/** Knows the first frame of a server that speaks HTTP/2 only, which JMeter's HTTP sampler does not. */
public final class Http2 {
    private static final int HEAD_CHARACTERS = 9;
    private static final int SETTINGS = 4;
    private static final int SETTING_BYTES = 6;

    /** Called by HttpClient with a line that is no status line; the protocol's own exception would have no text in JMeter. */
    public static void refuse(CharArrayBuffer line) throws ProtocolException {
        if (isSettings(line)) {
            throw new ProtocolException("the server speaks HTTP/2 only");
        }
    }

    /** Length (a multiple of a setting's), type, flags, and the stream 0: https://www.rfc-editor.org/rfc/rfc9113#section-6.5 */
    private static boolean isSettings(CharArrayBuffer line) {
        if (line.length() < HEAD_CHARACTERS || line.charAt(3) != SETTINGS) {
            return false;
        }
        int bytes = line.charAt(0) << 16 | line.charAt(1) << 8 | line.charAt(2);
        int stream = line.charAt(5) | line.charAt(6) | line.charAt(7) | line.charAt(8);
        return bytes % SETTING_BYTES == 0 && stream == 0;
    }

    private Http2() {
    }
}
