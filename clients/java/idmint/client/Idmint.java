// SPDX-License-Identifier: Apache-2.0
package idmint.client;

import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.TrustManagerFactory;

/**
 * Client of an idmint service: https, failover, and a prefetched stock of ids, so that most ids cost no request.
 *
 * <p>Depend on the jar or copy this file. It needs Java 17 and nothing else:
 *
 * <pre>
 * try (var ids = new Idmint(List.of("http://10.0.0.1:8080", "http://10.0.0.2:8080"), "snowflake", new Idmint.Options().token("..."))) {
 *     long id = ids.next();            // in any number of threads
 *     String text = ids.nextText();    // for formats of any kind
 *     ids.mint(1000);                  // also decode("1573542478315782144") and append("aa77f99c", List.of("{\"event\":...}"))
 *     ids.number("acme-2026", "order-4711"); // the next number of a series without gaps, the same one for the same key
 * }
 * </pre>
 *
 * <p>Every call ends within its timeout. It fails with a {@link Failure}, whose {@link Failure#kind()} tells the caller how to react.
 *
 * <p>Give several addresses to append or number only if they belong to one fleet. Other nodes share no ledgers and no numbers, so
 * another node would give the same number again.
 *
 * <p>Create one object per process. Java cannot fork without exec. If a process or machine is copied while it runs (CRaC, SnapStart, a
 * snapshot that is restored twice), create the object after the copy, because nothing signals the copy to a process. The time in which
 * the machine sleeps does not count as age.
 */
public final class Idmint implements AutoCloseable {
    /** The version of this client. */
    public static final String VERSION = "0.1.0";

    private static final double PAUSE_MIN_NANOS = 100e6;
    private static final double PAUSE_MAX_NANOS = 5e9;
    private static final double RETRY_AFTER_MAX_MS = 30_000;
    private static final long BODY_MAX = 64 << 20;
    /** The service counts a request for more ids than this as bulk work, which it refuses first when it is busy. */
    private static final int BULK = 1024;
    private static final Pattern VISIBLE_ASCII = Pattern.compile("[!-~]+");

    private static final Map<Integer, String> REMEDIES = Map.of(
            401, "set Options.token to a token that http.tokens of the service has",
            403, "the token does not cover this: its scopes and formats are in http.tokens of the service",
            421, "use a host name of the service, or add this one to its http.hosts");

    /** Options, each with a default. */
    public static final class Options {
        private String token;
        private int prefetchCount = 100;
        private int prefetchCountMax = 10_000;
        private Duration prefetchValidity = Duration.ofSeconds(60);
        private Duration timeout = Duration.ofSeconds(10);
        private Path caFile;
        private final Map<String, String> query = new LinkedHashMap<>();

        /** Sets the bearer token of each request. White space around it is removed. Default: none. */
        public Options token(String token) {
            this.token = token;
            return this;
        }

        /** Sets the initial number of ids per request, which grows with the rate of use. Default: 100. */
        public Options prefetchCount(int count) {
            prefetchCount = count;
            return this;
        }

        /** Sets the maximum to which the number of ids per request grows. Default: 10 000. */
        public Options prefetchCountMax(int count) {
            prefetchCountMax = count;
            return this;
        }

        /** Sets the maximum age of an id, counted from its request. The stock lasts at most this long in an outage. Default: one minute. */
        public Options prefetchValidity(Duration validity) {
            prefetchValidity = validity;
            return this;
        }

        /** Sets the time limit of a call. Default: 10 seconds. */
        public Options timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** Sets the PEM file of the certificate authorities that are trusted for https. Default: the authorities of Java. */
        public Options caFile(Path file) {
            caFile = file;
            return this;
        }

        /** Adds a query parameter that the format needs, such as {@code query("type", "message")}. Default: none. */
        public Options query(String name, String value) {
            query.put(name, value);
            return this;
        }
    }

    /** The kind of a failure, which determines how the caller should react. */
    public enum Kind {
        /** The service would refuse the request again, so change the request, token or configuration. Also used for status 500. */
        REFUSED,
        /** No address responded in time, or all of them are busy. The same call may succeed later. */
        UNAVAILABLE,
        /** The response does not come from an idmint service: check the address. */
        BAD_RESPONSE,
        /** The Idmint was closed. */
        CLOSED,
        /** The calling thread was interrupted. */
        INTERRUPTED
    }

    /** The failure of a call. */
    public static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final Kind kind;
        private final int status;
        private final String slug;
        private final String reason;
        private final transient Map<String, Object> problem;
        private final long retryAfterMs;
        private final boolean outcomeUnknown;

        private Failure(Kind kind, String message, int status, Map<String, Object> problem, long retryAfterMs, boolean unknown, Throwable cause) {
            super(message, cause);
            this.kind = kind;
            this.status = status;
            slug = problem.get("type") instanceof String type ? type.substring(type.lastIndexOf('/') + 1) : null;
            reason = problem.get("reason") instanceof String word ? word : null;
            this.problem = problem;
            this.retryAfterMs = retryAfterMs;
            outcomeUnknown = unknown;
        }

        private Failure(Kind kind, String message, boolean outcomeUnknown, Throwable cause) {
            this(kind, message, 0, Map.of(), 0, outcomeUnknown, cause);
        }

