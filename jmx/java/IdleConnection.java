package framestorm;

import java.io.IOException;
import java.net.SocketException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import org.apache.http.HttpClientConnection;
import org.apache.http.NoHttpResponseException;
import org.apache.http.protocol.HttpContext;

/**
 * Tells a connection that the server had closed while it was idle from one that broke under a request. Both look the same
 * to JMeter, which keeps a connection for the next request and does not know that the server has closed it.
 */
final class IdleConnection {
    private static final String BEGAN = "framestorm.began_ns";
    private static final String ANSWERED = "framestorm.answered_ns";
    private static final long IDLE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    // A server that had closed the connection answers nothing, at once; one that breaks it off has to read the request.
    private static final long AT_ONCE_NS = TimeUnit.MILLISECONDS.toNanos(50);

    /** A request is about to be sent. */
    static void begin(HttpClientConnection connection) {
        note(connection, BEGAN);
    }

    /** The head of its answer has been read. */
    static void answered(HttpClientConnection connection) {
        note(connection, ANSWERED);
    }

    /** The error, with what explains it if the connection had been idle. */
    static IOException explained(HttpClientConnection connection, IOException error) {
        return explained(connection, error, null);
    }

    /** The error, with what explains it: that the connection had been idle, or else the other reason. */
    static IOException explained(HttpClientConnection connection, IOException error, String otherwise) {
        long nowNs = System.nanoTime();
        Long beganNs = noted(connection, BEGAN);
        Long answeredNs = noted(connection, ANSWERED);
        boolean isBroken = error instanceof NoHttpResponseException || error instanceof SSLException
            || error instanceof SocketException && !String.valueOf(error.getMessage()).endsWith("ocket closed");
        boolean isIdle = beganNs != null && answeredNs != null
            && beganNs - answeredNs >= IDLE_NS && nowNs - beganNs < AT_ONCE_NS;
        if (!isBroken || !isIdle && otherwise == null) {
            return error;
        }
        String why = !isIdle ? otherwise : String.format(Locale.ROOT,
            "the server had closed this connection, idle for %.1f s, before the request was sent on it",
            (beganNs - answeredNs) / 1e9);
        // HttpClient would replace the text of a NoHttpResponseException.
        return explained(new SocketException(error.getMessage() + "; " + why), error);
    }

    private static IOException explained(IOException explained, IOException error) {
        explained.initCause(error);
        return explained;
    }

    private static void note(HttpClientConnection connection, String name) {
        if (connection instanceof HttpContext && connection.isOpen()) {
            ((HttpContext) connection).setAttribute(name, System.nanoTime());
        }
    }

    private static Long noted(HttpClientConnection connection, String name) {
        return connection instanceof HttpContext ? (Long) ((HttpContext) connection).getAttribute(name) : null;
    }

    private IdleConnection() {
    }
}
