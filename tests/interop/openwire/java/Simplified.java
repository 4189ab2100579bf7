import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.CompletionListener;
import javax.jms.DeliveryMode;
import javax.jms.IllegalStateRuntimeException;
import javax.jms.InvalidClientIDRuntimeException;
import javax.jms.InvalidSelectorRuntimeException;
import javax.jms.JMSConsumer;
import javax.jms.JMSContext;
import javax.jms.JMSException;
import javax.jms.JMSProducer;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageFormatException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;

/** What JMS 2.0 has more than 1.1: the simplified interface, delays, shared subscriptions. */
public final class Simplified extends Checks {
    private final List<JMSContext> contexts = new ArrayList<>();

    private Simplified(String url, String only) {
        super(url, only);
    }

    public static void main(String[] arguments) throws Exception {
        Simplified all = new Simplified(arguments[0], arguments.length > 1 ? arguments[1] : "");
        all.contexts();
        all.producers();
        all.consumers();
        all.modes();
        all.topics();
        all.messages();
        all.later();
        all.end();
        System.exit(0);
    }

    private void part(String section, String name, Body body) {
        check("2.0 " + section, name, () -> {
            try {
                body.run();
            } finally {
                for (JMSContext each : contexts) {
                    each.close();
                }
                contexts.clear();
            }
        });
    }

    private JMSContext kept(JMSContext made) {
        contexts.add(made);
        return made;
    }

    private JMSContext context() throws JMSException {
        return kept(factory("").createContext());
    }

    private JMSContext context(int mode) throws JMSException {
        return kept(factory("").createContext(mode));
    }

    private Queue queue(JMSContext context) {
        return context.createQueue(name("q"));
    }

    private Topic topic(JMSContext context) {
        return context.createTopic(name("t"));
    }

