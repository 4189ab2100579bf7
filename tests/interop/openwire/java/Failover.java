import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.transport.TransportListener;

/**
 * What becomes of a program whose broker is stopped, killed and started again: Failover URL.
 *
 * <p>Whoever runs it does that to the broker: it is told by a line "BROKER what", and answers by a
 * line.
 */
public final class Failover extends Checks {
    private static final long LONG = 20000;
    private final BufferedReader told = new BufferedReader(new InputStreamReader(System.in));
    private final ExecutorService beside = Executors.newCachedThreadPool();

    private Failover(String url, String only) {
        super(url, only);
    }

    public static void main(String[] arguments) throws Exception {
        Failover all = new Failover(arguments[0], arguments.length > 1 ? arguments[1] : "");
        all.restarts();
        all.transactions();
        all.unavailable();
        all.options();
        all.end();
        System.exit(0);
    }

    /** Has something done to the broker: "stop", "kill" or "start". */
    private void broker(String... words) throws Exception {
        for (String word : words) {
            System.out.println("BROKER " + word);
            System.out.flush();
            is(told.readLine() != null, "nobody answers");
        }
    }

    private static String failover(String inner, String options) {
        String fast = "initialReconnectDelay=20&maxReconnectDelay=100";
        return "failover:(" + inner + ")?" + fast + (options.isEmpty() ? "" : "&" + options);
    }

    private Connection lasting(String options) throws JMSException {
        Connection made = connectionTo(failover(url, options));
        made.start();
        return made;
    }

