package framestorm;

import groovy.json.JsonOutput;
import java.net.InetAddress;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpHost;
import org.apache.http.HttpInetConnection;
import org.apache.http.client.protocol.HttpClientContext;
import org.apache.http.conn.routing.RouteInfo;
import org.apache.http.conn.util.InetAddressUtils;
import org.apache.http.protocol.HttpContext;
import org.apache.jmeter.testelement.TestStateListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts the requests to each address of a name, which no sample has. HttpClient tries the addresses of a name in their order
 * and keeps to the first that takes a connection. Says at the end of the test in JMeter's log what it counted, for
 * framestorm/results/jmeter_log.py.
 */
final class Peers implements TestStateListener {
    private static final Logger LOG = LoggerFactory.getLogger(Peers.class);
    private static final int MOST = 1000;
    private static final Map<Map.Entry<HttpHost, InetAddress>, LongAdder> COUNTS = new ConcurrentHashMap<>();

    /** Count the requests of a test; `listeners` are those that hear of its end. */
    static void listen(Collection<Object> listeners) {
        listeners.add(new Peers());
    }

    /** A request is about to be sent. */
    static void count(HttpClientConnection connection, HttpContext context) {
        Object route = context.getAttribute(HttpClientContext.HTTP_ROUTE);
        if (!(route instanceof RouteInfo) || !(connection instanceof HttpInetConnection) || !connection.isOpen()) {
            return;
        }
        HttpHost proxy = ((RouteInfo) route).getProxyHost();
        HttpHost host = proxy == null ? ((RouteInfo) route).getTargetHost() : proxy;
        InetAddress address = ((HttpInetConnection) connection).getRemoteAddress();
        if (address == null) {
            return;
        }
        Map.Entry<HttpHost, InetAddress> peer = new SimpleImmutableEntry<>(host, address);
        LongAdder counted = COUNTS.get(peer);
        if (counted == null && COUNTS.size() < MOST) {
            counted = COUNTS.computeIfAbsent(peer, each -> new LongAdder());
        }
        if (counted != null) {
            counted.increment();
        }
    }

    @Override
    public void testStarted() {
        COUNTS.clear(); // those of the warm-up
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded() {
        COUNTS.forEach((peer, n) -> {
            HttpHost host = peer.getKey();
            if (!InetAddressUtils.isIPv4Address(host.getHostName()) && !host.getHostName().contains(":")) {
                String name = host.getHostName() + ":" + (host.getPort() > 0 ? host.getPort() : defaultPort(host));
                LOG.info("{\"type\":\"requests\",\"name\":{},\"address\":{},\"n\":{}}", JsonOutput.toJson(name),
                    JsonOutput.toJson(peer.getValue().getHostAddress().replaceFirst("%.*", "")), n);
            }
        });
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }

    private static int defaultPort(HttpHost host) {
        return "https".equalsIgnoreCase(host.getSchemeName()) ? 443 : 80;
    }
}