    private static void come(JMSConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) {
            same(text, text(consumer.receive(SOON)));
        }
    }

    private static void none(JMSConsumer consumer) throws JMSException {
        same(null, text(consumer.receive(NEVER)));
    }

    private void contexts() {
        part("JMSContext", "sends and receives a text", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "t\u00e4xt");
            come(context.createConsumer(queue), "t\u00e4xt");
        });
        part("JMSContext", "with a user and a password", () -> {
            JMSContext context = kept(factory("").createContext("ann", "pw"));
            Queue queue = queue(context);
            context.createProducer().send(queue, "1");
            come(context.createConsumer(queue), "1");
        });
        part("JMSContext", "a context of a context, in another mode", () -> {
            JMSContext context = context();
            JMSContext other = kept(context.createContext(JMSContext.SESSION_TRANSACTED));
            is(other.getTransacted() && !context.getTransacted(), "both the same");
            Queue queue = queue(context);
            other.createProducer().send(queue, "1");
            other.commit();
            come(context.createConsumer(queue), "1");
        });
        part("JMSContext", "starts by itself, or when it is told to", () -> {
            JMSContext context = context();
            context.setAutoStart(false);
            Queue queue = queue(context);
            JMSConsumer consumer = context.createConsumer(queue);
            context.createProducer().send(queue, "1");
            none(consumer);
            context.start();
            come(consumer, "1");
            context.stop();
            context.createProducer().send(queue, "2");
            none(consumer);
            context.start();
            come(consumer, "2");
        });
        part("JMSContext", "a client id is for one at a time", () -> {
            String id = name("id");
            JMSContext context = context();
            context.setClientID(id);
            context.start();
            same(id, context.getClientID());
            JMSContext other = context();
            fails(InvalidClientIDRuntimeException.class, () -> {
                other.setClientID(id);
                other.start();
            });
        });
        part("JMSContext", "a temporary queue for the answer", () -> {
            JMSContext context = context();
            Queue service = queue(context);
            TemporaryQueue answers = context.createTemporaryQueue();
            JMSConsumer heard = context.createConsumer(answers);
            context.createProducer().setJMSReplyTo(answers).send(service, "?");
            JMSContext other = context();
            Message request = other.createConsumer(service).receive(SOON);
            other.createProducer().setJMSCorrelationID(request.getJMSMessageID())
                .send(request.getJMSReplyTo(), "yes");
            come(heard, "yes");
        });
        part("JMSContext", "a browser", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "1").send(queue, "2");
            try (QueueBrowser browser = context.createBrowser(queue)) {
                same(2, length(browser.getEnumeration()));
            }
            come(context.createConsumer(queue), "1", "2");
        });
        part("JMSContext", "one that is closed", () -> {
            JMSContext context = context();
            context.close();
            fails(IllegalStateRuntimeException.class, () -> context.createTextMessage("x"));
        });
        part("JMSContext", "meta data", () -> {
            same("ActiveMQ", context().getMetaData().getJMSProviderName());
        });
    }

    private void producers() {
        part("JMSProducer", "sends bytes, a map, an object and a message", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer()
                .send(queue, new byte[] {1, 2})
                .send(queue, Map.<String, Object>of("n", 7))
                .send(queue, (Serializable) new ArrayList<>(List.of("one")))
                .send(queue, context.createTextMessage("m"));
            JMSConsumer consumer = context.createConsumer(queue);
            BytesMessage bytes = (BytesMessage) consumer.receive(SOON);
            same(2L, bytes.getBodyLength());
            same(7, ((MapMessage) consumer.receive(SOON)).getInt("n"));
            same(List.of("one"), ((ObjectMessage) consumer.receive(SOON)).getObject());
            come(consumer, "m");
        });
        part("JMSProducer", "headers of its own", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            Queue answers = queue(context);
            context.createProducer().setPriority(7).setTimeToLive(60000)
                .setDeliveryMode(DeliveryMode.NON_PERSISTENT).setJMSCorrelationID("c")
                .setJMSType("kind").setJMSReplyTo(answers).send(queue, "x");
            Message found = context.createConsumer(queue).receive(SOON);
            same(7, found.getJMSPriority());
            same(found.getJMSTimestamp() + 60000, found.getJMSExpiration());
            same(DeliveryMode.NON_PERSISTENT, found.getJMSDeliveryMode());
            same("c", found.getJMSCorrelationID());
            same("kind", found.getJMSType());
            same(answers, found.getJMSReplyTo());
        });
        part("JMSProducer", "properties of all types", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            JMSProducer producer = context.createProducer().setProperty("z", true)
                .setProperty("b", (byte) 1).setProperty("h", (short) 2).setProperty("i", 3)
                .setProperty("l", 4L).setProperty("f", 5.5f).setProperty("d", 6.5)
                .setProperty("s", "seven");
            is(producer.propertyExists("i"), "it is not there");
            producer.send(queue, "x");
            Message found = context.createConsumer(queue).receive(SOON);
            same(true, found.getObjectProperty("z"));
            same((byte) 1, found.getObjectProperty("b"));
            same((short) 2, found.getObjectProperty("h"));
            same(3, found.getObjectProperty("i"));
            same(4L, found.getObjectProperty("l"));
            same(5.5f, found.getObjectProperty("f"));
            same(6.5, found.getObjectProperty("d"));
            same("seven", found.getObjectProperty("s"));
        });
        part("JMSProducer", "clears its properties", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().setProperty("n", 1).clearProperties().send(queue, "x");
            is(!context.createConsumer(queue).receive(SOON).propertyExists("n"), "it is there");
        });
        part("JMSProducer", "an expired message does not come", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().setTimeToLive(1).send(queue, "old");
            context.createProducer().send(queue, "new");
            Thread.sleep(20);
            come(context.createConsumer(queue), "new");
        });
    }

    private void consumers() {
        part("JMSConsumer", "waits, or does not", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            JMSConsumer consumer = context.createConsumer(queue);
            same(null, consumer.receiveNoWait());
            context.createProducer().send(queue, "1");
            come(consumer, "1");
        });
        part("JMSConsumer", "receiveBody", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "1");
            same("1", context.createConsumer(queue).receiveBody(String.class, SOON));
        });
        part("JMSConsumer", "receiveBodyNoWait", () -> {
            JMSContext context = context();
            same(null, context.createConsumer(queue(context)).receiveBodyNoWait(String.class));
        });
        part("JMSConsumer", "a selector", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            JMSConsumer consumer = context.createConsumer(queue, "n > 1");
            same("n > 1", consumer.getMessageSelector());
            context.createProducer().setProperty("n", 1).send(queue, "1");
            context.createProducer().setProperty("n", 2).send(queue, "2");
            come(consumer, "2");
            none(consumer);
        });
        part("JMSConsumer", "a selector that cannot be read", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            fails(InvalidSelectorRuntimeException.class, () -> context.createConsumer(queue, "= ="));
        });
        part("JMSConsumer", "a listener", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            context.createConsumer(queue).setMessageListener(message -> {
                try {
                    found.add(message.getBody(String.class));
                } catch (JMSException error) {
                    found.add("" + error);
                }
            });
            context.createProducer().send(queue, "1").send(queue, "2");
            same("1", found.poll(SOON, TimeUnit.MILLISECONDS));
            same("2", found.poll(SOON, TimeUnit.MILLISECONDS));
        });
        part("JMSConsumer", "one that is closed leaves what it did not take", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "1").send(queue, "2");
            JMSConsumer consumer = context.createConsumer(queue);
            come(consumer, "1");
            consumer.close();
            come(context.createConsumer(queue), "2");
        });
    }

    private void modes() {
        part("modes", "CLIENT_ACKNOWLEDGE", () -> {
            JMSContext context = context(JMSContext.CLIENT_ACKNOWLEDGE);
            Queue queue = queue(context);
            context.createProducer().send(queue, "1").send(queue, "2").send(queue, "3");
            JMSConsumer consumer = context.createConsumer(queue);
            come(consumer, "1", "2");
            context.acknowledge();
            come(consumer, "3");
            context.close();
            come(context().createConsumer(queue), "3");
        });
        part("modes", "recover", () -> {
            JMSContext context = context(JMSContext.CLIENT_ACKNOWLEDGE);
            Queue queue = queue(context);
            context.createProducer().send(queue, "1");
            JMSConsumer consumer = context.createConsumer(queue);
            come(consumer, "1");
            context.recover();
            Message again = consumer.receive(SOON);
            is(again.getJMSRedelivered(), "not redelivered");
            same(2, again.getIntProperty("JMSXDeliveryCount"));
        });
        part("modes", "SESSION_TRANSACTED commits", () -> {
            JMSContext context = context(JMSContext.SESSION_TRANSACTED);
            Queue queue = queue(context);
            JMSConsumer other = context().createConsumer(queue);
            context.createProducer().send(queue, "1").send(queue, "2");
            none(other);
            context.commit();
            come(other, "1", "2");
        });
        part("modes", "SESSION_TRANSACTED rolls back", () -> {
            JMSContext context = context(JMSContext.SESSION_TRANSACTED);
            Queue queue = queue(context);
            context.createProducer().send(queue, "1");
            context.rollback();
            context.createProducer().send(queue, "2");
            context.commit();
            JMSConsumer consumer = context.createConsumer(queue);
            come(consumer, "2");
            context.rollback();
            come(consumer, "2");
            context.commit();
        });
        part("modes", "DUPS_OK_ACKNOWLEDGE", () -> {
            JMSContext context = context(JMSContext.DUPS_OK_ACKNOWLEDGE);
            Queue queue = queue(context);
            context.createProducer().send(queue, "1");
            come(context.createConsumer(queue), "1");
        });
    }

    private void topics() {
        part("topics", "each subscriber gets it", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            JMSConsumer one = context.createConsumer(topic);
            JMSConsumer two = context().createConsumer(topic);
            context.createProducer().send(topic, "1");
            come(one, "1");
            come(two, "1");
        });
        part("topics", "a durable consumer", () -> {
            String id = name("id");
            JMSContext context = context();
            context.setClientID(id);
            Topic topic = topic(context);
            JMSConsumer consumer = context.createDurableConsumer(topic, "s");
            context.createProducer().send(topic, "1");
            come(consumer, "1");
            context.close();
            JMSContext other = context();
            other.createProducer().send(topic, "2");
            JMSContext again = context();
            again.setClientID(id);
            JMSConsumer back = again.createDurableConsumer(topic, "s");
            come(back, "2");
            back.close();
            again.unsubscribe("s");
        });
        part("topics", "a durable consumer with a selector, and without its own", () -> {
            JMSContext context = context();
            context.setClientID(name("id"));
            Topic topic = topic(context);
            JMSConsumer consumer = context.createDurableConsumer(topic, "s", "n = 1", true);
            context.createProducer().setProperty("n", 1).send(topic, "own");
            context().createProducer().setProperty("n", 2).send(topic, "unwanted");
            context().createProducer().setProperty("n", 1).send(topic, "1");
            come(consumer, "1");
            none(consumer);
        });
        part("topics", "a consumer without its own", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            JMSConsumer consumer = context.createConsumer(topic, null, true);
            context.createProducer().send(topic, "own");
            context().createProducer().send(topic, "1");
            come(consumer, "1");
        });
    }

    private void messages() {
        part("Message", "getBody and isBodyAssignableTo", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "x");
            Message found = context.createConsumer(queue).receive(SOON);
            same("x", found.getBody(String.class));
            is(found.isBodyAssignableTo(String.class), "it is a text");
            is(!found.isBodyAssignableTo(Map.class), "it is no map");
            fails(MessageFormatException.class, () -> found.getBody(Map.class));
        });
        part("Message", "JMSXDeliveryCount", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "x");
            Message found = context.createConsumer(queue).receive(SOON);
            same(1, found.getIntProperty("JMSXDeliveryCount"));
        });
        part("Message", "getJMSDeliveryTime", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().send(queue, "x");
            Message found = context.createConsumer(queue).receive(SOON);
            is(found.getJMSTimestamp() == found.getJMSDeliveryTime(), "another than the timestamp");
        });
        part("closing", "connections, sessions, producers and consumers close by themselves", () -> {
            try (javax.jms.Connection connection = factory("").createConnection();
                 Session session = connection.createSession();
                 MessageProducer producer = session.createProducer(session.createQueue(name("q")))) {
                producer.send(session.createTextMessage("x"));
            }
        });
        part("closing", "a session by its mode alone", () -> {
            try (javax.jms.Connection connection = factory("").createConnection();
                 Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
                is(session.getTransacted(), "it is not");
            }
        });
    }

    /** What clients of ActiveMQ offered late, or not at all. */
    private void later() {
        part("delay", "JMSProducer.setDeliveryDelay", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().setDeliveryDelay(300).send(queue, "late");
            JMSConsumer consumer = context.createConsumer(queue);
            none(consumer);
            come(consumer, "late");
        });
        part("delay", "MessageProducer.setDeliveryDelay", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryDelay(300);
            producer.send(session.createTextMessage("late"));
            MessageConsumer consumer = session.createConsumer(queue);
            nothing(consumer);
            expect(consumer, "late");
        });
        part("delay", "the property AMQ_SCHEDULED_DELAY", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            context.createProducer().setProperty("AMQ_SCHEDULED_DELAY", 400L).send(queue, "late");
            JMSConsumer consumer = context.createConsumer(queue);
            none(consumer);
            come(consumer, "late");
        });
        part("shared", "JMSContext.createSharedConsumer", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            divided(context.createSharedConsumer(topic, "s"),
                    context().createSharedConsumer(topic, "s"), topic);
        });
        part("shared", "JMSContext.createSharedConsumer with a selector", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            JMSConsumer consumer = context.createSharedConsumer(topic, "s", "n = 1");
            context.createProducer().setProperty("n", 1).send(topic, "1");
            come(consumer, "1");
        });
        part("shared", "JMSContext.createSharedDurableConsumer", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            String name = name("s");
            divided(context.createSharedDurableConsumer(topic, name),
                    context().createSharedDurableConsumer(topic, name), topic);
        });
        part("shared", "JMSContext.createSharedDurableConsumer with a selector", () -> {
            JMSContext context = context();
            Topic topic = topic(context);
            JMSConsumer consumer = context.createSharedDurableConsumer(topic, name("s"), "n = 1");
            context.createProducer().setProperty("n", 1).send(topic, "1");
            come(consumer, "1");
        });
        part("shared", "Session.createSharedConsumer", () -> {
            Session session = session(AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createSharedConsumer(topic, "s");
            send(session, topic, "1");
            expect(consumer, "1");
        });
        part("shared", "Session.createSharedDurableConsumer", () -> {
            Session session = session(AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createSharedDurableConsumer(topic, name("s"));
            send(session, topic, "1");
            expect(consumer, "1");
        });
        part("shared", "Session.createDurableConsumer", () -> {
            Session session = named(name("id")).createSession(false, AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createDurableConsumer(topic, "s");
            send(session, topic, "1");
            expect(consumer, "1");
        });
        part("async", "JMSProducer.setAsync", () -> {
            JMSContext context = context();
            Queue queue = queue(context);
            Completed completed = new Completed();
            context.createProducer().setAsync(completed).send(queue, "1");
            same("1", completed.found.poll(SOON, TimeUnit.MILLISECONDS));
            come(context.createConsumer(queue), "1");
        });
        part("async", "MessageProducer.send with a CompletionListener", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            Completed completed = new Completed();
            session.createProducer(queue).send(session.createTextMessage("1"), completed);
            same("1", completed.found.poll(SOON, TimeUnit.MILLISECONDS));
            expect(session.createConsumer(queue), "1");
        });
    }

    /** Two consumers of one shared subscription get each message once. */
    private void divided(JMSConsumer one, JMSConsumer two, Topic topic) throws Exception {
        JMSProducer producer = context().createProducer();
        for (int count = 0; count < 20; count++) {
            producer.send(topic, "" + count);
        }
        int found = 0;
        boolean more = true;
        while (more) {
            more = false;
            for (JMSConsumer each : new JMSConsumer[] {one, two}) {
                if (each.receive(NEVER) != null) {
                    found++;
                    more = true;
                }
            }
        }
        same(20, found);
    }

    /** Hears what was sent. */
    private static final class Completed implements CompletionListener {
        final BlockingQueue<String> found = new LinkedBlockingQueue<>();

        @Override
        public void onCompletion(Message message) {
            try {
                found.add(text(message));
            } catch (JMSException error) {
                found.add("" + error);
            }
        }

        @Override
        public void onException(Message message, Exception error) {
            found.add("" + error);
        }
    }
}
