import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.brainlag.nsq.NSQConfig;
import com.github.brainlag.nsq.NSQConsumer;
import com.github.brainlag.nsq.NSQMessage;
import com.github.brainlag.nsq.NSQProducer;
import com.github.brainlag.nsq.ServerAddress;
import com.github.brainlag.nsq.lookup.DefaultNSQLookup;
import com.github.brainlag.nsq.lookup.NSQLookup;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A program with nsq-client (JavaNSQClient): publishes and consumes as the lines of a test say, one
 * JSON value a line.
 */
public final class Client {
    /** What the test reads; the library's log, which goes to standard output, must not. */
    private static final PrintStream OUTPUT = System.out;

    static {
        System.setOut(System.err);
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ScheduledExecutorService LATER = Executors.newScheduledThreadPool(2);

    private final JsonNode given;
    private NSQProducer producer;

    private Client(JsonNode given) {
        this.given = given;
    }

    public static void main(String[] words) throws Exception {
        Client client = new Client(JSON.readTree(words[0]));
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            client.take(JSON.readTree(line));
        }
        System.exit(0);
    }

    private static synchronized void say(ObjectNode fields) {
        byte[] line = (fields + "\n").getBytes(StandardCharsets.UTF_8);
        OUTPUT.write(line, 0, line.length);
        OUTPUT.flush();
    }

    private static void say(String key, String value) {
        say(JSON.createObjectNode().put(key, value));
    }

    private void take(JsonNode line) {
        boolean consumes = line.get("do").asText().equals("consume");
        try {
            if (consumes) {
                consume(line);
            } else {
                publish(line);
            }
        } catch (Exception error) {
            say("refused", error.toString());
            return;
        }
        say("did", consumes ? "consume" : "publish");
    }

    private NSQConfig config() throws Exception {
        NSQConfig chosen = new NSQConfig();
        String ca = given.get("ca").asText();
        if (!ca.isEmpty()) {
            chosen.setSslContext(SslContextBuilder.forClient().trustManager(new File(ca)).build());
        }
        switch (given.get("compression").asText()) {
            case "snappy": chosen.setCompression(NSQConfig.Compression.SNAPPY); break;
            case "deflate":
                chosen.setCompression(NSQConfig.Compression.DEFLATE);
                chosen.setDeflateLevel(6);  // without a level the library fails
                break;
            default: break;
        }
        return chosen;
    }

    private static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asText()));
        return found;
    }

    private static ServerAddress address(String text) {
        int colon = text.lastIndexOf(':');
        return new ServerAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
    }

    /** The library has no list of nsqds for consumers, but lets a program say where they are. */
    private NSQLookup lookup() {
        NSQLookup lookupd = new DefaultNSQLookup();
        for (String each : texts(given.get("lookupd"))) {
            ServerAddress where = address(each);
            lookupd.addLookupAddress(where.getHost(), where.getPort());
        }
        if (given.get("lookupd").size() > 0) {
            return lookupd;
        }
        Set<ServerAddress> fixed = new HashSet<>();
        texts(given.get("nsqd")).forEach(each -> fixed.add(address(each)));
        return new NSQLookup() {
            @Override
            public Set<ServerAddress> lookup(String topic) {
                return fixed;
            }

            @Override
            public void addLookupAddress(String host, int port) {
                throw new UnsupportedOperationException();
            }
        };
    }

    private void consume(JsonNode line) throws Exception {
        NSQConsumer consumer = new NSQConsumer(
            lookup(), line.get("topic").asText(), line.get("channel").asText(), Client::handle, config(),
            error -> System.err.println("consumer: " + error));
        consumer.setLookupPeriod(1000);
        consumer.start();
    }

    private static void handle(NSQMessage message) {
        String body = new String(message.getMessage(), StandardCharsets.UTF_8);
        say(JSON.createObjectNode().put("message", body).put("attempts", message.getAttempts()));
        switch (message.getAttempts() == 1 ? body.split(" ")[0] : "fine") {
            case "again":
                message.requeue(0);
                break;
            case "slow":
                message.touch();
                LATER.schedule(message::touch, 600, TimeUnit.MILLISECONDS);
                LATER.schedule(message::touch, 1200, TimeUnit.MILLISECONDS);
                LATER.schedule(message::finished, 1600, TimeUnit.MILLISECONDS);
                break;
            case "forgotten":
                break;
            default:
                message.finished();
        }
    }

    private void publish(JsonNode line) throws Exception {
        if (producer == null) {
            producer = new NSQProducer();
            for (String each : texts(given.get("nsqd"))) {
                ServerAddress where = address(each);
                producer.addAddress(where.getHost(), where.getPort());
            }
            producer.setConfig(config());
            producer.start();
        }
        List<byte[]> bodies = new ArrayList<>();
        texts(line.get("bodies")).forEach(each -> bodies.add(each.getBytes(StandardCharsets.UTF_8)));
        String topic = line.get("topic").asText();
        if (bodies.size() == 1) {
            producer.produce(topic, bodies.get(0));
        } else {
            producer.produceMulti(topic, bodies);
        }
    }
}
