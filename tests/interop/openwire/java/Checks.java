import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.RedeliveryPolicy;

/** What the checks share: connections that are closed again, names of their own, and a verdict. */
abstract class Checks {
    static final long SOON = 3000;
    static final long NEVER = 200;
    static final int AUTO = Session.AUTO_ACKNOWLEDGE;
    static final int CLIENT = Session.CLIENT_ACKNOWLEDGE;
    static final int LAZY = Session.DUPS_OK_ACKNOWLEDGE;
    static final int INDIVIDUAL = 4;

    /** A part of a program, which may fail. */
    interface Body {
        void run() throws Exception;
    }

    private final List<Connection> connections = new ArrayList<>();
    private final String only;
    private int count;
    private int failed;
    protected final String url;

    Checks(String url, String only) {
        this.url = url;
        this.only = only;
    }

    /** Runs one check, named by its section of JMS 1.1 or by the extension of ActiveMQ. */
    void check(String section, String name, Body body) {
        String title = section + " " + name;
        if (!title.contains(only)) {
            return;
        }
        count++;
        String verdict = "ok";
        try {
            body.run();
        } catch (Throwable error) {
            verdict = "no: " + error;
            failed++;
        }
        System.out.println(title + "\t" + verdict.replace('\n', ' '));
        System.out.flush();
        for (Connection each : connections) {
            try {
                each.close();
            } catch (JMSException error) {
                // The check may have broken it.
            }
        }
        connections.clear();
    }

    /** Tells how many there were. */
    void end() {
        System.out.println("END " + count + " checks, " + failed + " failed");
    }

    String name(String what) {
        return what + "." + count + "." + System.nanoTime();
    }

    ActiveMQConnectionFactory factory(String options) {
        String joint = url.contains("?") ? "&" : "?";
        ActiveMQConnectionFactory found =
            new ActiveMQConnectionFactory(options.isEmpty() ? url : url + joint + options);
        RedeliveryPolicy policy = new RedeliveryPolicy();
        policy.setInitialRedeliveryDelay(0);
        policy.setRedeliveryDelay(0);
        policy.setMaximumRedeliveries(2);
        found.setRedeliveryPolicy(policy);
        found.setTrustAllPackages(true);
        return found;
    }

    Connection connection(String options) throws JMSException {
        Connection made = factory(options).createConnection();
        connections.add(made);
        return made;
    }

    /** A connection by a whole URL. */
    Connection connectionTo(String whole) throws JMSException {
        Connection made = new ActiveMQConnectionFactory(whole).createConnection();
        connections.add(made);
        return made;
    }

    Connection started() throws JMSException {
        Connection made = connection("");
        made.start();
        return made;
    }

    Connection named(String id) throws JMSException {
        Connection made = connection("");
        made.setClientID(id);
        made.start();
        return made;
    }

    Session session(int mode) throws JMSException {
        return started().createSession(mode == 0, mode);
    }

    static void send(Session session, Destination to, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(to);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    static String text(Message message) throws JMSException {
        if (message == null) {
            return null;
        }
        return message instanceof TextMessage ? ((TextMessage) message).getText() : "" + message;
    }

    static String next(MessageConsumer consumer) throws JMSException {
        return text(consumer.receive(SOON));
    }

    static void expect(MessageConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) {
            same(text, next(consumer));
        }
    }

    static void nothing(MessageConsumer consumer) throws JMSException {
        same(null, text(consumer.receive(NEVER)));
    }

    static void same(Object wanted, Object found) {
        if (wanted == null ? found != null : !wanted.equals(found)) {
            throw new AssertionError("wanted " + wanted + ", found " + found);
        }
    }

    static void is(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void fails(Class<? extends Exception> kind, Body body) throws Exception {
        try {
            body.run();
        } catch (Exception error) {
            if (kind.isInstance(error)) {
                return;
            }
            throw error;
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    /** How many there are. */
    static int length(Enumeration<?> found) {
        return Collections.list(found).size();
    }

    Queue queue(Session session) throws JMSException {
        return session.createQueue(name("q"));
    }

    Topic topic(Session session) throws JMSException {
        return session.createTopic(name("t"));
    }
}
