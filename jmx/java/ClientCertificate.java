package framestorm;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The certificate that requests show. JMeter's SSL context takes its key store from system properties. */
public final class ClientCertificate {
    private static final Pattern PEM = Pattern.compile("(?s)-----BEGIN ([A-Z0-9 ]+)-----(.+?)-----END");
    // It has the key of a PEM file: a server of slaves, which runs many tests in one Java, keeps one at most.
    private static File made;

    /** Have JMeter show the certificate in a file: in PEM with its key, or in PKCS12. */
    public static synchronized void use(File file, String password) throws IOException, GeneralSecurityException {
        byte[] content;
        try (InputStream input = new FileInputStream(file)) {
            content = input.readAllBytes();
        }
        boolean isPem = new String(content, StandardCharsets.ISO_8859_1).contains("-----BEGIN ");
        File store = isPem ? storeOf(new String(content, StandardCharsets.UTF_8), password) : file;
        try (InputStream input = new FileInputStream(store)) {
            KeyStore.getInstance("PKCS12").load(input, password.toCharArray());
        } catch (IOException error) {
            throw new IllegalArgumentException(
                "-Jcertificate=@" + file + ": neither PEM nor PKCS12 with this password: " + error.getMessage());
        }
        System.setProperty("javax.net.ssl.keyStore", store.getPath());
        System.setProperty("javax.net.ssl.keyStoreType", "PKCS12");
        System.setProperty("javax.net.ssl.keyStorePassword", password);
        if (made != null) {
            made.delete();
        }
        made = isPem ? store : null;
    }

    private static File storeOf(String pem, String password) throws IOException, GeneralSecurityException {
        List<Certificate> chain = new ArrayList<>();
        byte[] key = null;
        Matcher matcher = PEM.matcher(pem);
        while (matcher.find()) {
            byte[] der = Base64.getMimeDecoder().decode(matcher.group(2));
            if (matcher.group(1).equals("CERTIFICATE")) {
                chain.add(CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(der)));
            } else if (matcher.group(1).equals("PRIVATE KEY")) {
                key = der;
            }
        }
        if (key == null || chain.isEmpty()) {
            throw new IllegalArgumentException(
                "certificate: a PEM file needs the certificate and its key as PRIVATE KEY (openssl pkcs8 -topk8 -nodes)");
        }
        KeyFactory keys = KeyFactory.getInstance(chain.get(0).getPublicKey().getAlgorithm());
        PrivateKey privateKey = keys.generatePrivate(new PKCS8EncodedKeySpec(key));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("client", privateKey, password.toCharArray(), chain.toArray(Certificate[]::new));
        File file = Files.createTempFile("certificate", ".p12").toFile(); // readable by its owner only
        file.deleteOnExit();
        try (OutputStream output = new FileOutputStream(file)) {
            store.store(output, password.toCharArray());
        }
        return file;
    }

    private ClientCertificate() {
    }
}
