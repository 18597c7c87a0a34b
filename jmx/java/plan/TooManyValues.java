package framestorm.plan;

/** An answer has more JSON or XML values than the memory of a generator has room for. */
final class TooManyValues extends RuntimeException {
    private static final long serialVersionUID = 1L;
}
