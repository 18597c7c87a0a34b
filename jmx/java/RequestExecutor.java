package framestorm;

import java.io.IOException;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpConnectionMetrics;
import org.apache.http.HttpException;
import org.apache.http.HttpRequest;
import org.apache.http.HttpResponse;
import org.apache.http.protocol.HttpContext;
import org.apache.http.protocol.HttpCoreContext;
import org.apache.http.protocol.HttpProcessor;
import org.apache.http.protocol.HttpRequestExecutor;

/**
 * Sends a request and reads its answer as HttpClient does, and also reads one that comes before the whole body is sent. Counts
 * requests for Peers, tells IdleConnection of them, and notes the bytes of a sample, as the executor of HTTPHC4Impl does.
 */
final class RequestExecutor extends HttpRequestExecutor {
    // Where HTTPHC4Impl looks for the bytes of a sample.
    private static final String SENT_BYTES = "__jmeter.S_B__";
    private static final String METRICS = "__jmeter.M__";

    /** Called for the CONNECT to a proxy: the request that the tunnel is for stays that of the context, as for TlsSockets. */
    @Override
    public void preProcess(HttpRequest connect, HttpProcessor processor, HttpContext context)
            throws IOException, HttpException {
        Object request = context.getAttribute(HttpCoreContext.HTTP_REQUEST);
        super.preProcess(connect, processor, context);
        context.setAttribute(HttpCoreContext.HTTP_REQUEST, request);
    }

    @Override
    protected HttpResponse doSendRequest(HttpRequest request, HttpClientConnection connection, HttpContext context)
            throws IOException, HttpException {
        IdleConnection.begin(connection);
        Peers.count(connection, context);
        HttpConnectionMetrics metrics = connection.getMetrics();
        metrics.reset();
        EarlyAnswer early = EarlyAnswer.of(request, connection);
        HttpResponse answer = null;
        try {
            answer = super.doSendRequest(early == null ? request : early.request(), connection, context);
        } catch (IOException error) {
            if (early == null || !early.mayExplain(error)) {
                throw IdleConnection.explained(connection, error);
            }
        } finally {
            if (early != null) {
                early.end();
            }
        }
        context.setAttribute(SENT_BYTES, metrics.getSentBytesCount());
        context.setAttribute(METRICS, metrics);
        if (early == null || !early.isRead()) {
            metrics.reset();
        }
        if (early != null && early.isExpected()) {
            answer = early.receive();
            IdleConnection.answered(connection);
        }
        return answer;
    }

    @Override
    protected HttpResponse doReceiveResponse(HttpRequest request, HttpClientConnection connection, HttpContext context)
            throws IOException, HttpException {
        try {
            HttpResponse answer = super.doReceiveResponse(request, connection, context);
            IdleConnection.answered(connection);
            return answer;
        } catch (IOException error) {
            throw IdleConnection.explained(connection, error);
        }
    }
}
