package framestorm;

import java.io.IOException;
import java.net.ProtocolException;
import org.apache.http.HttpException;
import org.apache.http.HttpResponse;
import org.apache.http.config.MessageConstraints;
import org.apache.http.impl.conn.DefaultHttpResponseParser;
import org.apache.http.io.SessionInputBuffer;
import org.apache.http.util.CharArrayBuffer;

/** Reads the head of an answer, and knows the first frame of a server that speaks HTTP/2 only, which HttpClient 4 does not. */
final class HeadParser extends DefaultHttpResponseParser {
    private static final int HEAD_CHARACTERS = 9;
    private static final int SETTINGS = 4;
    private static final int SETTING_BYTES = 6;
    private boolean isHttp2;

    HeadParser(SessionInputBuffer buffer, MessageConstraints limits) {
        super(buffer, limits);
    }

    @Override
    protected HttpResponse parseHead(SessionInputBuffer buffer) throws IOException, HttpException {
        try {
            return super.parseHead(buffer);
        } catch (HttpException error) {
            if (isHttp2) { // JMeter shows no text of an HttpException
                throw new ProtocolException("the server speaks HTTP/2 only");
            }
            throw error;
        }
    }

    /** Asked about a line that is no status line. */
    @Override
    protected boolean reject(CharArrayBuffer line, int before) {
        isHttp2 = isSettings(line);
        return isHttp2 || super.reject(line, before);
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
}