        /** Returns true if the service cannot handle this request now, such as one for a certain series, but may handle others. */
        private boolean isOfRequest() {
            return List.of(409, 503, 504).contains(status) && !hasNoSlug() && !List.of("overloaded", "draining").contains(slug);
        }

        private boolean hasNoSlug() {
            return slug == null || slug.isEmpty();
        }

        private boolean waitsForOperator() {
            return status != 504 && isOfRequest() && retryAfterMs == 0;
        }

        /** Returns true if the certificate of an address is not trusted. Another address may have a valid one. */
        private boolean isOfCertificate() {
            return kind == Kind.REFUSED && status == 0;
        }

        /** Returns a copy of this failure for a call, with the stack trace of that call. The copy's message includes `untrusted`. */
        private Failure again(boolean unknown, Failure untrusted) {
            var message = untrusted == null || untrusted == this ? getMessage() : getMessage() + "; " + untrusted.getMessage();
            return new Failure(kind, message, status, problem, retryAfterMs, unknown, getCause());
        }

        /** Returns the kind of this failure. */
        public Kind kind() {
            return kind;
        }

        /** Returns the status of the response, or 0 if there was none. */
        public int status() {
            return status;
        }

        /** Returns the name of the problem type, as in /problems/{slug}, or null if there is none. */
        public String slug() {
            return slug;
        }

        /** Returns the reason for the problem as one word, or null if there is none. */
        public String reason() {
            return reason;
        }

        /** Returns the wait before a retry that the service asks for: at most 30 seconds. */
        public Duration retryAfter() {
            return Duration.ofMillis(retryAfterMs);
        }