    private void restarts() {
        for (String way : new String[] {"stop", "kill"}) {
            check("failover", "a producer goes on after a " + way, () -> {
                Session session = lasting("").createSession(false, AUTO);
                Queue queue = queue(session);
                send(session, queue, "before");
                broker(way, "start");
                send(session, queue, "after");
                expect(session.createConsumer(queue), "before", "after");
            });
        }
        check("failover", "a send waits until the broker is back", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            broker("kill");
            Future<?> sent = beside.submit(() -> {
                producer.send(session.createTextMessage("during"));
                return null;
            });
            Thread.sleep(300);
            is(!sent.isDone(), "it did not wait");
            broker("start");
            sent.get(LONG, TimeUnit.MILLISECONDS);
            expect(session.createConsumer(queue), "during");
        });
        check("failover", "a waiting consumer goes on", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            broker("kill", "start");
            send(lasting("").createSession(false, AUTO), queue, "1", "2");
            same("1", text(consumer.receive(LONG)));
            expect(consumer, "2");
        });
        check("failover", "a listener goes on", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Queue queue = queue(session);
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            session.createConsumer(queue).setMessageListener(message -> {
                try {
                    found.add(text(message));
                } catch (JMSException error) {
                    found.add("" + error);
                }
            });
            Session other = lasting("").createSession(false, AUTO);
            send(other, queue, "1");
            same("1", found.poll(LONG, TimeUnit.MILLISECONDS));
            broker("kill", "start");
            send(other, queue, "2");
            same("2", found.poll(LONG, TimeUnit.MILLISECONDS));
        });
        check("failover", "what is not acknowledged comes again", () -> {
            Connection connection = lasting("");
            Session session = connection.createSession(false, CLIENT);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            broker("kill", "start");
            connection.close();
            Session other = lasting("").createSession(false, AUTO);
            expect(other.createConsumer(queue), "1", "2");
        });
        check("failover", "what is acknowledged does not come again", () -> {
            Session session = lasting("").createSession(false, CLIENT);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            Message first = consumer.receive(SOON);
            same("1", text(first));
            first.acknowledge();
            Thread.sleep(300);
            consumer.close();
            broker("stop", "start");
            MessageConsumer again = session.createConsumer(queue);
            expect(again, "2");
            nothing(again);
        });
        check("failover", "a durable subscription keeps what came meanwhile", () -> {
            Connection connection = connectionTo(failover(url, ""));
            connection.setClientID(name("id"));
            connection.start();
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            session.createDurableSubscriber(topic, "s").close();
            send(session, topic, "1", "2");
            broker("kill", "start");
            send(session, topic, "3");
            expect(session.createDurableSubscriber(topic, "s"), "1", "2", "3");
        });
        check("failover", "an active durable subscriber goes on", () -> {
            Connection connection = connectionTo(failover(url, ""));
            connection.setClientID(name("id"));
            connection.start();
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "s");
            broker("kill", "start");
            send(session, topic, "1");
            same("1", text(consumer.receive(LONG)));
        });
        check("failover", "a subscriber of a topic goes on", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createConsumer(topic);
            broker("kill", "start");
            send(session, topic, "1");
            same("1", text(consumer.receive(LONG)));
        });
        check("failover", "a temporary queue goes on", () -> {
            Session session = lasting("").createSession(false, AUTO);
            TemporaryQueue answers = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(answers);
            broker("kill", "start");
            send(session, answers, "1");
            same("1", text(consumer.receive(LONG)));
        });
        check("failover", "a browser after a kill", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            broker("kill", "start");
            same(2, length(session.createBrowser(queue).getEnumeration()));
        });
        check("failover", "properties, priority and body are as they were", () -> {
            Session session = lasting("").createSession(false, AUTO);
            Queue queue = queue(session);
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(new byte[] {1, 0, -1});
            message.setIntProperty("n", 7);
            message.setJMSCorrelationID("c");
            MessageProducer producer = session.createProducer(queue);
            producer.setPriority(8);
            producer.send(message);
            broker("kill", "start");
            BytesMessage found = (BytesMessage) session.createConsumer(queue).receive(LONG);
            same(message.getJMSMessageID(), found.getJMSMessageID());
            same(3L, found.getBodyLength());
            same(7, found.getIntProperty("n"));
            same("c", found.getJMSCorrelationID());
            same(8, found.getJMSPriority());
        });
        check("failover", "the program is told", () -> {
            ActiveMQConnection connection = (ActiveMQConnection) lasting("");
            CountDownLatch gone = new CountDownLatch(1);
            CountDownLatch back = new CountDownLatch(1);
            connection.addTransportListener(new TransportListener() {
                @Override
                public void onCommand(Object command) {
                }

                @Override
                public void onException(java.io.IOException error) {
                }

                @Override
                public void transportInterupted() {
                    gone.countDown();
                }

                @Override
                public void transportResumed() {
                    back.countDown();
                }
            });
            broker("kill");
            is(gone.await(LONG, TimeUnit.MILLISECONDS), "not of the end");
            broker("start");
            is(back.await(LONG, TimeUnit.MILLISECONDS), "not of the new beginning");
        });
        check("failover", "five kills while it sends and consumes: all come", () -> {
            Connection connection = lasting("");
            Session sending = connection.createSession(false, AUTO);
            Queue queue = queue(sending);
            Session consuming = connection.createSession(false, AUTO);
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            consuming.createConsumer(queue).setMessageListener(message -> {
                try {
                    found.add(text(message));
                } catch (JMSException error) {
                    found.add("" + error);
                }
            });
            Future<?> sent = beside.submit(() -> {
                for (int count = 0; count < 500; count++) {
                    send(sending, queue, "" + count);
                    Thread.sleep(5);
                }
                return null;
            });
            for (int turn = 0; turn < 5; turn++) {
                Thread.sleep(200);
                broker("kill", "start");
            }
            sent.get(LONG, TimeUnit.MILLISECONDS);
            List<String> missing = new ArrayList<>();
            for (int count = 0; count < 500; count++) {
                missing.add("" + count);
            }
            while (!missing.isEmpty()) {
                String next = found.poll(SOON, TimeUnit.MILLISECONDS);
                is(next != null, missing + " did not come");
                missing.remove(next);
            }
        });
    }

    private void transactions() {
        check("failover", "a transaction that is open at a kill", () -> {
            Session session = lasting("").createSession(true, 0);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            broker("kill", "start");
            session.commit();
            Session other = lasting("").createSession(false, AUTO);
            MessageConsumer consumer = other.createConsumer(queue);
            expect(consumer, "1", "2");
            nothing(consumer);
        });
        check("failover", "a transaction that is committed before a kill", () -> {
            Session session = lasting("").createSession(true, 0);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            session.commit();
            send(session, queue, "never");
            broker("kill", "start");
            session.rollback();
            MessageConsumer consumer = lasting("").createSession(false, AUTO).createConsumer(queue);
            expect(consumer, "1", "2");
            nothing(consumer);
        });
        check("failover", "a transaction that has consumed is rolled back", () -> {
            Session session = lasting("").createSession(true, 0);
            Queue queue = queue(session);
            send(session, queue, "1");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            broker("kill", "start");
            Thread.sleep(1000);
            session.rollback();
            same("1", text(consumer.receive(LONG)));
            session.commit();
            nothing(consumer);
        });
        check("failover", "commit in doubt, of what came before a kill", () -> {
            Connection connection = lasting("");
            Session session = connection.createSession(true, 0);
            Queue queue = queue(session);
            send(session, queue, "1");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            broker("kill", "start");
            boolean done = true;
            try {
                session.commit();
            } catch (JMSException error) {
                done = false;
            }
            connection.close();
            MessageConsumer other = lasting("").createSession(false, AUTO).createConsumer(queue);
            same(done ? null : "1", text(other.receive(done ? NEVER : LONG)));
        });
    }

    private void unavailable() {
        check("failover", "without failover the program is told", () -> {
            Connection connection = connectionTo(url);
            CountDownLatch told = new CountDownLatch(1);
            connection.setExceptionListener(error -> told.countDown());
            connection.start();
            broker("kill");
            try {
                is(told.await(LONG, TimeUnit.MILLISECONDS), "not told");
            } finally {
                broker("start");
            }
            fails(JMSException.class, () -> connection.createSession(false, AUTO)
                .createConsumer(connection.createSession(false, AUTO).createQueue("q")));
        });
        check("failover", "startupMaxReconnectAttempts", () -> {
            broker("stop");
            try {
                fails(JMSException.class, () -> lasting("startupMaxReconnectAttempts=2"));
            } finally {
                broker("start");
            }
            lasting("startupMaxReconnectAttempts=2");
        });
        check("failover", "maxReconnectAttempts", () -> {
            Session session = lasting("maxReconnectAttempts=2").createSession(false, AUTO);
            Queue queue = queue(session);
            send(session, queue, "1");
            broker("stop");
            try {
                fails(JMSException.class, () -> send(session, queue, "2"));
            } finally {
                broker("start");
            }
        });
        check("failover", "timeout", () -> {
            Session session = lasting("timeout=300").createSession(false, AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            broker("stop");
            try {
                fails(JMSException.class, () -> producer.send(session.createTextMessage("1")));
            } finally {
                broker("start");
            }
            Thread.sleep(500);
            producer.send(session.createTextMessage("2"));
            expect(session.createConsumer(queue), "2");
        });
        check("failover", "randomize=false, and the first is not there", () -> {
            String both = "tcp://127.0.0.1:1," + url;
            Connection connection = connectionTo(failover(both, "randomize=false"));
            connection.start();
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            send(session, queue, "1");
            expect(session.createConsumer(queue), "1");
        });
    }

    /**
     * The next message. Without a connection, the client itself answers a pull at once, and says that
     * there is none.
     */
    private static String coming(MessageConsumer consumer) throws JMSException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LONG);
        String found = null;
        while (found == null && System.nanoTime() < end) {
            found = text(consumer.receive(LONG));
        }
        return found;
    }

    /** A program with these options goes on after a kill. */
    private void option(String options) {
        check("failover", options, () -> {
            Connection connection = lasting(options);
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            MessageProducer producer = session.createProducer(queue);
            String body = String.join("", Collections.nCopies(300, "text "));
            for (int count = 0; count < 30; count++) {
                producer.send(session.createTextMessage(count + body));
            }
            for (int count = 0; count < 15; count++) {
                same(count + body, text(consumer.receive(SOON)));
            }
            Thread.sleep(500); // what is not acknowledged at once is now
            broker("kill", "start");
            List<String> found = new ArrayList<>();
            for (int count = 0; count < 30 && !found.contains(29 + body); count++) {
                String next = coming(consumer);
                is(next != null, found.size() + " came");
                found.add(next);
            }
            for (int count = 15; count < 30; count++) {
                is(found.contains(count + body), count + " did not come");
            }
            producer.send(session.createTextMessage("last"));
            same("last", text(consumer.receive(LONG)));
        });
    }

    private void options() {
        option("jms.prefetchPolicy.all=1");
        option("jms.prefetchPolicy.all=0");
        option("jms.useCompression=true");
        option("jms.producerWindowSize=10000");
        option("jms.optimizeAcknowledge=true&jms.useAsyncSend=true");
        option("nested.wireFormat.version=9");
        option("nested.wireFormat.maxInactivityDuration=3000");
        option("useExponentialBackOff=false");
        option("reconnectDelayExponent=1.5");
        option("backup=true&backupPoolSize=1");
        option("priorityBackup=true");
        option("trackMessages=true&maxCacheSize=200000");
        option("trackTransactionProducers=false");
        option("updateURIsSupported=false");
        option("reconnectSupported=false");
        option("warnAfterReconnectAttempts=1");
        option("jms.watchTopicAdvisories=false");
        option("jms.checkForDuplicates=false");
        option("jms.consumerFailoverRedeliveryWaitPeriod=500");
    }
}
