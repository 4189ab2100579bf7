import java.io.File;
import org.apache.activemq.broker.BrokerService;

/**
 * ActiveMQ itself, which ends with its standard input: Reference [PORT [FOLDER]].
 *
 * <p>It listens to a free port unless one is named, and keeps nothing unless a folder is.  It
 * delays messages, as it does where its configuration says so.
 */
public final class Reference {
    private Reference() {
    }

    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("reference");
        broker.setPersistent(arguments.length > 1);
        if (arguments.length > 1) {
            broker.setDataDirectoryFile(new File(arguments[1]));
        }
        broker.setSchedulerSupport(true);
        broker.setUseJmx(false);
        broker.setUseShutdownHook(false);
        broker.addConnector("tcp://127.0.0.1:" + (arguments.length > 0 ? arguments[0] : "0"));
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
