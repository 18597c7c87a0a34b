package framestorm;

import groovy.json.JsonSlurper;
import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import javassist.CannotCompileException;
import javassist.ClassPool;
import javassist.CtClass;
import javassist.CtField;
import javassist.CtMethod;
import javassist.expr.Expr;
import javassist.expr.ExprEditor;
import javassist.expr.MethodCall;
import javassist.expr.NewExpr;

/**
 * Makes six classes of JMeter anew, at set-up, for the jar that JMeter finds before its own: samples know their time in
 * microseconds and transactions their end, a sample tells of its Sample Timeout, a controller hears its slaves alone, bodies of
 * answers and the output of programs have limits, a Host header arrives as it was given, and the client of the HTTP sampler is
 * KitHttpClient's. All else that the kit does in JMeter is done by JMeter's own doors: see Beginning, TreeConverter and Elements.
 * Arguments: the folder for the patched classes, the reasons for patches.
 */
final class Patch {
    private static final String SAMPLES = "org.apache.jmeter.samplers.";
    private static final String HTTP = "org.apache.jmeter.protocol.http.sampler.";
    private static final String NEW = "<init>"; // Java's name of a constructor

    public static void main(String[] arguments) throws Exception {
        ClassPool pool = ClassPool.getDefault();
        CtClass result = patchedResult(pool.get(SAMPLES + "SampleResult"));
        CtClass rmi = pool.get("org.apache.jmeter.rmi.RmiUtils");
        // With SSL, who has no key of the deployment is refused by that.
        rmi.getDeclaredMethod("createServerSocketFactory")
            .insertBefore("if (SSL_DISABLED && framestorm.FromSlaves.isAsked()) return new framestorm.FromSlaves();");
        CtClass bodies = pool.get(HTTP + "HTTPSamplerBase");
        // Both HTTP samplers, HttpClient4's and Java's, call it: JMeter's own limit is for each answer, whatever others hold.
        bodies.getDeclaredMethod("readResponse").insertBefore("$2 = framestorm.Body.of($2);");
        CtClass http = patchedHttpSampler(pool.get(HTTP + "HTTPHC4Impl"));
        CtClass output = pool.get("org.apache.jorphan.exec.StreamCopier");
        replaceCalls(output.getDeclaredMethod("run"), "org.apache.commons.io.IOUtils", "copyLarge", "framestorm.Output.copy($$)");
        CtClass thread = pool.get("org.apache.jmeter.threads.JMeterThread");
        thread.getDeclaredMethod("doSampling").insertAfter("framestorm.SampleTimeouts.tell($2, $_);");
        thread.getDeclaredMethod("doEndTransactionSampler")
            .insertBefore("$1.getTransactionResult().transaction = $1.isTransactionDone() ? 1 : 2;");
        List<CtClass> all = List.of(result, rmi, bodies, http, output, thread);
        Map<?, ?> reasons = (Map<?, ?>) new JsonSlurper().parse(new File(arguments[1]));
        for (CtClass each : all) {
            if (!reasons.containsKey(each.getName())) {
                throw new IllegalStateException(arguments[1] + " does not say why " + each.getName() + " is patched");
            }
            each.writeFile(arguments[0]);
        }
    }

