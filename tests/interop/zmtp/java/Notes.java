import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.zeromq.ZMQ;

/**
 * The programs of the users' notes, with their version of JeroMQ: REQ and REP with the server
 * binding, PUSH and PULL, LINGER of -1, N and 0, the high-water mark, NOBLOCK and SNDMORE.
 *
 * <p>Arguments: the address of the broker, and one that a REP socket binds, to which the broker
 * connects. It says what has happened, a line for each step.
 */
public final class Notes {
    private static final int PATIENCE_MS = 10_000;

    private final ZMQ.Context context = ZMQ.context(1);
    private final String broker;

    private Notes(String broker) {
        this.broker = broker;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Notes notes = new Notes(arguments[0]);
        notes.requests(arguments[1]);
        notes.doesNotBlock();
        notes.parts();
        notes.linger(-1);
        notes.linger(2_000);
        notes.withoutLinger();
        notes.highWaterMark();
        notes.context.term();
    }

    private ZMQ.Socket made(int type) {
        return made(context, type);
    }

    private static ZMQ.Socket made(ZMQ.Context context, int type) {
        ZMQ.Socket socket = context.socket(type);
        socket.setReceiveTimeOut(PATIENCE_MS);
        socket.setSendTimeOut(PATIENCE_MS);
        socket.setLinger(PATIENCE_MS);
        return socket;
    }

    private ZMQ.Socket connected(int type) {
        ZMQ.Socket socket = made(type);
        socket.connect(broker);
        return socket;
    }

    private static void say(String step, Object found) {
        System.out.println(step + ": " + found);
    }

    private static String text(byte[] data) {
        return data == null ? "nothing" : new String(data, StandardCharsets.UTF_8).trim();
    }

    /** The server binds, the client connects: here to the broker, which connects to the server. */
    private void requests(String address) throws InterruptedException {
        ZMQ.Socket server = made(ZMQ.REP);
        server.bind(address);
        Thread serving = new Thread(() -> {
            for (int count = 0; count < 3; count++) {
                String name = text(server.recv(0));
                server.send("Hello, " + name);
            }
            server.close();
        });
        serving.start();
        ZMQ.Socket client = connected(ZMQ.REQ);
        for (int count = 0; count < 3; count++) {
            client.send("client " + count);
            say("reply", text(client.recv(0)));
        }
        client.close();
        serving.join();
    }

    /** A request of which nobody takes care is queued by the broker, so it does not block. */
    private void doesNotBlock() {
        ZMQ.Socket client = connected(ZMQ.REQ);
        say("sent", client.send("nobody works", ZMQ.NOBLOCK));
        say("recv at once", text(client.recv(ZMQ.NOBLOCK)));
        client.setReceiveTimeOut(500);
        say("recv in time", text(client.recv(0)));
        ZMQ.Socket worker = connected(ZMQ.REP);
        say("request", text(worker.recv(0)));
        worker.send("late");
        client.setReceiveTimeOut(PATIENCE_MS);
        say("reply", text(client.recv(0)));
        client.close();
        worker.close();
    }

    /** The parts of a message come together. */
    private void parts() {
        ZMQ.Socket push = connected(ZMQ.PUSH);
        ZMQ.Context own = ZMQ.context(1);
        ZMQ.Socket pull = pulling(own);
        push.send("a", ZMQ.SNDMORE);
        push.send("b", ZMQ.SNDMORE);
        push.send("c", 0);
        List<String> found = new ArrayList<>();
        do {
            found.add(text(pull.recv(0)));
        } while (pull.hasReceiveMore());
        say("parts", found);
        push.close();
        pull.close();
        own.term();
    }

    /**
     * A PULL socket in a context of its own. The end of the context is the end of its connection:
     * the broker gives nothing of the next step to a socket that is about to close.
     */
    private ZMQ.Socket pulling(ZMQ.Context own) {
        ZMQ.Socket pull = made(own, ZMQ.PULL);
        pull.connect(broker);
        return pull;
    }

    /** A socket that is closed at once leaves its messages within its linger. */
    private void linger(int linger) {
        ZMQ.Socket push = connected(ZMQ.PUSH);
        push.setLinger(linger);
        for (int count = 0; count < 100; count++) {
            push.send(String.valueOf(count));
        }
        push.close();
        say("linger " + linger, drained(100));
    }

    /** Without linger what is pending is discarded; a part has come, in order. */
    private void withoutLinger() {
        ZMQ.Socket push = connected(ZMQ.PUSH);
        push.setLinger(0);
        for (int count = 0; count < 100; count++) {
            push.send(String.valueOf(count));
        }
        push.close();
        say("linger 0", drained(100) <= 100);
    }

    /** How many messages come, in order from 0, before nothing comes for a while. */
    private int drained(int most) {
        ZMQ.Context own = ZMQ.context(1);
        ZMQ.Socket pull = pulling(own);
        pull.setReceiveTimeOut(2_000);
        int count = 0;
        while (count < most) {
            byte[] data = pull.recv(0);
            if (data == null) {
                break;
            }
            if (!text(data).equals(String.valueOf(count))) {
                throw new AssertionError(text(data) + " came, not " + count);
            }
            count++;
        }
        pull.close();
        own.term();
        return count;
    }

    /** A PUSH into a full queue is queued up to the mark, then it blocks; nothing is lost. */
    private void highWaterMark() {
        ZMQ.Socket push = made(ZMQ.PUSH);
        push.setSndHWM(10);
        push.setSendTimeOut(1_000);
        push.connect(broker);
        int sent = 0;
        String tail = " ".repeat(100_000);
        while (push.send(sent + tail)) {
            sent++;
        }
        say("blocked", sent > 20);
        say("sent at once", push.send("no", ZMQ.NOBLOCK));
        say("drained", drained(sent) == sent);
        push.close();
    }
}
