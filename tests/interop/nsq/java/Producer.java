import com.github.brainlag.nsq.NSQProducer;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Sends numbered texts to a topic: HOST PORT TOPIC FIRST COUNT. A producer needs no lookupd. */
public final class Producer {
    private Producer() {
    }

    public static void main(String[] words) throws Exception {
        PrintStream output = System.out;
        System.setOut(System.err);  // where the library's log goes
        int first = Integer.parseInt(words[3]);
        int count = Integer.parseInt(words[4]);
        NSQProducer producer =
            new NSQProducer().addAddress(words[0], Integer.parseInt(words[1])).start();
        for (int number = first; number < first + count; number++) {
            producer.produce(words[2], ("message " + number).getBytes(StandardCharsets.UTF_8));
        }
        output.println("sent " + count);
        System.exit(0);
    }
}
