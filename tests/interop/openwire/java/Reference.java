import org.apache.activemq.broker.BrokerService;

/** ActiveMQ itself, without a disk, on a free port; it ends with its standard input. */
public final class Reference {
    private Reference() {
    }

    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("reference");
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.setUseShutdownHook(false);
        broker.addConnector("tcp://127.0.0.1:0");
        broker.start();
        broker.waitUntilStarted();
        System.out.println(broker.getTransportConnectors().get(0).getPublishableConnectString());
        System.out.flush();
        while (System.in.read() >= 0) {
            // Until it is closed.
        }
        broker.stop();
        System.exit(0);
    }
}
