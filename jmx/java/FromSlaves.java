package framestorm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.UnknownHostException;
import java.rmi.server.RMIServerSocketFactory;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The ports of a run's controller without SSL, for its slaves alone: the machine that conducts a run may have no
 * firewall. The property framestorm.slaves has their addresses. A connection from elsewhere is closed unread.
 */
public final class FromSlaves implements RMIServerSocketFactory {
    private static final Logger LOG = LoggerFactory.getLogger(FromSlaves.class);
    private static final String NAMES = System.getProperty("framestorm.slaves", "");
    private static final int NAMED_AT_MOST = 100;
    private static final Set<InetAddress> REFUSED = ConcurrentHashMap.newKeySet();

    public static boolean isAsked() {
        return !NAMES.isEmpty();
    }

    @Override
    public ServerSocket createServerSocket(int port) throws IOException {
        Set<InetAddress> slaves = new HashSet<>();
        for (String name : NAMES.split(",")) {
            slaves.addAll(Arrays.asList(InetAddress.getAllByName(name)));
        }
        ServerSocket socket = new ServerSocket() {
            @Override
            public Socket accept() throws IOException {
                while (true) {
                    Socket peer = super.accept();
                    if (slaves.contains(peer.getInetAddress())) {
                        return peer;
                    }
                    peer.close();
                    note(peer.getInetAddress());
                }
            }
        };
        socket.bind(new InetSocketAddress(ownAddress(), port));
        return socket;
    }

    /** Once for each address, or whoever connects again and again would fill the disk. */
    private static void note(InetAddress address) {
        if (REFUSED.size() < NAMED_AT_MOST && REFUSED.add(address)) {
            LOG.warn("Refused a connection from {}, which is not the address of a slave ({}). If it is a slave, set its"
                + " framestorm_address.", address.getHostAddress(), NAMES);
        }
    }

    /** The address that slaves connect to, or null for any if no interface has it: it is translated on the way. */
    private static InetAddress ownAddress() throws IOException {
        String name = System.getProperty("java.rmi.server.hostname");
        try {
            InetAddress own = name == null ? null : InetAddress.getByName(name);
            return own == null || NetworkInterface.getByInetAddress(own) == null ? null : own;
        } catch (UnknownHostException error) {
            return null;
        }
    }

    /** RMI lets objects with equal factories share a port. */
    @Override
    public boolean equals(Object other) {
        return other instanceof FromSlaves;
    }

    @Override
    public int hashCode() {
        return FromSlaves.class.hashCode();
    }
}
