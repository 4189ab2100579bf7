import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageListener;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jms.annotation.EnableJms;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.connection.JmsTransactionManager;
import org.springframework.jms.connection.SingleConnectionFactory;
import org.springframework.jms.connection.UserCredentialsConnectionFactoryAdapter;
import org.springframework.jms.core.JmsMessagingTemplate;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.AbstractMessageListenerContainer;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;
import org.springframework.jms.listener.SimpleMessageListenerContainer;
import org.springframework.jms.listener.adapter.MessageListenerAdapter;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.transaction.support.TransactionTemplate;

/** What Spring does with JMS: JmsTemplate, its listener containers and its annotations. */
public final class Spring extends Checks {
    /** For the class that Spring makes by itself. */
    private static ConnectionFactory shared;
    private static String place;

    private final List<Body> closing = new ArrayList<>();

    private Spring(String url, String only) {
        super(url, only);
    }

    public static void main(String[] arguments) throws Exception {
        Spring all = new Spring(arguments[0], arguments.length > 1 ? arguments[1] : "");
        all.templates();
        all.transactions();
        all.containers();
        all.failures();
        all.annotations();
        all.end();
        System.exit(0);
    }

    /** A check after which everything that was made for it is closed. */
    private void part(String name, Body body) {
        check("Spring", name, () -> {
            try {
                body.run();
            } finally {
                for (int at = closing.size() - 1; at >= 0; at--) {
                    closing.get(at).run();
                }
                closing.clear();
            }
        });
    }

    private JmsTemplate template() {
        JmsTemplate made = new JmsTemplate(cached());
        made.setReceiveTimeout(SOON);
        return made;
    }

    private CachingConnectionFactory cached() {
        CachingConnectionFactory made = new CachingConnectionFactory(factory(""));
        closing.add(made::destroy);
        return made;
    }

    private <C extends AbstractMessageListenerContainer> C begun(C container) {
        container.afterPropertiesSet();
        container.start();
        closing.add(container::shutdown);
        return container;
    }

    private DefaultMessageListenerContainer container(String from, Object listener) {
        DefaultMessageListenerContainer made = new DefaultMessageListenerContainer();
        made.setConnectionFactory(factory(""));
        made.setDestinationName(from);
        made.setMessageListener(listener);
        made.setReceiveTimeout(200);
        return made;
    }

    /** Waits until a container has its consumers: what is sent to a topic before is lost. */
    private static void ready(DefaultMessageListenerContainer container) throws Exception {
        for (int turn = 0; turn < 100 && !container.isRegisteredWithDestination(); turn++) {
            Thread.sleep(30);
        }
    }

    private static MessageListener into(BlockingQueue<String> found) {
        return message -> {
            try {
                found.add(text(message));
            } catch (JMSException error) {
                found.add("" + error);
            }
        };
    }

    private static void came(BlockingQueue<String> found, String... texts) throws Exception {
        for (String text : texts) {
            same(text, found.poll(SOON, TimeUnit.MILLISECONDS));
        }
    }

    private static void noMore(BlockingQueue<String> found) throws Exception {
        same(null, found.poll(NEVER, TimeUnit.MILLISECONDS));
    }

