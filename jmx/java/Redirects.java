package framestorm;

import java.net.URI;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.http.Header;
import org.apache.http.HttpHost;
import org.apache.http.HttpRequest;
import org.apache.http.HttpResponse;
import org.apache.http.ProtocolException;
import org.apache.http.client.methods.HttpUriRequest;
import org.apache.http.client.utils.URIUtils;
import org.apache.http.impl.client.LaxRedirectStrategy;
import org.apache.http.protocol.HttpContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.JMeterVariables;

/**
 * Keeps secrets in headers from the address that a redirect leads to, if that is another one, as curl and browsers do.
 * It does so for requests that plan/Requests.java prepared, whose secrets are known; JMeter sends all headers on.
 * A Host header of one's own is no other address's, in any plan.
 */
final class Redirects extends LaxRedirectStrategy {
    private static final Set<String> SECRET = Set.of("authorization", "cookie", "proxy-authorization");

    @Override
    public HttpUriRequest getRedirect(HttpRequest request, HttpResponse response, HttpContext context)
            throws ProtocolException {
        HttpUriRequest next = super.getRedirect(request, response, context);
        setHeaders((HttpUriRequest) request, next);
        return next;
    }

    /** Give the request that follows a redirect those headers of the request before it that it may have. */
    static void setHeaders(HttpUriRequest before, HttpUriRequest next) {
        JMeterVariables variables = JMeterContextService.getContext().getVariables();
        Object secrets = variables == null ? null : variables.getObject("secrets");
        if (secrets != null || before.containsHeader("Host")) {
            boolean isSame = Objects.equals(origin(before.getURI()), origin(next.getURI()));
            next.setHeaders(Arrays.stream(before.getAllHeaders())
                .filter(each -> isSame || !isOfAddress(each, (Map<?, ?>) secrets)).toArray(Header[]::new));
        }
    }

    private static boolean isOfAddress(Header header, Map<?, ?> secrets) {
        return "host".equalsIgnoreCase(header.getName()) || secrets != null && isSecret(header, secrets);
    }

    private static boolean isSecret(Header header, Map<?, ?> secrets) {
        return SECRET.contains(header.getName().toLowerCase(Locale.ROOT))
            || secrets.keySet().stream().anyMatch(each -> header.getValue().contains(each.toString()));
    }

    /** Scheme, host and port, or null without a host. Java's own classes do not know one with an underscore in its name. */
    private static HttpHost origin(URI uri) {
        HttpHost host = URIUtils.extractHost(uri);
        boolean isDefault = host != null && host.getPort() == ("https".equals(host.getSchemeName()) ? 443 : 80);
        return isDefault ? new HttpHost(host.getHostName(), -1, host.getSchemeName()) : host;
    }
}
