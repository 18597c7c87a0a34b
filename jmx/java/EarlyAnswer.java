package framestorm;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketException;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpEntity;
import org.apache.http.HttpEntityEnclosingRequest;
import org.apache.http.HttpException;
import org.apache.http.HttpRequest;
import org.apache.http.HttpResponse;
import org.apache.http.conn.ManagedHttpClientConnection;
import org.apache.http.entity.ByteArrayEntity;
import org.apache.http.entity.HttpEntityWrapper;
import org.apache.http.message.BasicHttpEntityEnclosingRequest;

/**
 * The answer of a server that does not wait for the whole body, such as a 413 for one that is too large. HttpClient 4
 * writes the whole body before it reads: if the server closes meanwhile, the answer stays unread in the socket, and if it
 * neither reads nor closes, the request never ends.
 */
final class EarlyAnswer {
    private static final int MOST_BYTES = 1 << 20;
    private static final long STALLED_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_EVERY_MS = 50;
    private static final Set<EarlyAnswer> UNDER_WAY = ConcurrentHashMap.newKeySet();
    private static Thread watch;

    private final ManagedHttpClientConnection connection;
    private final HttpEntityEnclosingRequest request;
    private boolean isBegun;
    private long sentBytes;
    private volatile long writingSinceNs; // 0: not in a call that may wait
    private boolean isSent;
    private IOException failure;
    private volatile HttpResponse head; // read while the body was still to be sent

    /** What may be answered before the whole body of this request is sent; null if it has none. */
    static EarlyAnswer of(HttpRequest request, HttpClientConnection connection) {
        boolean hasBody = request instanceof HttpEntityEnclosingRequest
            && ((HttpEntityEnclosingRequest) request).getEntity() != null;
        // The connections of a pool are such.
        return hasBody
            ? new EarlyAnswer((HttpEntityEnclosingRequest) request, (ManagedHttpClientConnection) connection) : null;
    }

    private EarlyAnswer(HttpEntityEnclosingRequest request, ManagedHttpClientConnection connection) {
        this.request = request;
        this.connection = connection;
    }

    /** The request to send: the same, with a body that is watched. */
    HttpEntityEnclosingRequest request() {
        // The connection takes the length of the body from the headers.
        HttpEntityEnclosingRequest watched = new BasicHttpEntityEnclosingRequest(request.getRequestLine());
        watched.setHeaders(request.getAllHeaders());
        watched.setEntity(new Watched(request.getEntity()));
        return watched;
    }

    /** Whether an answer may explain why the body could not be sent: the error is kept until one has been looked for. */
    boolean mayExplain(IOException error) {
        boolean isOfConnection = error instanceof SocketException || error instanceof SSLException;
        boolean isClosedHere = !connection.isOpen() && head == null; // a time-out, or the run is stopped
        failure = isBegun && isOfConnection && !isClosedHere ? error : null;
        return failure != null;
    }

    /** No more is sent. */
    void end() {
        UNDER_WAY.remove(this);
        synchronized (this) {
            isSent = true;
        }
    }

    /** Whether its head was read while the body was sent. */
    boolean isRead() {
        return head != null;
    }

    /** Whether it has to be read now. */
    boolean isExpected() {
        return head != null || failure != null;
    }

    /** Read it, or throw why the body could not be sent. */
    HttpResponse receive() throws IOException, HttpException {
        return failure == null ? received() : last();
    }

    private HttpResponse received() throws IOException, HttpException {
        HttpResponse response = head;
        while (response == null || response.getStatusLine().getStatusCode() < 200) {
            response = connection.receiveResponseHeader();
        }
        int status = response.getStatusLine().getStatusCode();
        boolean hasBody = !"HEAD".equalsIgnoreCase(request.getRequestLine().getMethod()) && status != 204 && status != 304;
        if (hasBody && connection.isOpen()) {
            connection.receiveResponseEntity(response);
        }
        return response;
    }

    /** The last answer of this connection, which is closed: the server would take the next request for the body's rest. */
    private HttpResponse last() throws IOException {
        try {
            HttpResponse response = received();
            HttpEntity entity = response.getEntity();
            if (entity != null) {
                ByteArrayEntity whole = new ByteArrayEntity(beginning(entity));
                whole.setContentType(entity.getContentType());
                whole.setContentEncoding(entity.getContentEncoding());
                response.setEntity(whole);
            }
            return response;
        } catch (IOException | HttpException none) { // a reset has destroyed it, or there was none
            throw IdleConnection.explained(connection, failure, progress());
        } finally {
            connection.shutdown(); // to close it in order would send what is left of the body
        }
    }

    /** As much of the text as came before the connection broke. */
    private byte[] beginning(HttpEntity entity) {
        byte[] text = new byte[MOST_BYTES];
        int read = 0;
        try {
            int more = entity.getContent().read(text, 0, MOST_BYTES);
            while (more > 0) {
                read += more;
                more = entity.getContent().read(text, read, MOST_BYTES - read);
            }
        } catch (IOException ignored) { // its status is what counts
        }
        return Arrays.copyOf(text, read);
    }

    private String progress() {
        long bytes = request.getEntity().getContentLength();
        return "the server closed while the body was sent (" + sentBytes + " of "
            + (bytes < 0 ? "unknown" : String.valueOf(bytes)) + " bytes): a size limit?";
    }

    /** Where the server no longer reads, the answer is read here; one that refuses the body ends its sending. */
    private synchronized void look() throws IOException, HttpException {
        long sinceNs = writingSinceNs;
        boolean isStalled = !isSent && sinceNs != 0 && System.nanoTime() - sinceNs > STALLED_NS;
        if (!isStalled || head != null || !connection.isOpen() || !connection.isResponseAvailable(1)) {
            return;
        }
        HttpResponse response = connection.receiveResponseHeader();
        if (response.getStatusLine().getStatusCode() >= 200) {
            head = response;
        }
        if (response.getStatusLine().getStatusCode() >= 400) {
            Socket socket = connection.getSocket();
            if (socket instanceof SSLSocket) { // it would wait for the sender to end the stream in order
                connection.shutdown();
            } else {
                socket.shutdownOutput();
            }
        }
    }

    private static synchronized void startWatch() {
        if (watch == null) {
            watch = new Thread(EarlyAnswer::watch, "early answers");
            watch.setDaemon(true);
            watch.start();
        }
    }

    private static void watch() {
        try {
            while (true) {
                for (EarlyAnswer each : UNDER_WAY) {
                    try {
                        each.look();
                    } catch (IOException | HttpException | RuntimeException ignored) { // the sender meets it too
                    }
                }
                Thread.sleep(LOOK_EVERY_MS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** The body, which counts what of it has been sent. */
    private final class Watched extends HttpEntityWrapper {
        private Watched(HttpEntity body) {
            super(body);
        }

        @Override
        public void writeTo(OutputStream to) throws IOException {
            isBegun = true;
            UNDER_WAY.add(EarlyAnswer.this);
            startWatch();
            super.writeTo(new FilterOutputStream(to) {
                @Override
                public void write(byte[] from, int at, int length) throws IOException {
                    writingSinceNs = System.nanoTime();
                    try {
                        out.write(from, at, length);
                    } finally {
                        writingSinceNs = 0;
                    }
                    sentBytes += length;
                }

                @Override
                public void write(int one) throws IOException {
                    write(new byte[] {(byte) one}, 0, 1);
                }
            });
            writingSinceNs = System.nanoTime(); // what is left in buffers
        }
    }
}
