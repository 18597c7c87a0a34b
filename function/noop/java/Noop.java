import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** A no-op in Java: {@code serve} kept alive behind HTTP, {@code fork} for one request on stdin. */
public final class Noop {
    private static final byte[] ANSWER = "ok".getBytes(StandardCharsets.US_ASCII);
    private static final int BACKLOG = 128;

    private Noop() {}

    public static void main(String[] arguments) throws IOException {
        switch (arguments.length == 0 ? "" : arguments[0]) {
            case "serve" -> {
                String port = System.getenv().getOrDefault("port", "8080");
                serve(Integer.parseInt(arguments.length > 1 ? arguments[1] : port));
            }
            case "fork" -> {
                System.in.transferTo(OutputStream.nullOutputStream());
                System.out.write(ANSWER);
                System.out.flush();
            }
            default -> {
                System.err.println("usage: java Noop fork | java Noop serve [PORT]");
                System.exit(2);
            }
        }
    }

    private static void serve(int port) throws IOException {
        // Without this the body waits 40 ms for the headers' acknowledgement (JDK-8170568).
        System.setProperty("sun.net.httpserver.nodelay", "true");
        String host = System.getenv().getOrDefault("host", "0.0.0.0");
        HttpServer server = HttpServer.create(new InetSocketAddress(host, port), BACKLOG);
        server.createContext("/", Noop::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.getRequestBody().transferTo(OutputStream.nullOutputStream());
            exchange.sendResponseHeaders(200, ANSWER.length);
            exchange.getResponseBody().write(ANSWER);
        }
    }
}
