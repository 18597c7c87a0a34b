package framestorm.plan;

import java.util.regex.Pattern;

/** Why a request has no whole answer: the cause (framestorm/model/cause.py) of the exception that JMeter tells. */
final class Breakage {
    private static final Pattern LIMIT =
        Pattern.compile("Too many open files|Cannot assign requested address|Address not available");
    private static final Pattern CONNECT = Pattern.compile("HttpHostConnect|ConnectException|NoRouteToHost|UnknownHost|PortUnreachable");
    // The last is by JMeter, of a Content-Type with charset="
    private static final Pattern NOT_HTTP = Pattern.compile("ProtocolException|ZipException|EOFException|RedirectException"
        + "|MessageConstraint|MalformedChunk|StringIndexOutOfBounds");
    private static final Pattern RESET = Pattern.compile("(?i)reset|broken pipe");

    /** The cause; `closedHere` is it where the generator itself ended the request. */
    static String cause(String exception, String message, String closedHere) {
        if (LIMIT.matcher(message).find()) {
            return "generator-limit";
        } else if (message.contains("the server closed while the body was sent")) {
            return "closed-early";
        } else if (message.contains("the server had closed this connection, idle")) {
            return "idle-closed";
        } else if (message.contains("the server speaks HTTP/2 only")) {
            return "http2-only";
        } else if (message.contains("does not specify a valid host name")) {
            return "no-server";
        } else if (exception.contains("ConnectTimeoutException")) {
            return "connect-timeout";
        } else if (CONNECT.matcher(exception).find()) {
            return "connect";
        } else if (exception.contains("SocketTimeoutException")) {
            return "timeout";
        } else if (exception.contains("RequestAborted") || exception.contains("InterruptedIO")) {
            return closedHere;
        } else if (NOT_HTTP.matcher(exception).find()) {
            return "not-http";
        } else if (message.contains("Brotli")) { // an IOException, as if the connection broke
            return "not-http";
        } else if (exception.contains("MalformedURL") || exception.contains("URISyntax")) {
            return "exception";
        } else if (message.endsWith("Socket closed")) {
            return closedHere;
        }
        return exception.contains(".SSL") && !RESET.matcher(message).find() ? "tls" : "reset";
    }

    private Breakage() {
    }
}
