package framestorm;

import groovy.lang.Binding;
import groovy.lang.MissingPropertyException;
import groovy.lang.Script;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.Reader;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.script.Bindings;
import javax.script.Compilable;
import javax.script.CompiledScript;
import javax.script.ScriptContext;
import javax.script.ScriptException;
import javax.script.SimpleScriptContext;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.commons.io.IOUtils;
import org.codehaus.groovy.control.CompilationUnit;
import org.codehaus.groovy.control.CompilerConfiguration;
import org.codehaus.groovy.jsr223.GroovyCompiledScript;
import org.codehaus.groovy.jsr223.GroovyScriptEngineImpl;
import org.codehaus.groovy.runtime.InvokerHelper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compiles and runs Groovy scripts in JMeter's place. Those of the kit's plans were compiled at set-up, which takes 3 s of
 * CPU. And a script is run as Groovy itself does it: its engine for Java's scripting interface, by which JMeter runs them,
 * makes closures of all methods of a script for each run of it, which costs more than most scripts do.
 */
public final class Scripts {
    private static final String FOLDER = "framestorm/scripts/"; // in the jar, a folder for each text
    private static final String NAME = "script"; // of the class with which a script begins
    private static final Field CLASS;
    private static final Map<String, Logger> LOGGERS = new ConcurrentHashMap<>();

    static {
        try {
            CLASS = GroovyCompiledScript.class.getDeclaredField("clasz");
            CLASS.setAccessible(true);
        } catch (NoSuchFieldException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    /** Compile a script at set-up, or classes that scripts use, into the folder whose content becomes the jar. */
    static void compileInto(Path classes, Path source) throws IOException {
        String text = Files.readString(source);
        boolean isScript = !text.startsWith("package framestorm");
        Path folder = isScript ? Files.createDirectories(classes.resolve(folderOf(text))) : classes;
        CompilerConfiguration configuration = new CompilerConfiguration(CompilerConfiguration.DEFAULT);
        configuration.setTargetDirectory(folder.toFile());
        CompilationUnit unit = new CompilationUnit(configuration);
        unit.addSource(isScript ? NAME + ".groovy" : source.getFileName().toString(), text);
        unit.compile();
    }

    /** Called by JMeter for each script that it keeps compiled. */
    public static CompiledScript compile(Compilable engine, Reader script) throws IOException, ScriptException {
        return compile(engine, IOUtils.toString(script));
    }

    /** Called by JMeter for each script that it keeps compiled; each call makes new classes, with static fields of their own. */
    public static CompiledScript compile(Compilable engine, String text) throws ScriptException {
        if (engine instanceof GroovyScriptEngineImpl) {
            try {
                return new GroovyCompiledScript((GroovyScriptEngineImpl) engine, new Ready(text).findClass(NAME));
            } catch (ClassNotFoundException ignored) { // a script of a user, or one that was changed since set-up
            }
        }
        return engine.compile(text);
    }

    /** Called by JMeter for each run of a script that it keeps compiled. */
    public static Object run(CompiledScript compiled, Bindings variables) throws ScriptException {
        if (compiled instanceof GroovyCompiledScript) {
            try {
                Class<?> type = (Class<?>) CLASS.get(compiled);
                if (Script.class.isAssignableFrom(type)) {
                    return InvokerHelper.createScript(type, new Variables(variables)).run();
                }
            } catch (IllegalAccessException error) {
                throw new IllegalStateException(error);
            } catch (Exception error) {
                throw new ScriptException(error);
            }
        }
        return compiled.eval(variables);
    }

    /** Whether the script is one of the kit's, as it was compiled at set-up. */
    static boolean isOfKit(String text) {
        return Scripts.class.getClassLoader().getResource(folderOf(text) + NAME + ".class") != null;
    }

    /** The logger of that name, without the look-up of who asks. */
    public static Logger logger(String name) {
        return LOGGERS.computeIfAbsent(name, LoggerFactory::getLogger);
    }

    private static String folderOf(String text) {
        return FOLDER + DigestUtils.sha256Hex(text) + "/";
    }

    /** The classes of a script that was compiled at set-up. */
    private static final class Ready extends ClassLoader {
        private final String folder;

        Ready(String text) {
            super(Thread.currentThread().getContextClassLoader());
            folder = folderOf(text);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try (InputStream content = Scripts.class.getClassLoader().getResourceAsStream(folder + name + ".class")) {
                if (content == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = content.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

    /** What JMeter gives to the script, and the two names that Java's scripting interface adds. */
    private static final class Variables extends Binding {
        private final Bindings given;

        Variables(Bindings given) {
            super(given);
            this.given = given;
        }

        @Override
        public Object getVariable(String name) {
            if (given.containsKey(name)) {
                return given.get(name);
            }
            if ("out".equals(name)) {
                return new PrintWriter(System.out, true);
            }
            if ("context".equals(name)) {
                ScriptContext context = new SimpleScriptContext();
                context.setBindings(given, ScriptContext.ENGINE_SCOPE);
                return context;
            }
            throw new MissingPropertyException(name, Variables.class);
        }

        @Override
        public boolean hasVariable(String name) {
            return given.containsKey(name) || "out".equals(name) || "context".equals(name);
        }
    }

    private Scripts() {
    }
}