        /** Returns true if the request may have taken effect although the call failed. */
        public boolean outcomeUnknown() {
            return outcomeUnknown;
        }
    }

    private interface Fetch {
        List<Piece> fetch(int count);
    }

    /** Ids of one response: a row of equally spaced numbers, or texts. */
    private static final class Piece {
        /** The number of attempts to take an id, including those after the last id. It only grows, so no id is taken twice. */
        final AtomicLong taken = new AtomicLong();
        final long first;
        final long step;
        final List<String> texts;
        final long count;
        long asked;
        long validity;
        /** True if the first use of this piece starts a request for more ids. */
        boolean isSecondHalf;

        Piece(long first, long step, List<String> texts, long count) {
            this.first = first;
            this.step = step;
            this.texts = texts;
            this.count = count;
        }

        /** Takes the next id and returns its position in this piece, or -1 if all ids are taken or too old. */
        long place() {
            long place = taken.getAndIncrement();
            return place < count && isFresh() ? place : -1;
        }

        boolean isFresh() {
            return System.nanoTime() - asked < validity;
        }

        Piece part(long from, long to) {
            var part = texts == null ? null : texts.subList((int) from, (int) to);
            return new Piece(first + from * step, step, part, to - from);
        }
    }

    /** Converts numbers to texts in plain decimal, hexadecimal or base 36. The radix is 0 if only the service can write the texts. */
    private record NumberText(int radix, boolean isUpper, int length) {
        static final NumberText OF_SERVICE = new NumberText(0, false, 0);

        String textOf(long id) {
            var text = Long.toString(id, radix);
            return "0".repeat(Math.max(0, length - text.length())) + (isUpper ? text.toUpperCase(Locale.ROOT) : text);
        }

        /** Parses the response of GET /formats/{format}. */
        static NumberText of(Map<String, Object> format, Map<String, String> query) {
            boolean hasNumbers = "sequenced".equals(format.get("rule")) && Boolean.TRUE.equals(format.get("minted"));
            if (!hasNumbers || !(format.get("bits") instanceof Double bits && bits <= 64) || query.containsKey("prefix")) {
                return OF_SERVICE;
            }
            for (var item : (List<?>) format.get("encodings")) {
                var encoding = (Map<?, ?>) item;
                var name = (String) encoding.get("name");
                if (!query.getOrDefault("encoding", name).equals(name)) {
                    continue;
                }
                var example = (Map<?, ?>) format.get("example");
                var text = ((Map<?, ?>) example.get("encodings")).get(name);
                var pattern = (String) encoding.get("pattern");
                int length = encoding.get("length") instanceof Double fixed ? fixed.intValue() : 0;
                for (var span : List.of("", "a-f", "A-F", "a-z", "A-Z")) {
                    var free = "\\^\\(\\?:0\\|\\[1-9" + span + "]\\[0-9" + span + "]\\{0,\\d+}\\)\\$";
                    if (pattern.equals("^[0-9" + span + "]{" + length + "}$") || pattern.matches(free)) {
                        int radix = span.isEmpty() ? 10 : span.toLowerCase(Locale.ROOT).endsWith("f") ? 16 : 36;
                        var numberText = new NumberText(radix, span.startsWith("A"), length);
                        // The pattern does not show the order of the alphabet, so compare the text of the example id. If that id has more
                        // than 63 bits, decimal() throws REFUSED, and the service then writes the texts.
                        boolean isSame = numberText.textOf(decimal(example.get("value"))).equals(text);
                        return isSame ? numberText : OF_SERVICE;
                    }
                }
                break;
            }
            return OF_SERVICE;
        }
    }

    private final Requests requests;
    private final String format;
    private final Map<String, String> query;
    /** Converts a number to a text. Null until the service has described the format. */
    private volatile NumberText numberText;
    private final ReentrantLock learning = new ReentrantLock();
    private final Stock numbers;
    private final Stock texts;

    /** Throws an IllegalArgumentException if an argument is invalid, and REFUSED for half of a surrogate pair. Sends no request. */
    public Idmint(List<String> urls, String format, Options options) {
        if (options.prefetchCount < 1 || options.prefetchCount > options.prefetchCountMax) {
            throw new IllegalArgumentException("prefetchCount must be from 1 to prefetchCountMax ("
                    + options.prefetchCountMax + "), got " + options.prefetchCount);
        }
        for (var duration : List.of(options.prefetchValidity, options.timeout)) {
            if (duration.compareTo(Duration.ZERO) <= 0 || duration.compareTo(Duration.ofDays(36_500)) > 0) {
                throw new IllegalArgumentException("prefetchValidity and timeout must be above 0, and at most 100 years");
            }
        }
        requests = new Requests(urls, options);
        this.format = segment(format);
        query = new LinkedHashMap<>(options.query);
        numbers = new Stock(this::fetchRows, options);
        texts = new Stock(this::fetchTexts, options);
    }

    /** Returns the next id, of a format of up to 63 bits. Blocks only while the stock is empty. */
    public long next() {
        var piece = numbers.current;
        long place = piece.place();
        return place < 0 ? next(System.nanoTime() + requests.timeoutNanos) : piece.first + place * piece.step;
    }

    private long next(long deadline) {
        while (true) {
            var piece = numbers.current;
            long place = piece.place();
            if (place >= 0) {
                return piece.first + place * piece.step;
            }
            numbers.advance(piece, deadline);
        }
    }

    /** Asks the service how it writes texts of the format. */
    private NumberText learn(long deadline) {
        try {
            if (!learning.tryLock(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                throw new Failure(Kind.UNAVAILABLE, "the format was not described within the timeout", false, null);
            }
        } catch (InterruptedException interrupted) {
            throw interrupted(false, interrupted);
        }
        try {
            if (numberText == null) {
                numberText = described(deadline);
            }
            return numberText;
        } finally {
            learning.unlock();
        }
    }

    private NumberText described(long deadline) {
        try {
            var target = "/formats/" + format;
            return requests.send("GET", target, Map.of(), null, 1, format -> NumberText.of(format, query), deadline);
        } catch (Failure refused) {
            if (refused.kind != Kind.REFUSED) {
                throw refused;
            }
            // The token may permit minting but not reading formats. The next request for texts reports any other cause of the refusal.
            return NumberText.OF_SERVICE;
        }
    }

    /** Returns the next id as a text. Blocks only while the stock is empty. */
    public String nextText() {
        long deadline = System.nanoTime() + requests.timeoutNanos;
        var numberText = this.numberText == null ? learn(deadline) : this.numberText;
        if (numberText.radix > 0) {
            try {
                return numberText.textOf(next(deadline));
            } catch (Failure wide) {
                if (wide.status != 200) {
                    throw wide;
                }
                this.numberText = NumberText.OF_SERVICE;
            }
        }
        while (true) {
            var piece = texts.current;
            long place = piece.place();
            if (place >= 0) {
                return piece.texts.get((int) place);
            }
            texts.advance(piece, deadline);
        }
    }

    /** Mints ids now and returns their texts: all of them or none. A retry mints new ids, so no id is returned twice. */
    public List<String> mint(int count) {
        return mint(count, 1);
    }

    private List<String> mint(int count, int batch) {
        return requests.send("POST", target(count), Map.of(), null, batch, answer -> texts(answer, count));
    }

    /** Returns the response of GET /decode/{id}: the possible readings of a text. Fails with status 404 if the text is not an id. */
    public Map<String, Object> decode(String text) {
        return requests.send("GET", "/decode/" + segment(text), Map.of(), null, 1, Function.identity());
    }

    /** Appends events, each in JSON, to a ledger and returns their ids. Appends once, however often the request is sent. */
    public List<String> append(String ledger, List<String> events) {
        return append(ledger, events, UUID.randomUUID().toString());
    }

    /** Appends events with an idempotency key. Calls with the same key append once, so a call can be repeated. */
    public List<String> append(String ledger, List<String> events, String key) {
        var headers = Map.of("Idempotency-Key", checkedKey(key), "Content-Type", "application/json");
        var body = utf8("{\"events\":[" + String.join(",", events) + "]}");
        return requests.send("POST", "/ledgers/" + segment(ledger) + "/events", headers, body, 1, answer -> texts(answer, events.size()));
    }

    /** A number of a series, and its text. */
    public record SeriesNumber(long number, String text) {}

    /** Returns the next number of a series without gaps. The same key always gets the same number. */
    public SeriesNumber number(String series, String key) {
        return requests.send("POST", "/numbers/" + segment(series), Map.of("Idempotency-Key", checkedKey(key)), null, 1,
                answer -> new SeriesNumber(decimal(answer.get("number")), text(answer.get("text"))));
    }

    /** Starts no more requests, and waits for a running refill. Prefetched ids that were not used are lost and remain gaps. */
    @Override
    public void close() {
        requests.close();
        numbers.close();
        texts.close();
    }

    private String target(int count) {
        var target = new StringBuilder("/ids/").append(format).append("?count=").append(count);
        query.forEach((name, value) -> target.append('&').append(encoded(name)).append('=').append(encoded(value)));
        return target.toString();
    }

    private List<Piece> fetchRows(int count) {
        return requests.send("POST", target(count), Map.of("Accept", "application/vnd.idmint.rows+json"), null, count, answer -> {
            var pieces = new ArrayList<Piece>();
            long left = count;
            for (var row : (List<?>) answer.get("rows")) {
                var members = (Map<?, ?>) row;
                long first = decimal(members.get("first"));
                long step = decimal(members.get("step"));
                double length = (Double) members.get("count");
                Math.addExact(first, Math.multiplyExact(step, (long) length));
                if (!(length >= 1 && length <= left) || length != Math.rint(length) || (step == 0 && length > 1)) {
                    throw new IllegalArgumentException("the response has no row of ids");
                }
                left -= (long) length;
                pieces.add(new Piece(first, step, null, (long) length));
            }
            if (left != 0) {
                throw new IllegalArgumentException("the response has another number of ids than requested");
            }
            return pieces;
        });
    }

    private List<Piece> fetchTexts(int count) {
        return List.of(new Piece(0, 0, mint(count, count), count));
    }

    private static List<String> texts(Map<String, Object> answer, int count) {
        var texts = ((List<?>) answer.get("ids")).stream().map(Idmint::text).toList();
        if (texts.size() != count) {
            throw new IllegalArgumentException("the response has another number of ids than requested");
        }
        return texts;
    }

    private static String text(Object value) {
        if (((String) value).isEmpty()) {
            throw new IllegalArgumentException("the response has a member that is not a string");
        }
        return (String) value;
    }

    private static long decimal(Object value) {
        var digits = (String) value;
        if (!digits.matches("[0-9]{1,39}")) {
            throw new IllegalArgumentException("the response has an id that is not a decimal number");
        }
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException wide) {
            throw new Failure(Kind.REFUSED, "ids of this format have more than 63 bits: use nextText", 200, Map.of(), 0, false, null);
        }
    }

    /**
     * Encodes a text as one segment of a path. Proxies remove the segments {@code .} and {@code ..}, even if the dots are written as %2E, so
     * the dots are encoded twice. The service then responds that there is no such resource.
     */
    private static String segment(String text) {
        return text.equals(".") || text.equals("..") ? text.replace(".", "%252E") : encoded(text);
    }

    private static String encoded(String text) {
        // Fails for text that URLEncoder would replace by a question mark.
        utf8(text);
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static String checkedKey(String key) {
        if (!VISIBLE_ASCII.matcher(key).matches()) {
            throw new IllegalArgumentException("a key must be one or more visible ASCII characters");
        }
        return key;
    }

    private static byte[] utf8(String text) {
        try {
            var bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(bytes.array(), bytes.limit());
        } catch (CharacterCodingException half) {
            throw new Failure(Kind.REFUSED, "the text has half of a surrogate pair, which cannot be sent", false, null);
        }
    }

    /** A stock of prefetched ids. Taking an id from the second half starts a request for more, but only one at a time. */
    private static final class Stock {
        volatile Piece current = new Piece(0, 0, null, 0);
        private final Fetch fetch;
        private final long validity;
        private final ArrayDeque<Piece> pieces = new ArrayDeque<>();
        private int count;
        private int countMin;
        private int countMax;
        private final long timeout;
        private long filledAt;
        private long growsAt = System.nanoTime();
        private Thread filler;
        private Failure failure;
        private int failures;
        private long retryAt = System.nanoTime();
        private boolean isClosed;

        Stock(Fetch fetch, Options options) {
            this.fetch = fetch;
            validity = options.prefetchValidity.toNanos();
            timeout = options.timeout.toNanos();
            count = countMin = options.prefetchCount;
            countMax = options.prefetchCountMax;
        }

        /** Replaces a piece that is used up or too old. Blocks only while the stock is empty. */
        synchronized void advance(Piece used, long deadline) {
            boolean wasUsedUp = used.isFresh();
            while (current == used) {
                if (isClosed) {
                    throw closed(false);
                }
                while (!pieces.isEmpty() && !pieces.peek().isFresh()) {
                    if (pieces.remove().isSecondHalf) {
                        // The ids expired before they were used, so fetch fewer from now on.
                        count = Math.max(countMin, count / 2);
                    }
                }
                boolean mayFill = filler == null && System.nanoTime() - retryAt >= 0;
                if (mayFill && (pieces.isEmpty() || pieces.peek().isSecondHalf)) {
                    startFilling(wasUsedUp);
                }
                if (!pieces.isEmpty()) {
                    current = pieces.remove();
                    return;
                }
                if (filler == null) {
                    throw failure.again(false, null);
                }
                for (var waitedFor = filler; filler == waitedFor; ) {
                    long left = deadline - System.nanoTime();
                    if (left <= 0) {
                        throw new Failure(Kind.UNAVAILABLE, "the service sent no ids within " + Duration.ofNanos(timeout), false, null);
                    }
                    try {
                        wait(left / 1_000_000 + 1);
                    } catch (InterruptedException interrupted) {
                        throw interrupted(false, interrupted);
                    }
                }
            }
        }

        private void startFilling(boolean wasUsedUp) {
            if (wasUsedUp && System.nanoTime() - filledAt < 1_000_000_000L) {
                int most = System.nanoTime() - growsAt >= 0 ? countMax : Math.min(countMax, BULK);
                count = Math.max(count, Math.min(most, count * 2));
            }
            filler = new Thread(this::fill, "idmint");
            filler.setDaemon(true);
            try {
                filler.start();
            } catch (OutOfMemoryError none) {
                filled(List.of(), new Failure(Kind.UNAVAILABLE, "no thread can be started", false, none));
            }
        }

        private void fill() {
            List<Piece> fetched = List.of();
            Failure failed = null;
            try {
                for (int attempt = 0; attempt < 2; attempt++) {
                    int wanted = wanted();
                    long asked = System.nanoTime();
                    try {
                        fetched = halved(fetch.fetch(wanted));
                        failed = null;
                    } catch (Failure refused) {
                        failed = refused;
                        if (asksForFewerAfter(refused, wanted)) {
                            continue;
                        }
                    }
                    for (var piece : fetched) {
                        piece.asked = asked;
                        piece.validity = validity;
                    }
                    break;
                }
            } catch (RuntimeException | Error any) {
                failed = new Failure(Kind.UNAVAILABLE, "ids cannot be fetched: " + any, false, any);
            } finally {
                filled(fetched, failed);
            }
        }

        private synchronized int wanted() {
            return count;
        }

        private synchronized void filled(List<Piece> fetched, Failure failed) {
            if (!isClosed) {
                pieces.addAll(fetched);
            }
            failures = failed == null ? 0 : failures + 1;
            failure = failed;
            filledAt = System.nanoTime();
            retryAt = filledAt + backoff(failures);
            filler = null;
            notifyAll();
        }

        private synchronized boolean asksForFewerAfter(Failure refused, int wanted) {
            int most = refused.problem.get("limit") instanceof String limit && limit.matches("[0-9]{1,8}") ? Integer.parseInt(limit) : 0;
            if (refused.status == 422 && "count".equals(refused.reason()) && most > 0 && most < wanted) {
                // The service never grants this many at once, so ask for its limit from now on.
                count = countMax = most;
                countMin = Math.min(countMin, most);
                return true;
            }
            if (refused.status == 503 && wanted > BULK) {
                count = BULK;
                growsAt = System.nanoTime() + 60_000_000_000L;
                return true;
            }
            return false;
        }

        /** Splits one piece at the middle of all ids, and marks its second part as the second half. */
        private static List<Piece> halved(List<Piece> whole) {
            long half = whole.stream().mapToLong(piece -> piece.count).sum() / 2;
            long before = 0;
            boolean isCut = false;
            var cut = new ArrayList<Piece>();
            for (var piece : whole) {
                if (isCut || before + piece.count <= half) {
                    cut.add(piece);
                } else {
                    long kept = half - before;
                    if (kept > 0) {
                        cut.add(piece.part(0, kept));
                    }
                    var second = piece.part(kept, piece.count);
                    second.isSecondHalf = true;
                    cut.add(second);
                    isCut = true;
                }
                before += piece.count;
            }
            return cut;
        }

        void close() {
            Thread last;
            synchronized (this) {
                isClosed = true;
                pieces.clear();
                current = new Piece(0, 0, null, 0);
                last = filler;
            }
            if (last != null) {
                try {
                    last.join(timeout / 1_000_000 + 1);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    private static Failure closed(boolean outcomeUnknown) {
        return new Failure(Kind.CLOSED, "this Idmint is closed", outcomeUnknown, null);
    }

    private static Failure interrupted(boolean outcomeUnknown, InterruptedException cause) {
        Thread.currentThread().interrupt();
        return new Failure(Kind.INTERRUPTED, "the calling thread was interrupted", outcomeUnknown, cause);
    }

    /** Returns a pause in nanoseconds that doubles with each failure, with jitter. */
    private static long backoff(int failures) {
        double pause = Math.min(PAUSE_MAX_NANOS, PAUSE_MIN_NANOS * Math.pow(2, Math.min(failures, 10) - 1));
        return failures == 0 ? 0 : (long) (pause * ThreadLocalRandom.current().nextDouble(0.5, 1.0));
    }

    /** The number of consecutive failures of an address, and the time before which no request is sent to it. */
    private static class Pause {
        private int failures;
        private long notBefore = System.nanoTime();
        private Failure failure;

        /**
         * Returns null if this call may send a request to the address now, or else the last failure of the address. After a failure, only
         * one call at a time tries the address again.
         */
        synchronized Failure begin(long share) {
            long now = System.nanoTime();
            if (failure != null && now - notBefore < 0) {
                return failure;
            }
            notBefore = now + share;
            return null;
        }

        synchronized void answers() {
            failures = 0;
            notBefore = System.nanoTime();
            failure = null;
        }

        synchronized void fails(Failure failed) {
            failures++;
            failure = failed;
            notBefore = System.nanoTime() + Math.max(failed.retryAfterMs * 1_000_000, backoff(failures));
        }

        synchronized long untilNanos() {
            return notBefore - System.nanoTime();
        }
    }

    /** One address of the service, with the pause that all calls observe. */
    private static final class Address extends Pause {
        final String url;

        Address(String given) {
            var whole = given.contains("://") ? given : "http://" + given;
            // Hide the user name and the password, because error messages contain this text.
            var shown = given.replaceAll("(?s)^.*@", "...@");
            URI parsed;
            try {
                parsed = new URI(whole);
            } catch (java.net.URISyntaxException wrong) {
                parsed = URI.create("");
            }
            if (!List.of("http", "https").contains(String.valueOf(parsed.getScheme())) || parsed.getHost() == null) {
                throw new IllegalArgumentException("\"" + shown + "\" is not the address of an idmint service, such as http://127.0.0.1:8080");
            }
            if (given.contains("@") || parsed.getQuery() != null || parsed.getFragment() != null) {
                throw new IllegalArgumentException(
                        "\"" + shown + "\" has a user name, a query or a fragment, which the address of an idmint service must not have");
            }
            url = whole.replaceAll("/+$", "");
        }
    }

    /** Sends requests to the addresses of the service, with failover. */
    private static final class Requests {
        private final HttpClient.Builder builder = HttpClient.newBuilder();
        /** Null until the first request, and after the client has ended because it could not start a thread. */
        private volatile HttpClient http;
        private final List<Address> addresses;
        private final String token;
        private final long timeoutNanos;
        /** The index of the address that responded last. The next request tries it first. */
        private volatile int first;
        /** True if a call timed out and no address has responded since. */
        private volatile boolean isAway;
        private volatile boolean isClosed;

        Requests(List<String> urls, Options options) {
            if (urls.isEmpty()) {
                throw new IllegalArgumentException("urls must have at least one address");
            }
            addresses = urls.stream().map(Address::new).toList();
            token = options.token == null || options.token.isEmpty() ? null : options.token.strip();
            if (token != null && !VISIBLE_ASCII.matcher(token).matches()) {
                throw new IllegalArgumentException("token must be one or more visible ASCII characters");
            }
            timeoutNanos = options.timeout.toNanos();
            // HttpClient follows no redirects by default.
            builder.version(HttpClient.Version.HTTP_1_1);
            if (options.caFile != null) {
                builder.sslContext(trusting(options.caFile));
            }
        }

        private synchronized HttpClient http() {
            if (http == null) {
                http = builder.build();
            }
            return http;
        }

        /** Returns true if the HttpClient will fail every further request, because it could not start a thread. */
        private static boolean hasEnded(Throwable failure) {
            for (var cause = failure; cause != null; cause = cause.getCause()) {
                if (cause instanceof OutOfMemoryError || cause instanceof RejectedExecutionException
                        || String.valueOf(cause.getMessage()).contains("selector manager closed")) {
                    return true;
                }
            }
            return false;
        }

        private static boolean isOfCertificate(Throwable failure) {
            return failure != null && (failure instanceof CertificateException || isOfCertificate(failure.getCause()));
        }

        private static SSLContext trusting(Path caFile) {
            try (InputStream pem = Files.newInputStream(caFile)) {
                var store = KeyStore.getInstance(KeyStore.getDefaultType());
                store.load(null, null);
                for (var authority : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                    store.setCertificateEntry("ca-" + store.size(), authority);
                }
                var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
                trust.init(store);
                var context = SSLContext.getInstance("TLS");
                context.init(null, trust.getTrustManagers(), null);
                return context;
            } catch (IOException | GeneralSecurityException unreadable) {
                throw new IllegalArgumentException(caFile + " has no certificate in PEM format", unreadable);
            }
        }

        synchronized void close() {
            isClosed = true;
            notifyAll();
        }

        /** Sends a request to one address after another until one responds or the timeout passes. It must be safe to repeat. */
        <T> T send(String method, String target, Map<String, String> headers, byte[] body, int count, Function<Map<String, Object>, T> parse) {
            return send(method, target, headers, body, count, parse, System.nanoTime() + timeoutNanos);
        }

        private <T> T send(String method, String target, Map<String, String> headers, byte[] body, int count,
                Function<Map<String, Object>, T> parse, long deadline) {
            // Pauses after failures that concern only this request. Other calls do not observe them.
            var own = new HashMap<Address, Pause>();
            Failure untrusted = null;
            for (boolean unknown = false; ; ) {
                Failure failure = null;
                int begin = first;
                for (int place = 0; place < addresses.size(); place++) {
                    int at = (begin + place) % addresses.size();
                    var address = addresses.get(at);
                    // Each attempt gets a share of the timeout of the call.
                    long share = Math.max(50_000_000L, Math.min(timeoutNanos / (addresses.size() + 1), deadline - System.nanoTime()));
                    var failed = own.getOrDefault(address, address).begin(share);
                    if (failed == null) {
                        if (isClosed) {
                            throw closed(unknown);
                        }
                        try {
                            var answer = attempt(address.url, method, target, headers, body, share, parse);
                            first = at;
                            isAway = false;
                            address.answers();
                            return answer;
                        } catch (Failure raised) {
                            failed = raised;
                            unknown |= raised.outcomeUnknown;
                        }
                        if ((failed.kind == Kind.REFUSED && !failed.isOfCertificate()) || failed.kind == Kind.INTERRUPTED) {
                            address.answers();
                            throw failed.again(unknown, null);
                        }
                        if (failed.isOfRequest()) {
                            address.answers();
                            isAway = false;
                            own.computeIfAbsent(address, none -> new Pause()).fails(failed);
                        } else {
                            own.remove(address);
                            address.fails(failed);
                        }
                    }
                    untrusted = failed.isOfCertificate() ? failed : untrusted;
                    // Prefer a failure that may pass. Prefer a response about this request to a failure without a slug, such as one of a proxy.
                    boolean isBetter = isBusy(failed, count) || (failure != null && failure.hasNoSlug() && failed.isOfRequest());
                    if (failure == null || failure.kind != Kind.UNAVAILABLE || (isBetter && !isBusy(failure, count))) {
                        failure = failed;
                    }
                }
                long wait = Math.max(0, addresses.stream().mapToLong(one -> own.getOrDefault(one, one).untilNanos()).min().getAsLong());
                boolean isLate = System.nanoTime() + wait - deadline > 0;
                if (isAway || isLate || failure.kind != Kind.UNAVAILABLE || isBusy(failure, count) || failure.waitsForOperator()) {
                    // From now on, calls fail without retries until an address responds.
                    isAway |= isLate && !failure.isOfRequest();
                    throw failure.again(unknown, untrusted);
                }
                sleep(wait, unknown);
            }
        }

        /** Returns true if an address is too busy for this many ids. The next request then asks for fewer. */
        private static boolean isBusy(Failure failure, int count) {
            return count > BULK && failure.status == 503;
        }

        private synchronized void sleep(long nanos, boolean outcomeUnknown) {
            long end = System.nanoTime() + nanos;
            try {
                for (long left = nanos; left > 0 && !isClosed; left = end - System.nanoTime()) {
                    wait(left / 1_000_000 + 1);
                }
            } catch (InterruptedException interrupted) {
                throw interrupted(outcomeUnknown, interrupted);
            }
            if (isClosed) {
                throw closed(outcomeUnknown);
            }
        }

        private <T> T attempt(String url, String method, String target, Map<String, String> headers, byte[] body, long share,
                Function<Map<String, Object>, T> parse) {
            var request = HttpRequest.newBuilder(URI.create(url + target)).header("User-Agent", "idmint-java/" + VERSION);
            request.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body));
            if (token != null) {
                request.header("Authorization", "Bearer " + token);
            }
            headers.forEach(request::header);
            HttpResponse<byte[]> response;
            try {
                var sent = http().sendAsync(request.build(), head -> new Limited());
                try {
                    response = sent.get(share, TimeUnit.NANOSECONDS);
                } finally {
                    sent.cancel(true);
                }
            } catch (ExecutionException failed) {
                var cause = failed.getCause();
                boolean isHandshake = cause instanceof SSLHandshakeException;
                // A connection that breaks during the handshake throws the same exception, but without a CertificateException as a cause.
                if (isHandshake && isOfCertificate(cause)) {
                    var message = "the certificate of " + url + " is not trusted; set Options.caFile to the certificate of its authority";
                    throw new Failure(Kind.REFUSED, message, false, quotesToken(cause) ? null : cause);
                }
                if (hasEnded(cause)) {
                    http = null;
                    throw new Failure(Kind.UNAVAILABLE, "no thread can be started", true, cause);
                }
                boolean isSent = !(isHandshake || cause instanceof ConnectException || cause.getCause() instanceof UnresolvedAddressException);
                throw new Failure(Kind.UNAVAILABLE, withoutToken(url + " does not respond: " + cause), isSent, quotesToken(cause) ? null : cause);
            } catch (TimeoutException late) {
                throw new Failure(Kind.UNAVAILABLE, url + " does not respond within " + Duration.ofNanos(share), true, late);
            } catch (OutOfMemoryError | RejectedExecutionException none) {
                http = null;
                throw new Failure(Kind.UNAVAILABLE, "no thread can be started", false, none);
            } catch (InterruptedException interrupted) {
                throw interrupted(true, interrupted);
            }
            var text = new String(response.body(), StandardCharsets.UTF_8);
            if (response.statusCode() < 200 || response.statusCode() >= 300) {
                throw refusal(url, response, new Json(text, this::withoutToken));
            }
            try {
                return parse.apply(new Json(text, UnaryOperator.identity()).object());
            } catch (Failure wide) {
                throw wide;
            } catch (RuntimeException other) {
                var message = "the server at " + url + " is not an idmint service; check the address";
                throw new Failure(Kind.BAD_RESPONSE, message, response.statusCode(), Map.of(), 0, true, quotesToken(other) ? null : other);
            }
        }

        /** Returns true if the message of an error, or of one of its causes, contains the token. */
        private boolean quotesToken(Throwable failure) {
            return failure != null && (!String.valueOf(failure).equals(withoutToken(String.valueOf(failure))) || quotesToken(failure.getCause()));
        }

        private String withoutToken(String text) {
            return token == null ? text : text.replace(token, "(token)");
        }

        private static Failure refusal(String url, HttpResponse<byte[]> response, Json body) {
            int status = response.statusCode();
            Map<String, Object> problem;
            try {
                problem = body.object();
            } catch (RuntimeException other) {
                // The response comes from another program, such as a proxy.
                problem = Map.of();
            }
            boolean redirects = status >= 300 && status < 400;
            var detail = problem.get("detail") instanceof String said ? said
                    : redirects ? "it redirects, which is not followed" : "no reason is given";
            var message = url + " answers " + status + ": " + detail.substring(0, Math.min(detail.length(), 1000));
            var remedy = REMEDIES.getOrDefault(status, problem.get("example") instanceof String works ? "this works: " + works : null);
            var header = response.headers().firstValue("Retry-After").filter(text -> text.matches("[0-9]{1,20}"));
            double millis = problem.get("retry_after_ms") instanceof Double exact ? exact : header.map(Double::valueOf).orElse(0.0) * 1000;
            long retryAfterMs = (long) Math.min(Math.max(millis, 0), RETRY_AFTER_MAX_MS);
            boolean isImporting = status == 409 && String.valueOf(problem.get("type")).endsWith("/ledger-importing");
            var kind = isImporting || List.of(408, 429, 502, 503, 504).contains(status) ? Kind.UNAVAILABLE : Kind.REFUSED;
            boolean outcomeUnknown = status >= 500 && status != 503;
            return new Failure(kind, remedy == null ? message : message + "; " + remedy, status, problem, retryAfterMs, outcomeUnknown, null);
        }
    }

    /** Collects a body up to a limit. */
    private static final class Limited implements HttpResponse.BodySubscriber<byte[]> {
        private final HttpResponse.BodySubscriber<byte[]> whole = HttpResponse.BodySubscribers.ofByteArray();
        private Flow.Subscription subscription;
        private long left = BODY_MAX;

        @Override
        public CompletionStage<byte[]> getBody() {
            return whole.getBody();
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            whole.onSubscribe(subscription);
        }

        @Override
        public void onNext(List<ByteBuffer> parts) {
            left -= parts.stream().mapToLong(ByteBuffer::remaining).sum();
            if (left < 0) {
                subscription.cancel();
                onError(new IOException("the response body is too long"));
            } else {
                whole.onNext(parts);
            }
        }

        @Override
        public void onError(Throwable failure) {
            whole.onError(failure);
        }

        @Override
        public void onComplete() {
            whole.onComplete();
        }
    }

    /** A JSON parser. Objects become maps, and numbers become doubles. */
    private static final class Json {
        private final String text;
        private final UnaryOperator<String> withoutToken;
        private int at;
        private int depth;

        /** Creates a parser that removes the token from the text, because an error response may repeat it. No error quotes the text. */
        Json(String text, UnaryOperator<String> withoutToken) {
            this.text = withoutToken.apply(text);
            this.withoutToken = withoutToken;
        }

        @SuppressWarnings("unchecked")
        Map<String, Object> object() {
            if (!(value() instanceof Map<?, ?> members) || !text.substring(at).isBlank()) {
                throw new IllegalArgumentException("the response is not a JSON object");
            }
            return Collections.unmodifiableMap((Map<String, Object>) members);
        }

        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private boolean takes(char wanted) {
            boolean is = next() == wanted;
            at += is ? 1 : 0;
            return is;
        }

        private void expect(char wanted) {
            if (!takes(wanted)) {
                throw new IllegalArgumentException("no " + wanted + " at " + at);
            }
        }

        private Object value() {
            if (++depth > 64) {
                throw new IllegalArgumentException("the JSON of the response is nested too deeply");
            }
            var value = valueAtDepth();
            depth--;
            return value;
        }

        private Object valueAtDepth() {
            switch (next()) {
                case '{' -> {
                    var members = new LinkedHashMap<String, Object>();
                    expect('{');
                    while (!takes('}')) {
                        var name = string();
                        expect(':');
                        members.put(name, value());
                        if (!takes(',') && next() != '}') {
                            throw new IllegalArgumentException("the JSON of the response has no comma at " + at);
                        }
                    }
                    return members;
                }
                case '[' -> {
                    var items = new ArrayList<Object>();
                    expect('[');
                    while (!takes(']')) {
                        items.add(value());
                        if (!takes(',') && next() != ']') {
                            throw new IllegalArgumentException("the JSON of the response has no comma at " + at);
                        }
                    }
                    return items;
                }
                case '"' -> {
                    return string();
                }
                default -> {
                    int begin = at;
                    while (at < text.length() && "{}[],: \n".indexOf(text.charAt(at)) < 0) {
                        at++;
                    }
                    var word = text.substring(begin, at);
                    return switch (word) {
                        case "null" -> null;
                        case "true", "false" -> Boolean.valueOf(word);
                        default -> number(word);
                    };
                }
            }
        }

        private static Double number(String word) {
            try {
                return Double.valueOf(word);
            } catch (NumberFormatException other) {
                throw new IllegalArgumentException("the JSON of the response has a wrong value");
            }
        }

        private String string() {
            expect('"');
            var out = new StringBuilder();
            for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
                if (c != '\\') {
                    out.append(c);
                    continue;
                }
                char escaped = text.charAt(at++);
                int place = "bfnrt".indexOf(escaped);
                if (escaped == 'u') {
                    out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                } else {
                    out.append(place < 0 ? escaped : "\b\f\n\r\t".charAt(place));
                }
            }
            return withoutToken.apply(out.toString());
        }
    }
}
