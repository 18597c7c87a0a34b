package framestorm;

import groovy.lang.Binding;
import groovy.lang.MissingPropertyException;
import groovy.lang.Script;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.script.Bindings;
import javax.script.CompiledScript;
import javax.script.ScriptContext;
import javax.script.ScriptException;
import javax.script.SimpleScriptContext;
import org.codehaus.groovy.jsr223.GroovyCompiledScript;
import org.codehaus.groovy.runtime.InvokerHelper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs compiled Groovy scripts as Groovy itself does. Its engine for Java's scripting interface, by which JMeter runs
 * them, makes closures of all methods of a script for each run of it, which costs more than most scripts do.
 */
public final class Scripts {
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

    /** The logger of that name, without the look-up of who asks. */
    public static Logger logger(String name) {
        return LOGGERS.computeIfAbsent(name, LoggerFactory::getLogger);
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