    private void templates() {
        part("JmsTemplate converts a text", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.convertAndSend(to, "t\u00e4xt");
            same("t\u00e4xt", jms.receiveAndConvert(to));
        });
        part("JmsTemplate converts bytes", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.convertAndSend(to, new byte[] {0, 1, -1});
            is(Arrays.equals(new byte[] {0, 1, -1}, (byte[]) jms.receiveAndConvert(to)), "others");
        });
        part("JmsTemplate converts a map", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.convertAndSend(to, Map.of("n", 7, "s", "seven", "d", 7.5));
            same(Map.of("n", 7, "s", "seven", "d", 7.5), jms.receiveAndConvert(to));
        });
        part("JmsTemplate converts an object", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.convertAndSend(to, (Serializable) new ArrayList<>(List.of("one", 2)));
            same(List.of("one", 2), jms.receiveAndConvert(to));
        });
        part("JmsTemplate that does not wait, or waits for nothing", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
            same(null, jms.receive(to));
            jms.setReceiveTimeout(NEVER);
            same(null, jms.receive(to));
        });
        part("JmsTemplate with explicit qualities of service", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.setExplicitQosEnabled(true);
            jms.setDeliveryPersistent(false);
            jms.setPriority(8);
            jms.setTimeToLive(60000);
            jms.convertAndSend(to, "x");
            Message found = jms.receive(to);
            same(DeliveryMode.NON_PERSISTENT, found.getJMSDeliveryMode());
            same(8, found.getJMSPriority());
            same(found.getJMSTimestamp() + 60000, found.getJMSExpiration());
        });
        part("JmsTemplate with a post processor, and a selector", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            for (String colour : new String[] {"red", "blue"}) {
                jms.convertAndSend(to, colour + "!", message -> {
                    message.setStringProperty("colour", colour);
                    message.setJMSCorrelationID("c-" + colour);
                    return message;
                });
            }
            Message found = jms.receiveSelected(to, "colour = 'blue'");
            same("blue!", text(found));
            same("c-blue", found.getJMSCorrelationID());
            same("red!", jms.receiveSelectedAndConvert(to, "JMSCorrelationID = 'c-red'"));
        });
        part("JmsTemplate sends what a creator makes", () -> {
            JmsTemplate jms = template();
            jms.setDefaultDestinationName(name("q"));
            jms.send(session -> {
                MapMessage message = session.createMapMessage();
                message.setInt("n", 7);
                message.setJMSType("kind");
                return message;
            });
            MapMessage found = (MapMessage) jms.receive();
            same(7, found.getInt("n"));
            same("kind", found.getJMSType());
        });
        part("JmsTemplate browses, also by a selector", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            for (int count = 0; count < 5; count++) {
                int number = count;
                jms.convertAndSend(to, "" + count, message -> {
                    message.setIntProperty("n", number);
                    return message;
                });
            }
            same(5, jms.browse(to, (session, browser) -> length(browser.getEnumeration())));
            same(2, jms.browseSelected(
                to, "n > 2", (session, browser) -> length(browser.getEnumeration())));
            same("0", jms.receiveAndConvert(to));
        });
        part("JmsTemplate executes with a session and with a producer", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.execute(to, (session, producer) -> {
                producer.send(session.createTextMessage("1"));
                producer.send(session.createTextMessage("2"));
                return null;
            });
            same("1", jms.receiveAndConvert(to));
            String found = jms.execute(
                session -> text(session.createConsumer(session.createQueue(to)).receive(SOON)), true);
            same("2", found);
        });
        part("JmsTemplate sends and receives the answer", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            begun(container(to, new MessageListenerAdapter(new Answering())));
            Message found = jms.sendAndReceive(to, session -> session.createTextMessage("6"));
            same("re 6", text(found));
        });
        part("JmsTemplate of a topic", () -> {
            JmsTemplate jms = template();
            jms.setPubSubDomain(true);
            String to = name("t");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, into(found));
            container.setPubSubDomain(true);
            ready(begun(container));
            jms.convertAndSend(to, "news");
            came(found, "news");
        });
        part("JmsTemplate that acknowledges as a client", () -> {
            JmsTemplate jms = template();
            jms.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE);
            String to = name("q");
            jms.convertAndSend(to, "1");
            same("1", jms.receiveAndConvert(to));
            jms.setReceiveTimeout(NEVER);
            same(null, jms.receive(to));
        });
        part("JmsTemplate delays", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            jms.setExplicitQosEnabled(true);
            jms.setDeliveryDelay(300);
            long before = System.currentTimeMillis();
            jms.convertAndSend(to, "late");
            same("late", jms.receiveAndConvert(to));
            is(System.currentTimeMillis() - before >= 290, "it came at once");
        });
        part("JmsMessagingTemplate with headers, and the answer", () -> {
            JmsMessagingTemplate jms = new JmsMessagingTemplate(template());
            String to = name("q");
            jms.send(to, MessageBuilder.withPayload("x").setHeader("colour", "red").build());
            org.springframework.messaging.Message<?> found = jms.receive(to);
            same("x", found.getPayload());
            same("red", found.getHeaders().get("colour"));
            // Another queue: the factory keeps the consumer of the first, which may get the question.
            String asked = name("asked");
            begun(container(asked, new MessageListenerAdapter(new Answering())));
            same("re 7", jms.convertSendAndReceive(asked, "7", String.class));
        });
        part("CachingConnectionFactory keeps producers and consumers", () -> {
            CachingConnectionFactory factory = cached();
            factory.setSessionCacheSize(10);
            factory.setCacheConsumers(true);
            JmsTemplate jms = new JmsTemplate(factory);
            jms.setReceiveTimeout(SOON);
            String to = name("q");
            for (int count = 0; count < 100; count++) {
                jms.convertAndSend(to, "" + count);
                same("" + count, jms.receiveAndConvert(to));
            }
        });
        part("SingleConnectionFactory with a client id", () -> {
            SingleConnectionFactory factory = new SingleConnectionFactory(factory(""));
            closing.add(factory::destroy);
            factory.setClientId(name("id"));
            factory.setReconnectOnException(true);
            JmsTemplate jms = new JmsTemplate(factory);
            jms.setReceiveTimeout(SOON);
            String to = name("q");
            jms.convertAndSend(to, "x");
            same("x", jms.receiveAndConvert(to));
            factory.resetConnection();
            jms.convertAndSend(to, "y");
            same("y", jms.receiveAndConvert(to));
        });
        part("UserCredentialsConnectionFactoryAdapter", () -> {
            UserCredentialsConnectionFactoryAdapter factory =
                new UserCredentialsConnectionFactoryAdapter();
            factory.setTargetConnectionFactory(factory(""));
            factory.setUsername("ann");
            factory.setPassword("pw");
            JmsTemplate jms = new JmsTemplate(factory);
            jms.setReceiveTimeout(SOON);
            String to = name("q");
            jms.convertAndSend(to, "x");
            same("x", jms.receiveAndConvert(to));
        });
    }

    private void transactions() {
        part("a transacted JmsTemplate", () -> {
            JmsTemplate jms = template();
            jms.setSessionTransacted(true);
            String to = name("q");
            jms.convertAndSend(to, "1");
            same("1", jms.receiveAndConvert(to));
            jms.setReceiveTimeout(NEVER);
            same(null, jms.receive(to));
        });
        part("JmsTransactionManager commits", () -> {
            CachingConnectionFactory factory = cached();
            JmsTemplate jms = new JmsTemplate(factory);
            jms.setReceiveTimeout(SOON);
            TransactionTemplate together =
                new TransactionTemplate(new JmsTransactionManager(factory));
            JmsTemplate other = template();
            other.setReceiveTimeout(NEVER);
            String in = name("in");
            String out = name("out");
            other.convertAndSend(in, "question");
            together.executeWithoutResult(status -> {
                same("question", jms.receiveAndConvert(in));
                jms.convertAndSend(out, "one");
                jms.convertAndSend(out, "two");
                same(null, other.receive(out));
            });
            other.setReceiveTimeout(SOON);
            same("one", other.receiveAndConvert(out));
            same("two", other.receiveAndConvert(out));
        });
        part("JmsTransactionManager rolls back", () -> {
            CachingConnectionFactory factory = cached();
            JmsTemplate jms = new JmsTemplate(factory);
            jms.setReceiveTimeout(SOON);
            TransactionTemplate together =
                new TransactionTemplate(new JmsTransactionManager(factory));
            String in = name("in");
            String out = name("out");
            jms.convertAndSend(in, "question");
            fails(IllegalStateException.class, () -> together.executeWithoutResult(status -> {
                same("question", jms.receiveAndConvert(in));
                jms.convertAndSend(out, "never");
                throw new IllegalStateException("no");
            }));
            Message again = together.execute(status -> jms.receive(in));
            same("question", text(again));
            is(again.getJMSRedelivered(), "not redelivered");
            jms.setReceiveTimeout(NEVER);
            same(null, jms.receive(out));
        });
    }

    private void containers() {
        part("DefaultMessageListenerContainer with several consumers", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, into(found));
            container.setConcurrency("2-4");
            begun(container);
            List<String> wanted = new ArrayList<>();
            for (int count = 0; count < 60; count++) {
                jms.convertAndSend(to, "" + count);
                wanted.add("" + count);
            }
            List<String> all = new ArrayList<>();
            while (all.size() < 60) {
                String next = found.poll(SOON, TimeUnit.MILLISECONDS);
                is(next != null, all.size() + " came");
                all.add(next);
            }
            Collections.sort(all);
            Collections.sort(wanted);
            same(wanted, all);
            noMore(found);
        });
        for (String level : new String[] {"CACHE_NONE", "CACHE_CONNECTION", "CACHE_SESSION", "CACHE_CONSUMER"}) {
            part("DefaultMessageListenerContainer, " + level, () -> {
                JmsTemplate jms = template();
                String to = name("q");
                BlockingQueue<String> found = new LinkedBlockingQueue<>();
                DefaultMessageListenerContainer container = container(to, into(found));
                container.setCacheLevelName(level);
                begun(container);
                for (int count = 0; count < 5; count++) {
                    jms.convertAndSend(to, "" + count);
                }
                came(found, "0", "1", "2", "3", "4");
            });
        }
        part("SimpleMessageListenerContainer", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            SimpleMessageListenerContainer container = new SimpleMessageListenerContainer();
            container.setConnectionFactory(factory(""));
            container.setDestinationName(to);
            container.setMessageListener(into(found));
            begun(container);
            jms.convertAndSend(to, "1");
            jms.convertAndSend(to, "2");
            came(found, "1", "2");
        });
        part("a container that is stopped and started again", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = begun(container(to, into(found)));
            jms.convertAndSend(to, "1");
            came(found, "1");
            container.stop();
            Thread.sleep(500);
            jms.convertAndSend(to, "2");
            noMore(found);
            container.start();
            came(found, "2");
        });
        part("a container with a selector", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, into(found));
            container.setMessageSelector("colour IN ('red', 'green')");
            begun(container);
            for (String colour : new String[] {"red", "blue", "green"}) {
                jms.convertAndSend(to, colour, message -> {
                    message.setStringProperty("colour", colour);
                    return message;
                });
            }
            came(found, "red", "green");
            same("blue", jms.receiveAndConvert(to));
        });
        part("a container with a durable subscription", () -> {
            JmsTemplate jms = template();
            jms.setPubSubDomain(true);
            String to = name("t");
            String id = name("id");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer first = durable(to, id, found);
            ready(begun(first));
            jms.convertAndSend(to, "1");
            came(found, "1");
            first.shutdown();
            jms.convertAndSend(to, "2");
            begun(durable(to, id, found));
            came(found, "2");
        });
        part("a container that answers", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            String answers = name("a");
            MessageListenerAdapter adapter = new MessageListenerAdapter(new Answering());
            adapter.setDefaultResponseQueueName(answers);
            begun(container(to, adapter));
            jms.convertAndSend(to, "8");
            same("re 8", jms.receiveAndConvert(answers));
        });
        part("a container with a SessionAwareMessageListener", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            String answers = name("a");
            SessionAwareMessageListener<TextMessage> listener = (message, session) -> {
                MessageProducer producer = session.createProducer(session.createQueue(answers));
                producer.send(session.createTextMessage("re " + message.getText()));
                producer.close();
            };
            DefaultMessageListenerContainer container = container(to, listener);
            container.setSessionTransacted(true);
            begun(container);
            jms.convertAndSend(to, "9");
            same("re 9", jms.receiveAndConvert(answers));
        });
    }

    private DefaultMessageListenerContainer durable(
        String topic, String id, BlockingQueue<String> found
    ) {
        DefaultMessageListenerContainer container = container(topic, into(found));
        container.setPubSubDomain(true);
        container.setSubscriptionDurable(true);
        container.setClientId(id);
        container.setDurableSubscriptionName("s");
        return container;
    }

    /** A listener that fails so many times, and notes each message and whether it says so. */
    private static MessageListener failing(int times, BlockingQueue<String> found) {
        AtomicInteger left = new AtomicInteger(times);
        return message -> {
            try {
                found.add(text(message) + " " + message.getJMSRedelivered());
            } catch (JMSException error) {
                found.add("" + error);
            }
            if (left.getAndDecrement() > 0) {
                throw new IllegalStateException("on purpose");
            }
        };
    }

    private void failures() {
        part("a transacted listener that fails gets it again", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, failing(1, found));
            container.setSessionTransacted(true);
            begun(container);
            jms.convertAndSend(to, "1");
            came(found, "1 false", "1 true");
            noMore(found);
        });
        part("a listener in client mode that fails gets it again", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, failing(1, found));
            container.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE);
            begun(container);
            jms.convertAndSend(to, "1");
            came(found, "1 false", "1 true");
            noMore(found);
        });
        part("a listener in auto mode that fails does not get it again", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            begun(container(to, failing(1, found)));
            jms.convertAndSend(to, "1");
            came(found, "1 false");
            noMore(found);
        });
        part("what always fails is a dead letter", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            DefaultMessageListenerContainer container = container(to, failing(99, found));
            container.setSessionTransacted(true);
            begun(container);
            jms.convertAndSend(to, "1", message -> {
                message.setStringProperty("of", to);
                return message;
            });
            came(found, "1 false", "1 true", "1 true");
            noMore(found);
            same("1", jms.receiveSelectedAndConvert("ActiveMQ.DLQ", "of = '" + to + "'"));
        });
        part("a container in the transactions of a JmsTransactionManager", () -> {
            JmsTemplate jms = template();
            String to = name("q");
            BlockingQueue<String> found = new LinkedBlockingQueue<>();
            ConnectionFactory factory = cached();
            DefaultMessageListenerContainer container = container(to, failing(1, found));
            container.setConnectionFactory(factory);
            container.setTransactionManager(new JmsTransactionManager(factory));
            container.setSessionTransacted(true);
            begun(container);
            jms.convertAndSend(to, "1");
            came(found, "1 false", "1 true");
            noMore(found);
        });
    }

    private void annotations() {
        part("@JmsListener with @SendTo and @Header", () -> {
            shared = factory("");
            place = name("q");
            System.setProperty("place", place);
            AnnotationConfigApplicationContext context =
                new AnnotationConfigApplicationContext(Annotated.class);
            closing.add(context::close);
            JmsTemplate jms = template();
            jms.convertAndSend(place, "10", message -> {
                message.setStringProperty("colour", "red");
                return message;
            });
            same("red 10", jms.receiveAndConvert(place + ".answers"));
        });
        part("@JmsListener of a topic", () -> {
            shared = factory("");
            place = name("t");
            System.setProperty("place", place);
            Annotated.news.clear();
            AnnotationConfigApplicationContext context =
                new AnnotationConfigApplicationContext(Annotated.class);
            closing.add(context::close);
            JmsTemplate jms = template();
            jms.setPubSubDomain(true);
            for (int turn = 0; turn < 30 && Annotated.news.isEmpty(); turn++) {
                jms.convertAndSend(place + ".news", "now");
                Thread.sleep(100);
            }
            same("now", Annotated.news.poll());
        });
    }

    /** Answers. */
    public static final class Answering {
        /** Called by Spring. */
        public String handleMessage(String text) {
            return "re " + text;
        }
    }

    /** What Spring makes by its annotations. */
    @Configuration
    @EnableJms
    public static class Annotated {
        static final BlockingQueue<String> news = new LinkedBlockingQueue<>();

        /** The containers of queues. */
        @Bean
        public DefaultJmsListenerContainerFactory jmsListenerContainerFactory() {
            DefaultJmsListenerContainerFactory made = new DefaultJmsListenerContainerFactory();
            made.setConnectionFactory(shared);
            made.setSessionTransacted(true);
            return made;
        }

        /** The containers of topics. */
        @Bean
        public DefaultJmsListenerContainerFactory topics() {
            DefaultJmsListenerContainerFactory made = new DefaultJmsListenerContainerFactory();
            made.setConnectionFactory(shared);
            made.setPubSubDomain(true);
            return made;
        }

        /** Processes a queue. */
        @JmsListener(destination = "#{systemProperties['place']}")
        @SendTo("#{systemProperties['place'] + '.answers'}")
        public String work(String text, @Header("colour") String colour) {
            return colour + " " + text;
        }

        /** Hears a topic. */
        @JmsListener(
            destination = "#{systemProperties['place'] + '.news'}", containerFactory = "topics")
        public void hear(String text) {
            news.add(text);
        }
    }
}
