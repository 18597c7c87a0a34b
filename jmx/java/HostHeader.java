package framestorm;

import org.apache.http.Header;
import org.apache.http.HttpRequest;
import org.apache.http.protocol.HttpContext;
import org.apache.http.protocol.HttpCoreContext;

/** A Host header of one's own over https: servers that route by name look at the name in the TLS handshake, too. */
public final class HostHeader {
    /** The name to begin a handshake with: that of the request's own Host header, if it has one. */
    public static String serverName(String host, HttpContext context) {
        Object request = context == null ? null : context.getAttribute(HttpCoreContext.HTTP_REQUEST);
        Header header = request instanceof HttpRequest ? ((HttpRequest) request).getFirstHeader("Host") : null;
        return header == null ? host : header.getValue().trim().replaceFirst(":\\d*$", "");
    }

    private HostHeader() {
    }
}
