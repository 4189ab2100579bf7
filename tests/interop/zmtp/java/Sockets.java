import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.zeromq.ZMQ;

/**
 * A program with JeroMQ, ZeroMQ in Java without libzmq: does with its sockets what the lines of a
 * test say. It is compiled with versions from 0.3 to 0.6.
 */
@SuppressWarnings("deprecation")
public final class Sockets {
    private static final Map<String, Integer> TYPES = new HashMap<>();

    static {
        TYPES.put("PUSH", ZMQ.PUSH);
        TYPES.put("PULL", ZMQ.PULL);
        TYPES.put("PUB", ZMQ.PUB);
        TYPES.put("SUB", ZMQ.SUB);
        TYPES.put("REQ", ZMQ.REQ);
        TYPES.put("REP", ZMQ.REP);
        TYPES.put("DEALER", ZMQ.DEALER);
        TYPES.put("ROUTER", ZMQ.ROUTER);
    }

    private static final int PATIENCE_MS = 20_000;
    private static final int HANDSHAKE_MS = 1_000;

    private final ZMQ.Context context = ZMQ.context(1);
    private final Map<String, ZMQ.Socket> sockets = new HashMap<>();

    private Sockets() {}

    public static void main(String[] arguments) throws IOException {
        Sockets program = new Sockets();
        PrintStream output = new PrintStream(System.out, true, "UTF-8");
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = program.take(Arrays.asList(line.split(" ")));
            } catch (Exception error) {
                answer = "refused " + error.toString().replace('\n', ' ');
            }
            output.println(answer);
        }
        System.exit(0);
    }

    private static String word(byte[] part) {
        StringBuilder text = new StringBuilder();
        for (byte each : part) {
            text.append(Character.forDigit((each >> 4) & 15, 16));
            text.append(Character.forDigit(each & 15, 16));
        }
        return part.length == 0 ? "-" : text.toString();
    }

    private static byte[] part(String text) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int at = 0; !text.equals("-") && at < text.length(); at += 2) {
            bytes.write(Integer.parseInt(text.substring(at, at + 2), 16));
        }
        return bytes.toByteArray();
    }

    private String take(List<String> words) throws ReflectiveOperationException {
        String name = words.get(1);
        if (words.get(0).equals("open")) {
            return open(name, words.subList(2, words.size()));
        }
        ZMQ.Socket socket = sockets.get(name);
        switch (words.get(0)) {
            case "recv":
                return recv(socket, Integer.parseInt(words.get(2)));
            case "send":
                return send(socket, words.subList(2, words.size()));
            case "subscribe":
                socket.subscribe(part(words.get(2)));
                return "did";
            case "unsubscribe":
                socket.unsubscribe(part(words.get(2)));
                return "did";
            case "close":
                socket.close();
                return "did";
            default:
                return "refused no such word: " + words.get(0);
        }
    }

    private String open(String name, List<String> words) throws ReflectiveOperationException {
        ZMQ.Socket socket = context.socket(TYPES.get(words.get(0)));
        socket.setSendTimeOut(PATIENCE_MS);
        socket.setLinger(5_000);
        Class<?> type = ZMQ.Socket.class;
        // Versions before 0.4 have none of these methods, and play no scenario with passwords.
        try {
            // Of a hundred connections one or two say nothing, to libzmq as well: try them again.
            type.getMethod("setHandshakeIvl", int.class).invoke(socket, HANDSHAKE_MS);
        } catch (NoSuchMethodException error) {
            System.err.println("no time for handshakes: " + error.getMessage());
        }
        if (words.size() > 3) {
            type.getMethod("setPlainUsername", String.class).invoke(socket, words.get(3));
            type.getMethod("setPlainPassword", String.class).invoke(socket, words.get(4));
        }
        sockets.put(name, socket);
        if (words.get(1).equals("bind")) {
            socket.bind(words.get(2));
        } else {
            socket.connect(words.get(2));
        }
        return "did";
    }

    private static String send(ZMQ.Socket socket, List<String> words) {
        int last = words.size() - 1;
        for (int at = 0; at <= last; at++) {
            if (!socket.send(part(words.get(at)), at < last ? ZMQ.SNDMORE : 0)) {
                return "refused by send";
            }
        }
        return "did";
    }

    private static String recv(ZMQ.Socket socket, int milliseconds) {
        socket.setReceiveTimeOut(milliseconds);
        byte[] first = socket.recv(0);
        if (first == null) {
            return "none";
        }
        StringBuilder text = new StringBuilder("got ").append(word(first));
        while (socket.hasReceiveMore()) {
            text.append(' ').append(word(socket.recv(0)));
        }
        return text.toString();
    }
}
