import org.zeromq.ZMQ;

/** The same sockets with CURVE: behind the address the server's key, and both of their own. */
public final class CurveSockets {
    private CurveSockets() {}

    public static void main(String[] arguments) throws InterruptedException {
        byte[] server = ZMQ.Curve.z85Decode(arguments[1]);
        byte[] ours = ZMQ.Curve.z85Decode(arguments[2]);
        byte[] secret = ZMQ.Curve.z85Decode(arguments[3]);
        Sockets.prepare =
                socket -> {
                    socket.setCurveServerKey(server);
                    socket.setCurvePublicKey(ours);
                    socket.setCurveSecretKey(secret);
                };
        Sockets.main(arguments);
    }
}