    /** JMeter cuts the clock's nanoseconds off at whole ms: here the result keeps them beside, where it was read. */
    private static CtClass patchedResult(CtClass result) throws Exception {
        result.addField(CtField.make("private transient long nowNs;", result));
        // Slaves send them to the controller, which writes the rows.
        result.addField(CtField.make("private long startNs;", result));
        result.addField(CtField.make("private long endNs;", result));
        // Of the sample of a transaction, for SampleKinds; slaves send it.
        result.addField(CtField.make("public int transaction;", result));
        result.getDeclaredMethod("currentTimeInMillis").setBody(
            "{ if (!useNanoTime) return System.currentTimeMillis();"
            + " if (nanoTimeOffset == Long.MIN_VALUE) throw new IllegalStateException(\"nanoTimeOffset is not set\");"
            + " nowNs = System.nanoTime(); return nowNs / 1000000L + nanoTimeOffset; }");
        result.getDeclaredMethod("sampleStart").insertAfter("startNs = nowNs;");
        result.getDeclaredMethod("sampleEnd").insertAfter("endNs = nowNs;");
        result.getConstructor("(L" + SAMPLES.replace('.', '/') + "SampleResult;)V")
            .insertAfter("startNs = $1.startNs; endNs = $1.endNs; transaction = $1.transaction;");
        // The end of a result with sub-results, such as redirects, is that of its last.
        result.getDeclaredMethod("storeSubResult").insertAfter("endNs = Math.max(endNs, $1.endNs);");
        // An assertion that passed may have an empty message (JMESPath), which is not the one to show.
        result.getDeclaredMethod("getFirstAssertionFailureMessage").setBody(
            "{ org.apache.jmeter.assertions.AssertionResult[] all = getAssertionResults(); String first = null;"
            + " for (int i = 0; i < all.length && (first == null || first.isEmpty()); i++) first = all[i].getFailureMessage();"
            + " return first; }");
        // What was set in another way, such as by a script, has no more than JMeter's milliseconds.
        result.addMethod(CtMethod.make(
            "public String elapsedUs() { long us = (endNs - startNs) / 1000L - 1000L * idleTime;"
            + " return startNs != 0L && Math.abs(us - 1000L * elapsedTime) < 1000L ? Long.toString(us) : null; }",
            result));
        return result;
    }

    /** JMeter has no setting by which its HttpClient could be another: see KitHttpClient. */
    private static CtClass patchedHttpSampler(CtClass http) throws Exception {
        String kit = "framestorm.KitHttpClient.";
        CtMethod client = http.getDeclaredMethod("setupClient");
        replace(client, http.getName() + "$JMeterDefaultHttpClientConnectionOperator", NEW,
            "$_ = $proceed(" + kit + "sockets($1), $2, $3);");
        replace(client, "org.apache.http.impl.conn.PoolingHttpClientConnectionManager", NEW,
            "$_ = $proceed($1, " + kit + "CONNECTIONS, $3, $4);");
        replaceCalls(client, "org.apache.http.impl.client.HttpClientBuilder", "build", kit + "build($0)");
        http.getDeclaredMethod("createLookupRegistry").insertAfter("$_ = " + kit + "decoders($_);");
        // JMeter adds the port of the URL to a Host header that has none; servers that route by name know the name alone.
        CtMethod headers = http.getDeclaredMethod("setConnectionHeaders");
        replace(headers, http.getName(), "getPortFromHostHeader", "$_ = -1;");
        replace(headers, String.class.getName(), "replaceFirst", "$_ = $0;");
        return http;
    }

    /** Replace the calls of one method of a class, within a method of JMeter, by another expression. */
    private static void replaceCalls(CtMethod method, String called, String name, String instead) throws Exception {
        replace(method, called, name, "$_ = ($r) " + instead + ";");
    }

    /** Without such a call the patch would have no effect, in silence: JMeter is of another version than it is made for. */
    private static void replace(CtMethod method, String called, String name, String statement) throws Exception {
        AtomicInteger calls = new AtomicInteger();
        method.instrument(new ExprEditor() {
            @Override
            public void edit(MethodCall call) throws CannotCompileException {
                edit(call, call.getClassName(), call.getMethodName());
            }

            @Override
            public void edit(NewExpr call) throws CannotCompileException {
                edit(call, call.getClassName(), NEW);
            }

            private void edit(Expr call, String className, String methodName) throws CannotCompileException {
                if (className.equals(called) && methodName.equals(name)) {
                    call.replace(statement);
                    calls.incrementAndGet();
                }
            }
        });
        if (calls.get() == 0) {
            throw new IllegalStateException(method.getLongName() + " never calls " + called + "." + name);
        }
    }

    private Patch() {
    }
}
