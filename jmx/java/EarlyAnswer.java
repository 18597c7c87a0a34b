package framestorm;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Proxy;
import java.net.Socket;
import java.net.SocketException;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpConnectionMetrics;
import org.apache.http.HttpEntity;
import org.apache.http.HttpEntityEnclosingRequest;
import org.apache.http.HttpException;
import org.apache.http.HttpRequest;
import org.apache.http.HttpResponse;
import org.apache.http.conn.ManagedHttpClientConnection;
import org.apache.http.entity.ByteArrayEntity;
import org.apache.http.entity.HttpEntityWrapper;
import org.apache.http.message.BasicHttpEntityEnclosingRequest;
import org.apache.http.protocol.HttpContext;
import org.apache.http.protocol.HttpCoreContext;

/**
 * The answer of a server that does not wait for the whole body, such as a 413 for one that is too large. HttpClient 4
 * writes the whole body before it reads: if the server closes meanwhile, the answer stays unread in the socket, and if it
 * neither reads nor closes, the request never ends. Called by HttpClient's request executor in place of its own methods.
 */
public final class EarlyAnswer {
    private static final String NAME = "framestorm.early_answer";
    private static final String METRICS = "__jmeter.M__"; // where HTTPHC4Impl looks for the bytes received
    private static final int MOST_BYTES = 1 << 20;
    private static final long STALLED_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_EVERY_MS = 50;
    private static final Set<EarlyAnswer> UNDER_WAY = ConcurrentHashMap.newKeySet();
    private static Thread watch;

    private final HttpClientConnection connection;
    private final long bytes;
    private long sentBytes;
    private volatile long writingSinceNs; // 0: not in a call that may wait
    private boolean isSent;
    private IOException failure;
    private HttpResponse head; // read while the body was still to be sent
    private long headBytes;

    /** Send a request's body. A failure is kept until the answer has been looked for. */
    public static void send(HttpClientConnection connection, HttpEntityEnclosingRequest request)
            throws IOException, HttpException {
        boolean isOfPool = connection instanceof ManagedHttpClientConnection && connection instanceof HttpContext;
        if (!isOfPool || request.getEntity() == null) {
            connection.sendRequestEntity(request);
            return;
        }
        EarlyAnswer early = new EarlyAnswer(connection, request.getEntity());
        // The connection takes the length of the body from the headers.
        HttpEntityEnclosingRequest watched = new BasicHttpEntityEnclosingRequest(request.getRequestLine());
        watched.setHeaders(request.getAllHeaders());
        watched.setEntity(early.new Watched(request.getEntity()));
        UNDER_WAY.add(early);
        startWatch();
        try {
            connection.sendRequestEntity(watched);
            early.flush();
        } catch (SocketException | SSLException error) {
            if (!connection.isOpen() && early.head == null) { // it was closed here: a time-out, or the run is stopped
                throw error;
            }
            early.failure = error;
        } finally {
            UNDER_WAY.remove(early);
            early.end();
        }
        ((HttpContext) connection).setAttribute(NAME, early);
    }

    /** Whether the body could not be sent, so that there is nothing to flush. */
    public static boolean isKept(HttpClientConnection connection) {
        return connection instanceof HttpContext && ((HttpContext) connection).getAttribute(NAME) != null;
    }

    /** The answer to a body that could not be sent, or that has come while it was sent; null of any other. */
    public static HttpResponse receive(HttpRequest request, HttpClientConnection connection, HttpContext context)
            throws IOException, HttpException {
        Object kept = connection instanceof HttpContext ? ((HttpContext) connection).removeAttribute(NAME) : null;
        EarlyAnswer early = (EarlyAnswer) kept;
        if (early == null || early.failure == null && early.head == null) {
            return null;
        }
        if (early.headBytes > 0) {
            addToMetrics(context, early.headBytes);
        }
        return early.failure == null ? early.received(request) : early.last(request, context);
    }

    private EarlyAnswer(HttpClientConnection connection, HttpEntity body) {
        this.connection = connection;
        this.bytes = body.getContentLength();
    }

    private synchronized void end() {
        isSent = true;
    }

    private void flush() throws IOException {
        writingSinceNs = System.nanoTime();
        try {
            connection.flush();
        } finally {
            writingSinceNs = 0;
        }
    }

    private HttpResponse received(HttpRequest request) throws IOException, HttpException {
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
    private HttpResponse last(HttpRequest request, HttpContext context) throws IOException, HttpException {
        try {
            HttpResponse response = received(request);
            HttpEntity entity = response.getEntity();
            if (entity != null) {
                ByteArrayEntity whole = new ByteArrayEntity(beginning(entity));
                whole.setContentType(entity.getContentType());
                whole.setContentEncoding(entity.getContentEncoding());
                response.setEntity(whole);
            }
            return response;
        } catch (IOException | HttpException none) { // a reset has destroyed it, or there was none
            context.setAttribute(HttpCoreContext.HTTP_REQ_SENT, Boolean.FALSE); // for those who let JMeter retry
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
        headBytes = connection.getMetrics().getReceivedBytesCount();
        if (response.getStatusLine().getStatusCode() >= 200) {
            head = response;
        }
        if (response.getStatusLine().getStatusCode() >= 400) {
            Socket socket = ((ManagedHttpClientConnection) connection).getSocket();
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

    /** JMeter sets the count of bytes to 0 when a request has been sent. */
    private static void addToMetrics(HttpContext context, long bytes) {
        Object metrics = context.getAttribute(METRICS);
        if (metrics != null) {
            context.setAttribute(METRICS, Proxy.newProxyInstance(EarlyAnswer.class.getClassLoader(),
                new Class<?>[] {HttpConnectionMetrics.class}, (proxy, method, arguments) -> {
                    Object value = method.invoke(metrics, arguments);
                    return "getReceivedBytesCount".equals(method.getName()) ? (Long) value + bytes : value;
                }));
        }
    }

    /** The body, which counts what of it has been sent. */
    private final class Watched extends HttpEntityWrapper {
        private Watched(HttpEntity body) {
            super(body);
        }

        @Override
        public void writeTo(OutputStream to) throws IOException {
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
        }
    }
}
