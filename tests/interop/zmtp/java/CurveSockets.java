import java.util.Arrays;
import org.zeromq.ZMQ;

/**
 * Sockets of JeroMQ with CURVE: PUSH and PULL, PUB and SUB, REQ and REP. The arguments are the address,
 * the server's public key, and both keys of the sockets.
 */
@SuppressWarnings("deprecation")
public final class CurveSockets {
    private static final int[] SIZES = {0, 1, 255, 256, 8_191, 8_192, 1_048_576};

    private static byte[] serverKey;
    private static byte[] publicKey;
    private static byte[] secretKey;

    private CurveSockets() {}

    public static void main(String[] arguments) throws InterruptedException {
        ZMQ.Context context = ZMQ.context(1);
        String address = arguments[0];
        serverKey = ZMQ.Curve.z85Decode(arguments[1]);
        publicKey = ZMQ.Curve.z85Decode(arguments[2]);
        secretKey = ZMQ.Curve.z85Decode(arguments[3]);
        tasks(context, address);
        news(context, address);
        requests(context, address);
        context.term();
        System.out.println("done");
    }

    private static ZMQ.Socket connected(ZMQ.Context context, int type, String address) {
        ZMQ.Socket socket = context.socket(type);
        socket.setReceiveTimeOut(20_000);
        socket.setLinger(5_000);
        socket.setCurveServerKey(serverKey);
        socket.setCurvePublicKey(publicKey);
        socket.setCurveSecretKey(secretKey);
        socket.connect(address);
        return socket;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            System.out.println("wrong: " + what);
            System.exit(1);
        }
    }

    private static void tasks(ZMQ.Context context, String address) {
        ZMQ.Socket push = connected(context, ZMQ.PUSH, address);
        for (int size : SIZES) {
            byte[] body = new byte[size];
            Arrays.fill(body, (byte) size);
            push.send(body, ZMQ.SNDMORE);
            push.send("end".getBytes(), 0);
        }
        push.close();
        ZMQ.Socket pull = connected(context, ZMQ.PULL, address);
        for (int size : SIZES) {
            byte[] body = pull.recv(0);
            check(body != null && body.length == size && pull.hasReceiveMore(), "size " + size);
            check("end".equals(pull.recvStr()), "the second part");
        }
        check(pull.recv(ZMQ.NOBLOCK) == null, "nothing is left");
        pull.close();
    }

    private static void news(ZMQ.Context context, String address) throws InterruptedException {
        ZMQ.Socket subscriber = connected(context, ZMQ.SUB, address);
        subscriber.subscribe("A".getBytes());
        ZMQ.Socket publisher = connected(context, ZMQ.PUB, address);
        Thread.sleep(1_000);
        publisher.send("B1");
        publisher.send("A1");
        check("A1".equals(subscriber.recvStr()), "what was subscribed to");
        publisher.close();
        subscriber.close();
    }

    private static void requests(ZMQ.Context context, String address) {
        ZMQ.Socket asker = connected(context, ZMQ.REQ, address);
        ZMQ.Socket worker = connected(context, ZMQ.REP, address);
        for (int number = 0; number < 10; number++) {
            asker.send("question " + number);
            check(("question " + number).equals(worker.recvStr()), "a request");
            worker.send("answer " + number);
            check(("answer " + number).equals(asker.recvStr()), "a reply");
        }
        asker.close();
        worker.close();
    }
}
