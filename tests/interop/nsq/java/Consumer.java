import com.github.brainlag.nsq.NSQConsumer;
import com.github.brainlag.nsq.lookup.DefaultNSQLookup;
import com.github.brainlag.nsq.lookup.NSQLookup;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Prints the messages of a channel until its input ends: LOOKUP_HOST LOOKUP_PORT TOPIC CHANNEL. */
public final class Consumer {
    private Consumer() {
    }

    public static void main(String[] words) throws Exception {
        PrintStream output = System.out;
        System.setOut(System.err);  // where the library's log goes
        NSQLookup lookup = new DefaultNSQLookup();
        lookup.addLookupAddress(words[0], Integer.parseInt(words[1]));
        NSQConsumer consumer = new NSQConsumer(lookup, words[2], words[3], message -> {
            synchronized (output) {
                output.println(new String(message.getMessage(), StandardCharsets.UTF_8));
                output.flush();
            }
            message.finished();
        });
        consumer.setLookupPeriod(500);
        // One at a time, in the order in which they come.
        consumer.setExecutor(Runnable::run);
        consumer.start();
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }
}
