package framestorm;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import org.apache.http.Header;
import org.apache.http.HttpHost;
import org.apache.http.HttpRequest;
import org.apache.http.conn.socket.LayeredConnectionSocketFactory;
import org.apache.http.protocol.HttpContext;
import org.apache.http.protocol.HttpCoreContext;

/**
 * Opens TLS connections as another factory does, and begins the handshake with the name of the request's own Host header, if
 * it has one: servers that route by name look at the name in the handshake, too.
 */
final class TlsSockets implements LayeredConnectionSocketFactory {
    private final LayeredConnectionSocketFactory sockets;

    TlsSockets(LayeredConnectionSocketFactory sockets) {
        this.sockets = sockets;
    }

    @Override
    public Socket createSocket(HttpContext context) throws IOException {
        return sockets.createSocket(context);
    }

    @Override
    public Socket connectSocket(int timeoutMs, Socket socket, HttpHost host, InetSocketAddress remote,
            InetSocketAddress local, HttpContext context) throws IOException {
        String name = serverName(host.getHostName(), context);
        // With its address, a host may have any name, as may a header.
        HttpHost named = new HttpHost(remote.getAddress(), name, host.getPort(), host.getSchemeName());
        return sockets.connectSocket(timeoutMs, socket, named, remote, local, context);
    }

    @Override
    public Socket createLayeredSocket(Socket socket, String host, int port, HttpContext context) throws IOException {
        return sockets.createLayeredSocket(socket, serverName(host, context), port, context);
    }

    private static String serverName(String host, HttpContext context) {
        Object request = context == null ? null : context.getAttribute(HttpCoreContext.HTTP_REQUEST);
        Header header = request instanceof HttpRequest ? ((HttpRequest) request).getFirstHeader("Host") : null;
        return header == null ? host : header.getValue().trim().replaceFirst(":\\d*$", "");
    }
}
