// Chooses the next frame to send, in turn over all threads, and how it is sent.

import framestorm.Given
import framestorm.Secrets
import groovy.transform.Field
import java.util.concurrent.atomic.AtomicLong
import org.apache.jmeter.protocol.http.control.Header
import org.apache.jmeter.protocol.http.control.HeaderManager

// As the frame client sends and asks for them.
@Field static final Map FORMS = [
    'png-base64': [suffix: '.b64', type: 'text/plain', accept: 'application/json'],
    png: [suffix: '.png', type: 'image/png', accept: 'image/png'],
    jpeg: [suffix: '.jpg', type: 'image/jpeg', accept: 'image/jpeg'],
]
// Loaded anew for each run, which therefore starts at the first frame.
@Field static final AtomicLong NEXT = new AtomicLong()
@Field static volatile List<String> paths = null
@Field static final Secrets SECRETS = new Secrets()
@Field static volatile List<Header> given = null

static synchronized List<String> list(String folder, String suffix, int limit) {
    if (paths == null) {
        def names = (new File(folder).list() ?: []).findAll { it.endsWith(suffix) }.sort()
        if (!names) {
            throw new FileNotFoundException("no *$suffix frames in $folder: cut the video first, see frame_dir")
        }
        paths = (limit > 0 ? (0..<limit).collect { names[it % names.size()] } : names).collect { "$folder/$it" as String }
    }
    return paths
}

static synchronized List<Header> headers(String property) {
    if (given == null) {
        List<Header> read = Given.headers(property, SECRETS)
        read.each { Given.checkHeader(it.name, it.value) }
        given = read
    }
    return given
}

def form = FORMS[vars.get('encoding')]
List<String> frames = paths
List<Header> ofUser = given
try {
    ofUser = ofUser == null ? headers(vars.get('headers')) : ofUser
    if (form == null) {
        throw new IllegalArgumentException("encoding ${vars.get('encoding')} is not one of ${FORMS.keySet()}")
    }
    frames = frames ?: list(new File(vars.get('frame_dir')).absolutePath, form.suffix, vars.get('frames') as int)
} catch (IOException | IllegalArgumentException error) {
    ctx.thread.stop() // before the sampler: nothing is sent
    ctx.engine.askThreadsToStop()
    throw error
}
int index = (int) (NEXT.getAndIncrement() % frames.size())
vars.put('index', index as String)
vars.put('frame_file', frames[index])
vars.put('content_type', form.type)
vars.put('accept', form.accept) // for the check of the answer
def manager = new HeaderManager()
ofUser.each { manager.add(it) }
['Content-Type': form.type, Accept: form.accept].each { name, value ->
    if (!ofUser.any { it.name.equalsIgnoreCase(name) }) {
        manager.add(new Header(name, value))
    }
}
sampler.headerManager = manager
vars.putObject('secrets', SECRETS.shown)
