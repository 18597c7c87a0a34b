package framestorm;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.net.SocketTimeoutException;
import org.apache.http.Header;
import org.apache.http.HttpEntity;
import org.apache.http.HttpResponse;
import org.apache.http.ProtocolException;
import org.apache.http.client.entity.DecompressingEntity;
import org.apache.http.client.entity.InputStreamFactory;
import org.apache.http.entity.HttpEntityWrapper;

/**
 * Takes a content coding, such as gzip, off an answer. One of 0 bytes is empty, whatever coding its head names; and an error
 * whose text cannot be decoded is that error.
 */
final class Coding {
    private static final int ERRORS = 400;
    private static final int MOST = 5;

    /** Refuse an answer that names more codings than a server has use for: thousands fill the stack. */
    static void checkCount(HttpResponse response) throws ProtocolException {
        Header codings = response.getEntity() == null ? null : response.getEntity().getContentEncoding();
        if (codings != null && codings.getElements().length > MOST) {
            throw new ProtocolException("more than " + MOST + " content codings");
        }
    }

    /** Have the text of an error end where it cannot be decoded any more. */
    static void keepError(HttpResponse response) {
        HttpEntity entity = response.getEntity();
        if (entity instanceof DecompressingEntity && response.getStatusLine().getStatusCode() >= ERRORS) {
            response.setEntity(new HttpEntityWrapper(entity) {
                @Override
                public InputStream getContent() throws IOException {
                    return new Readable(super.getContent());
                }
            });
        }
    }

    /** What a coding makes of a body: nothing of nothing. */
    static InputStream decoded(InputStreamFactory coding, InputStream body) throws IOException {
        PushbackInputStream coded = new PushbackInputStream(body);
        int first = coded.read();
        if (first < 0) {
            return coded;
        }
        coded.unread(first);
        return coding.create(coded);
    }

    /** As much of a text as can be read. */
    private static final class Readable extends FilterInputStream {
        private Readable(InputStream text) {
            super(text);
        }

        @Override
        public int read(byte[] into, int from, int length) throws IOException {
            try {
                return in.read(into, from, length);
            } catch (SocketTimeoutException late) {
                throw late;
            } catch (IOException undecodable) {
                return -1;
            }
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }
    }

    private Coding() {
    }
}
