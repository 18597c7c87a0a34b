package framestorm;

import org.apache.http.HttpResponseInterceptor;
import org.apache.http.client.entity.InputStreamFactory;
import org.apache.http.config.ConnectionConfig;
import org.apache.http.config.Lookup;
import org.apache.http.config.MessageConstraints;
import org.apache.http.conn.HttpConnectionFactory;
import org.apache.http.conn.ManagedHttpClientConnection;
import org.apache.http.conn.routing.HttpRoute;
import org.apache.http.conn.socket.ConnectionSocketFactory;
import org.apache.http.conn.socket.LayeredConnectionSocketFactory;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClientBuilder;
import org.apache.http.impl.conn.ManagedHttpClientConnectionFactory;

/**
 * Gives the HttpClient of JMeter's HTTP sampler what the kit adds to it, each by HttpClient's own setting for that. JMeter
 * has no setting that reaches these, so Patch.java has HTTPHC4Impl call this class where it makes a client; no other
 * HttpClient in JMeter, such as that of a script or a listener, is changed.
 */
public final class KitHttpClient {
    private static final int LINE_CHARACTERS = 65536;
    private static final int HEADERS = 200;
    // Without limits, a head without end fills the memory.
    private static final ConnectionConfig LIMITS = ConnectionConfig.custom().setMessageConstraints(
        MessageConstraints.custom().setMaxLineLength(LINE_CHARACTERS).setMaxHeaderCount(HEADERS).build()).build();

    /** In place of HttpClient's own factory, which JMeter takes, and with its logging of what is on the wire. */
    public static final HttpConnectionFactory<HttpRoute, ManagedHttpClientConnection> CONNECTIONS =
        new ManagedHttpClientConnectionFactory(HeadParser::new) {
            @Override
            public ManagedHttpClientConnection create(HttpRoute route, ConnectionConfig none) {
                return super.create(route, LIMITS);
            }
        };

    /** Build a client, as JMeter has set it up, with the kit's executor, redirects and content codings. */
    public static CloseableHttpClient build(HttpClientBuilder builder) {
        return builder.setRequestExecutor(new RequestExecutor()).setRedirectStrategy(new Redirects())
            .addInterceptorFirst((HttpResponseInterceptor) (response, context) -> Coding.checkCount(response))
            .addInterceptorLast((HttpResponseInterceptor) (response, context) -> Coding.keepError(response))
            .build();
    }

    /** JMeter's factories of sockets by scheme, where those of TLS know the name of a Host header. */
    public static Lookup<ConnectionSocketFactory> sockets(Lookup<ConnectionSocketFactory> sockets) {
        return scheme -> {
            ConnectionSocketFactory each = sockets.lookup(scheme);
            return each instanceof LayeredConnectionSocketFactory
                ? new TlsSockets((LayeredConnectionSocketFactory) each) : each;
        };
    }

    /** JMeter's decoders by content coding, for which an answer of 0 bytes is empty. */
    public static Lookup<InputStreamFactory> decoders(Lookup<InputStreamFactory> decoders) {
        return coding -> {
            InputStreamFactory each = decoders.lookup(coding);
            return each == null ? null : body -> Coding.decoded(each, body);
        };
    }

    private KitHttpClient() {
    }
}
