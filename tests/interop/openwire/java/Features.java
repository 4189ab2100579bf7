import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionMetaData;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.IllegalStateException;
import javax.jms.InvalidClientIDException;
import javax.jms.InvalidDestinationException;
import javax.jms.InvalidSelectorException;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageFormatException;
import javax.jms.MessageNotWriteableException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.QueueRequestor;
import javax.jms.QueueSession;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.jms.TopicSubscriber;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** A list of features of JMS 1.1 and of ActiveMQ: Features URL [PART OF A NAME]. */
public final class Features extends Checks {
    private Features(String url, String only) {
        super(url, only);
    }

    public static void main(String[] arguments) throws Exception {
        Features all = new Features(arguments[0], arguments.length > 1 ? arguments[1] : "");
        all.messages();
        all.bodies();
        all.connections();
        all.acknowledging();
        all.transactions();
        all.queues();
        all.topics();
        all.selectors();
        all.temporaries();
        all.extensions();
        all.options();
        all.end();
        System.exit(0);
    }

    /** A message that went through the broker. */
    private Message passed(Session session, Message message) throws JMSException {
        Queue queue = queue(session);
        MessageConsumer consumer = session.createConsumer(queue);
        session.createProducer(queue).send(message);
        Message found = consumer.receive(SOON);
        is(found != null, "nothing came");
        return found;
    }

    private void messages() {
        check("3.4.1", "JMSDestination is where it was sent", () -> {
            Session session = session(AUTO);
            Message sent = session.createTextMessage("x");
            Message found = passed(session, sent);
            same(sent.getJMSDestination(), found.getJMSDestination());
        });
        check("3.4.2", "JMSDeliveryMode of both kinds", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            producer.send(session.createMessage());
            same(DeliveryMode.PERSISTENT, consumer.receive(SOON).getJMSDeliveryMode());
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            producer.send(session.createMessage());
            same(DeliveryMode.NON_PERSISTENT, consumer.receive(SOON).getJMSDeliveryMode());
        });
        check("3.4.3", "JMSMessageID is kept and begins with ID:", () -> {
            Session session = session(AUTO);
            Message sent = session.createTextMessage("x");
            Message found = passed(session, sent);
            is(found.getJMSMessageID().startsWith("ID:"), found.getJMSMessageID());
            same(sent.getJMSMessageID(), found.getJMSMessageID());
        });
        check("3.4.4", "JMSTimestamp is when it was sent", () -> {
            Session session = session(AUTO);
            long before = System.currentTimeMillis();
            long stamp = passed(session, session.createMessage()).getJMSTimestamp();
            is(before <= stamp && stamp <= System.currentTimeMillis(), "timestamp " + stamp);
        });
        check("3.4.5", "JMSCorrelationID as a text and as bytes", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setJMSCorrelationID("c-\u00e4\u20ac");
            same("c-\u00e4\u20ac", passed(session, message).getJMSCorrelationID());
            message = session.createMessage();
            message.setJMSCorrelationIDAsBytes("bytes".getBytes("UTF-8"));
            same("bytes", new String(passed(session, message).getJMSCorrelationIDAsBytes(), "UTF-8"));
        });
        check("3.4.6", "JMSReplyTo of a queue and of a topic", () -> {
            Session session = session(AUTO);
            for (Destination to : new Destination[] {queue(session), topic(session)}) {
                Message message = session.createMessage();
                message.setJMSReplyTo(to);
                same(to, passed(session, message).getJMSReplyTo());
            }
        });
        check("3.4.7", "JMSRedelivered is false at first", () -> {
            Session session = session(AUTO);
            is(!passed(session, session.createMessage()).getJMSRedelivered(), "it is true");
        });
        check("3.4.8", "JMSType is kept", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setJMSType("kind");
            same("kind", passed(session, message).getJMSType());
        });
        check("3.4.9", "JMSExpiration is when it was sent and its time to live", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setTimeToLive(60000);
            producer.send(session.createMessage());
            Message found = session.createConsumer(queue).receive(SOON);
            same(found.getJMSTimestamp() + 60000, found.getJMSExpiration());
        });
        check("3.4.9", "an expired message does not come", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setTimeToLive(1);
            producer.send(session.createTextMessage("old"));
            producer.setTimeToLive(0);
            producer.send(session.createTextMessage("new"));
            Thread.sleep(20);
            expect(session.createConsumer(queue), "new");
        });
        check("3.4.10", "JMSPriority from 0 to 9, and 4 if none is given", () -> {
            Session session = session(AUTO);
            same(4, passed(session, session.createMessage()).getJMSPriority());
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            MessageProducer producer = session.createProducer(queue);
            for (int priority : new int[] {0, 9, 5}) {
                producer.setPriority(priority);
                producer.send(session.createMessage());
                same(priority, consumer.receive(SOON).getJMSPriority());
            }
        });
        check("3.5.4", "properties of all types keep their types", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setBooleanProperty("z", true);
            message.setByteProperty("b", (byte) -3);
            message.setShortProperty("h", (short) -300);
            message.setIntProperty("i", 1 << 30);
            message.setLongProperty("l", 1L << 60);
            message.setFloatProperty("f", 1.5f);
            message.setDoubleProperty("d", -2.25);
            message.setStringProperty("s", "\u00fc \u20ac");
            Message found = passed(session, message);
            same(true, found.getObjectProperty("z"));
            same((byte) -3, found.getObjectProperty("b"));
            same((short) -300, found.getObjectProperty("h"));
            same(1 << 30, found.getObjectProperty("i"));
            same(1L << 60, found.getObjectProperty("l"));
            same(1.5f, found.getObjectProperty("f"));
            same(-2.25, found.getObjectProperty("d"));
            same("\u00fc \u20ac", found.getObjectProperty("s"));
        });
        check("3.5.4", "a property is converted, and one that is missing is null", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setIntProperty("i", 7);
            Message found = passed(session, message);
            same("7", found.getStringProperty("i"));
            same(7L, found.getLongProperty("i"));
            same(null, found.getStringProperty("missing"));
        });
        check("3.5.6", "the names of properties can be listed", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setIntProperty("one", 1);
            message.setStringProperty("two", "2");
            List<?> names = Collections.list((Enumeration<?>) passed(session, message).getPropertyNames());
            is(names.contains("one") && names.contains("two"), "" + names);
        });
        check("3.5.9", "JMSXDeliveryCount is 1 at first", () -> {
            Session session = session(AUTO);
            same(1, passed(session, session.createMessage()).getIntProperty("JMSXDeliveryCount"));
        });
        check("3.5.9", "JMSXGroupID and JMSXGroupSeq are kept", () -> {
            Session session = session(AUTO);
            Message message = session.createMessage();
            message.setStringProperty("JMSXGroupID", "g");
            message.setIntProperty("JMSXGroupSeq", 3);
            Message found = passed(session, message);
            same("g", found.getStringProperty("JMSXGroupID"));
            same(3, found.getIntProperty("JMSXGroupSeq"));
        });
        check("3.10", "received properties and bodies are read-only", () -> {
            Session session = session(AUTO);
            Message message = session.createTextMessage("x");
            message.setIntProperty("i", 7);
            TextMessage found = (TextMessage) passed(session, message);
            fails(MessageNotWriteableException.class, () -> found.setIntProperty("i", 8));
            fails(MessageNotWriteableException.class, () -> found.setText("y"));
            found.clearBody();
            found.setText("y");
        });
    }

    private void bodies() {
        check("3.11.1", "a plain message", () -> {
            Session session = session(AUTO);
            Message found = passed(session, session.createMessage());
            is(!(found instanceof TextMessage) && !(found instanceof BytesMessage), "" + found);
        });
        check("3.11.3", "TextMessage with every kind of character", () -> {
            Session session = session(AUTO);
            String text = "a\u0000b\u00e9\u20ac\ud83d\ude00\uffff";
            same(text, text(passed(session, session.createTextMessage(text))));
        });
        check("3.11.3", "TextMessage without a text, and with an empty one", () -> {
            Session session = session(AUTO);
            same(null, ((TextMessage) passed(session, session.createTextMessage())).getText());
            same("", text(passed(session, session.createTextMessage(""))));
        });
        check("3.11.3", "TextMessage of 300,000 characters", () -> {
            Session session = session(AUTO);
            String text = String.join("", Collections.nCopies(100000, "\u00e4bc"));
            same(text, text(passed(session, session.createTextMessage(text))));
        });
        check("3.11.3", "BytesMessage with all of its types", () -> {
            Session session = session(AUTO);
            BytesMessage message = session.createBytesMessage();
            message.writeBoolean(true);
            message.writeByte((byte) -1);
            message.writeChar('\u20ac');
            message.writeDouble(0.1);
            message.writeFloat(0.2f);
            message.writeInt(-5);
            message.writeLong(-6);
            message.writeShort((short) -7);
            message.writeUTF("\u00e4");
            message.writeBytes(new byte[] {0, 1, -1});
            BytesMessage found = (BytesMessage) passed(session, message);
            same(true, found.readBoolean());
            same((byte) -1, found.readByte());
            same('\u20ac', found.readChar());
            same(0.1, found.readDouble());
            same(0.2f, found.readFloat());
            same(-5, found.readInt());
            same(-6L, found.readLong());
            same((short) -7, found.readShort());
            same("\u00e4", found.readUTF());
            byte[] rest = new byte[8];
            same(3, found.readBytes(rest));
            same((byte) -1, rest[2]);
        });
        check("3.11.3", "BytesMessage without bytes", () -> {
            Session session = session(AUTO);
            same(0L, ((BytesMessage) passed(session, session.createBytesMessage())).getBodyLength());
        });
        check("3.11.3", "MapMessage with all of its types", () -> {
            Session session = session(AUTO);
            MapMessage message = session.createMapMessage();
            message.setBoolean("z", true);
            message.setByte("b", (byte) 1);
            message.setShort("h", (short) 2);
            message.setChar("c", 'x');
            message.setInt("i", 3);
            message.setLong("l", 4);
            message.setFloat("f", 5.5f);
            message.setDouble("d", 6.5);
            message.setString("s", "seven");
            message.setBytes("y", new byte[] {8});
            message.setString("n", null);
            MapMessage found = (MapMessage) passed(session, message);
            same(true, found.getBoolean("z"));
            same((byte) 1, found.getByte("b"));
            same((short) 2, found.getShort("h"));
            same('x', found.getChar("c"));
            same(3, found.getInt("i"));
            same(4L, found.getLong("l"));
            same(5.5f, found.getFloat("f"));
            same(6.5, found.getDouble("d"));
            same("seven", found.getString("s"));
            same((byte) 8, found.getBytes("y")[0]);
            is(found.itemExists("n") && found.getObject("n") == null, "null is missing");
        });
        check("3.11.3", "StreamMessage with all of its types", () -> {
            Session session = session(AUTO);
            StreamMessage message = session.createStreamMessage();
            message.writeBoolean(true);
            message.writeByte((byte) 1);
            message.writeShort((short) 2);
            message.writeChar('x');
            message.writeInt(3);
            message.writeLong(4);
            message.writeFloat(5.5f);
            message.writeDouble(6.5);
            message.writeString("seven");
            message.writeObject(null);
            message.writeBytes(new byte[] {8});
            StreamMessage found = (StreamMessage) passed(session, message);
            same(true, found.readBoolean());
            same((byte) 1, found.readByte());
            same((short) 2, found.readShort());
            same('x', found.readChar());
            same(3, found.readInt());
            same(4L, found.readLong());
            same(5.5f, found.readFloat());
            same(6.5, found.readDouble());
            same("seven", found.readString());
            same(null, found.readObject());
            byte[] rest = new byte[4];
            same(1, found.readBytes(rest));
            fails(MessageFormatException.class, () -> message.writeObject(new Object()));
        });
        check("3.11.3", "ObjectMessage", () -> {
            Session session = session(AUTO);
            Serializable object = new ArrayList<>(List.of("one", 2));
            same(object, ((ObjectMessage) passed(session, session.createObjectMessage(object))).getObject());
        });
    }

    private void connections() {
        check("4.3.2", "a client id is for one connection at a time", () -> {
            String id = name("id");
            named(id);
            fails(InvalidClientIDException.class, () -> named(id));
        });
        check("4.3.2", "a client id is free again when its connection is closed", () -> {
            String id = name("id");
            named(id).close();
            named(id);
        });
        check("4.3.3", "nothing comes before start and while stopped", () -> {
            Connection connection = connection("");
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            send(session, queue, "1", "2");
            nothing(consumer);
            connection.start();
            expect(consumer, "1");
            connection.stop();
            nothing(consumer);
            connection.start();
            expect(consumer, "2");
        });
        check("4.3.5", "what a closed connection made fails", () -> {
            Connection connection = started();
            Session session = connection.createSession(false, AUTO);
            connection.close();
            connection.close();
            fails(IllegalStateException.class, () -> session.createTextMessage());
        });
        check("4.3.7", "ConnectionMetaData tells of JMS 1.1", () -> {
            ConnectionMetaData data = started().getMetaData();
            same("1.1", data.getJMSVersion());
            same("ActiveMQ", data.getJMSProviderName());
        });
        check("4.4.1", "many sessions, producers and consumers on one connection", () -> {
            Connection connection = started();
            for (int count = 0; count < 50; count++) {
                Session session = connection.createSession(false, AUTO);
                Queue queue = queue(session);
                MessageConsumer consumer = session.createConsumer(queue);
                send(session, queue, "x" + count);
                expect(consumer, "x" + count);
            }
        });
        check("4.4.6", "a message listener", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            List<String> found = Collections.synchronizedList(new ArrayList<>());
            CountDownLatch latch = new CountDownLatch(3);
            session.createConsumer(queue).setMessageListener(message -> {
                try {
                    found.add(text(message));
                } catch (JMSException error) {
                    found.add("" + error);
                }
                latch.countDown();
            });
            send(started().createSession(false, AUTO), queue, "1", "2", "3");
            is(latch.await(SOON, TimeUnit.MILLISECONDS), "not all came");
            same(List.of("1", "2", "3"), found);
        });
        check("4.4.9", "the order of a producer is kept", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            for (int count = 0; count < 300; count++) {
                send(session, queue, "" + count);
            }
            for (int count = 0; count < 300; count++) {
                expect(consumer, "" + count);
            }
        });
        check("4.4.10", "order across delivery modes is not mixed within one of them", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            for (int count = 0; count < 100; count++) {
                producer.send(session.createTextMessage("" + count));
            }
            MessageConsumer consumer = session.createConsumer(queue);
            for (int count = 0; count < 100; count++) {
                expect(consumer, "" + count);
            }
        });
        check("4.5.1", "receive, receive with a time, receiveNoWait", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            same(null, consumer.receiveNoWait());
            same(null, consumer.receive(50));
            send(session, queue, "x");
            same("x", text(consumer.receive()));
        });
        check("4.6", "a producer without a destination", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(null);
            producer.send(queue, session.createTextMessage("x"), DeliveryMode.NON_PERSISTENT, 7, 0);
            Message found = session.createConsumer(queue).receive(SOON);
            same(7, found.getJMSPriority());
            fails(UnsupportedOperationException.class, () -> producer.send(session.createMessage()));
        });
        check("4.6", "message ids and timestamps can be switched off", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setDisableMessageTimestamp(true);
            producer.send(session.createMessage());
            same(0L, session.createConsumer(queue).receive(SOON).getJMSTimestamp());
        });
    }

    private void acknowledging() {
        check("4.4.11", "AUTO_ACKNOWLEDGE: what was received does not come again", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            consumer.close();
            expect(session.createConsumer(queue), "2");
            nothing(session(AUTO).createConsumer(queue));
        });
        check("4.4.11", "DUPS_OK_ACKNOWLEDGE", () -> {
            Session session = session(LAZY);
            Queue queue = queue(session);
            for (int count = 0; count < 20; count++) {
                send(session, queue, "" + count);
            }
            MessageConsumer consumer = session.createConsumer(queue);
            for (int count = 0; count < 20; count++) {
                expect(consumer, "" + count);
            }
            session.close();
            nothing(session(AUTO).createConsumer(queue));
        });
        check("4.4.11", "CLIENT_ACKNOWLEDGE acknowledges all that was received", () -> {
            Session session = session(CLIENT);
            Queue queue = queue(session);
            send(session, queue, "1", "2", "3");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            consumer.receive(SOON).acknowledge();
            session.close();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "3");
            nothing(other);
        });
        check("4.4.11", "CLIENT_ACKNOWLEDGE: what was not acknowledged comes again", () -> {
            Connection connection = started();
            Session session = connection.createSession(false, CLIENT);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            connection.close();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            Message found = other.receive(SOON);
            same("1", text(found));
            is(found.getJMSRedelivered(), "JMSRedelivered is false");
            same(2, found.getIntProperty("JMSXDeliveryCount"));
            found = other.receive(SOON);
            same("2", text(found));
            is(!found.getJMSRedelivered(), "JMSRedelivered of what was only fetched");
        });
        check("4.4.11", "recover gives again what was not acknowledged", () -> {
            Session session = session(CLIENT);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            session.recover();
            Message found = consumer.receive(SOON);
            same("1", text(found));
            is(found.getJMSRedelivered(), "JMSRedelivered is false");
            consumer.receive(SOON).acknowledge();
            nothing(consumer);
        });
        check("4.4.11", "acknowledgements of more messages than the prefetch", () -> {
            Connection connection = connection("jms.prefetchPolicy.all=10");
            connection.start();
            Session session = connection.createSession(false, CLIENT);
            Queue queue = queue(session);
            for (int count = 0; count < 60; count++) {
                send(session, queue, "" + count);
            }
            MessageConsumer consumer = session.createConsumer(queue);
            Message last = null;
            for (int count = 0; count < 60; count++) {
                last = consumer.receive(SOON);
                same("" + count, text(last));
            }
            last.acknowledge();
            session.close();
            nothing(session(AUTO).createConsumer(queue));
        });
        check("ActiveMQ", "INDIVIDUAL_ACKNOWLEDGE", () -> {
            Session session = session(INDIVIDUAL);
            Queue queue = queue(session);
            send(session, queue, "1", "2", "3");
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            consumer.receive(SOON).acknowledge();
            session.close();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "1", "3");
            nothing(other);
        });
    }

    private void transactions() {
        check("4.4.7", "sent messages come with the commit", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            MessageConsumer other = session(AUTO).createConsumer(queue);
            send(session, queue, "1", "2");
            nothing(other);
            session.commit();
            expect(other, "1", "2");
        });
        check("4.4.7", "sent messages are gone with the rollback", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            send(session, queue, "1");
            session.rollback();
            send(session, queue, "2");
            session.commit();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "2");
            nothing(other);
        });
        check("4.4.7", "received messages are done with the commit", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            session.commit();
            session.close();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "2");
            nothing(other);
        });
        check("4.4.7", "received messages come again after the rollback, in order", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            send(session, queue, "1", "2", "3");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1", "2");
            session.rollback();
            Message found = consumer.receive(SOON);
            same("1", text(found));
            is(found.getJMSRedelivered(), "JMSRedelivered is false");
            same(2, found.getIntProperty("JMSXDeliveryCount"));
            expect(consumer, "2", "3");
            session.commit();
        });
        check("4.4.7", "closing a transacted session rolls it back", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            send(session, queue, "1");
            session.commit();
            send(session, queue, "2");
            expect(session.createConsumer(queue), "1");
            session.close();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "1");
            nothing(other);
        });
        check("4.4.7", "one transaction over several destinations", () -> {
            Session session = session(0);
            Queue from = queue(session);
            Queue to = queue(session);
            Topic topic = topic(session);
            MessageConsumer heard = session(AUTO).createConsumer(topic);
            send(session, from, "1");
            session.commit();
            MessageConsumer consumer = session.createConsumer(from);
            expect(consumer, "1");
            send(session, to, "2");
            send(session, topic, "3");
            nothing(heard);
            session.commit();
            expect(heard, "3");
            expect(session(AUTO).createConsumer(to), "2");
        });
        check("4.4.7", "a transaction with more messages than the prefetch", () -> {
            Connection connection = connection("jms.prefetchPolicy.all=10");
            connection.start();
            Session session = connection.createSession(true, 0);
            Queue queue = queue(session);
            for (int count = 0; count < 40; count++) {
                send(session, queue, "" + count);
            }
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            for (int count = 0; count < 40; count++) {
                expect(consumer, "" + count);
            }
            session.commit();
            nothing(consumer);
        });
        check("4.4.7", "a consumer that is closed before the commit", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            send(session, queue, "1", "2");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            expect(consumer, "1");
            consumer.close();
            session.commit();
            MessageConsumer other = session(AUTO).createConsumer(queue);
            expect(other, "2");
            nothing(other);
        });
        check("8.3", "XA is refused, or works", () -> {
            ActiveMQXAConnectionFactory factory = new ActiveMQXAConnectionFactory(url);
            javax.jms.XAConnection connection = factory.createXAConnection();
            try {
                connection.start();
                XAResource resource = connection.createXASession().getXAResource();
                Xid xid = new Id();
                try {
                    resource.start(xid, XAResource.TMNOFLAGS);
                    resource.end(xid, XAResource.TMSUCCESS);
                    resource.rollback(xid);
                } catch (XAException error) {
                    same(XAException.XAER_RMERR, error.errorCode);
                }
            } finally {
                connection.close();
            }
        });
        check("ActiveMQ", "a message that is rolled back too often becomes a dead letter", () -> {
            Session session = session(0);
            Queue queue = queue(session);
            MessageConsumer dead = session(AUTO).createConsumer(session.createQueue("ActiveMQ.DLQ"));
            while (dead.receive(NEVER) != null) {
                // Of other checks.
            }
            send(session, queue, "bad");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            for (int count = 0; count < 3; count++) {
                expect(consumer, "bad");
                session.rollback();
            }
            nothing(consumer);
            Message letter = dead.receive(SOON);
            same("bad", text(letter));
            is(letter.getStringProperty("dlqDeliveryFailureCause") != null, "no cause");
            same("queue://ActiveMQ.DLQ", "" + letter.getJMSDestination());
        });
    }

    /** An id of a transaction. */
    private static final class Id implements Xid {
        @Override
        public int getFormatId() {
            return 7;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return new byte[] {1, 2};
        }

        @Override
        public byte[] getBranchQualifier() {
            return new byte[] {3};
        }
    }

    private void queues() {
        check("5.1", "each message goes to one consumer", () -> {
            Queue queue = queue(session(AUTO));
            MessageConsumer one = session(AUTO).createConsumer(queue);
            MessageConsumer two = session(AUTO).createConsumer(queue);
            Session session = session(AUTO);
            for (int count = 0; count < 20; count++) {
                send(session, queue, "" + count);
            }
            int first = 0;
            int second = 0;
            while (one.receive(NEVER) != null) {
                first++;
            }
            while (two.receive(NEVER) != null) {
                second++;
            }
            same(20, first + second);
            is(first > 0 && second > 0, first + " and " + second);
        });
        check("5.2", "a queue keeps messages until somebody comes", () -> {
            Connection connection = started();
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            send(session, queue, "1");
            connection.close();
            expect(session(AUTO).createConsumer(queue), "1");
        });
        check("5.8", "a message of a consumer that has gone goes to another", () -> {
            Connection connection = started();
            Queue queue = queue(session(AUTO));
            MessageConsumer one = connection.createSession(false, CLIENT).createConsumer(queue);
            send(session(AUTO), queue, "1");
            expect(one, "1");
            MessageConsumer two = session(AUTO).createConsumer(queue);
            nothing(two);
            connection.close();
            expect(two, "1");
        });
        check("5.9", "a browser sees messages and removes none", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            send(session, queue, "1", "2", "3");
            for (int round = 0; round < 2; round++) {
                QueueBrowser browser = session.createBrowser(queue);
                List<String> found = new ArrayList<>();
                for (Object each : Collections.list((Enumeration<?>) browser.getEnumeration())) {
                    found.add(text((Message) each));
                }
                same(List.of("1", "2", "3"), found);
                browser.close();
            }
            expect(session.createConsumer(queue), "1", "2", "3");
        });
        check("5.9", "a browser of an empty queue", () -> {
            Session session = session(AUTO);
            QueueBrowser browser = session.createBrowser(queue(session));
            is(!browser.getEnumeration().hasMoreElements(), "there is something");
        });
        check("5.9", "a browser with a selector", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            for (int count = 0; count < 5; count++) {
                Message message = session.createTextMessage("" + count);
                message.setIntProperty("n", count);
                producer.send(message);
            }
            QueueBrowser browser = session.createBrowser(queue, "n > 2");
            same(2, Collections.list((Enumeration<?>) browser.getEnumeration()).size());
        });
        check("5.9", "a browser of 700 messages", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            for (int count = 0; count < 700; count++) {
                producer.send(session.createTextMessage("" + count));
            }
            Message last = session.createTextMessage("last");
            session.createProducer(queue).send(last);
            QueueBrowser browser = session.createBrowser(queue);
            List<?> found = Collections.list((Enumeration<?>) browser.getEnumeration());
            is(found.size() >= 400, "only " + found.size());
        });
    }

    private void topics() {
        check("6.1", "every subscriber gets every message", () -> {
            Topic topic = topic(session(AUTO));
            MessageConsumer one = session(AUTO).createConsumer(topic);
            MessageConsumer two = session(AUTO).createConsumer(topic);
            send(session(AUTO), topic, "1", "2");
            expect(one, "1", "2");
            expect(two, "1", "2");
        });
        check("6.2", "who was not there gets nothing", () -> {
            Session session = session(AUTO);
            Topic topic = topic(session);
            send(session, topic, "1");
            MessageConsumer consumer = session.createConsumer(topic);
            nothing(consumer);
            send(session, topic, "2");
            expect(consumer, "2");
        });
        check("6.11", "noLocal", () -> {
            Session session = session(AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createConsumer(topic, null, true);
            send(session, topic, "own");
            send(session(AUTO), topic, "other");
            expect(consumer, "other");
            nothing(consumer);
        });
        check("6.11.1", "a durable subscription keeps messages", () -> {
            String id = name("id");
            Connection connection = named(id);
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            TopicSubscriber subscriber = session.createDurableSubscriber(topic, "s");
            send(session, topic, "1");
            expect(subscriber, "1");
            connection.close();
            send(session(AUTO), topic, "2", "3");
            session = named(id).createSession(false, AUTO);
            subscriber = session.createDurableSubscriber(topic, "s");
            expect(subscriber, "2", "3");
            nothing(subscriber);
        });
        check("6.11.1", "a durable subscription has one consumer at a time", () -> {
            Connection connection = named(name("id"));
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            session.createDurableSubscriber(topic, "s");
            Session other = connection.createSession(false, AUTO);
            fails(JMSException.class, () -> other.createDurableSubscriber(topic, "s"));
        });
        check("6.11.1", "unsubscribe ends a durable subscription", () -> {
            String id = name("id");
            Connection connection = named(id);
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            session.createDurableSubscriber(topic, "s").close();
            session.unsubscribe("s");
            send(session, topic, "1");
            nothing(session.createDurableSubscriber(topic, "s"));
        });
        check("6.11.1", "an active durable subscription cannot be ended", () -> {
            Connection connection = named(name("id"));
            Session session = connection.createSession(false, AUTO);
            session.createDurableSubscriber(topic(session), "s");
            fails(JMSException.class, () -> session.unsubscribe("s"));
        });
        check("6.11.1", "unsubscribe without a subscription", () -> {
            Session session = named(name("id")).createSession(false, AUTO);
            fails(InvalidDestinationException.class, () -> session.unsubscribe("missing"));
        });
        check("6.11.1", "another topic makes another durable subscription", () -> {
            Connection connection = named(name("id"));
            Session session = connection.createSession(false, AUTO);
            Topic one = topic(session);
            Topic two = topic(session);
            session.createDurableSubscriber(one, "s").close();
            send(session, one, "1");
            MessageConsumer subscriber = session.createDurableSubscriber(two, "s");
            send(session, one, "2");
            send(session, two, "3");
            expect(subscriber, "3");
            nothing(subscriber);
        });
        check("6.11.1", "another selector makes another durable subscription", () -> {
            Connection connection = named(name("id"));
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            session.createDurableSubscriber(topic, "s", "n = 1", false).close();
            MessageConsumer subscriber = session.createDurableSubscriber(topic, "s", "n = 2", false);
            MessageProducer producer = session.createProducer(topic);
            for (int count = 0; count < 4; count++) {
                Message message = session.createTextMessage("" + count);
                message.setIntProperty("n", count);
                producer.send(message);
            }
            expect(subscriber, "2");
            nothing(subscriber);
        });
        check("6.11.1", "two durable subscriptions of one topic", () -> {
            Connection connection = named(name("id"));
            Session session = connection.createSession(false, AUTO);
            Topic topic = topic(session);
            MessageConsumer one = session.createDurableSubscriber(topic, "s1");
            MessageConsumer two = session.createDurableSubscriber(topic, "s2");
            send(session, topic, "1");
            expect(one, "1");
            expect(two, "1");
        });
        check("6.11.1", "a durable subscription acknowledges as a queue does", () -> {
            String id = name("id");
            Connection connection = named(id);
            Session session = connection.createSession(false, CLIENT);
            Topic topic = topic(session);
            MessageConsumer subscriber = session.createDurableSubscriber(topic, "s");
            send(session, topic, "1", "2");
            subscriber.receive(SOON).acknowledge();
            expect(subscriber, "2");
            connection.close();
            session = named(id).createSession(false, AUTO);
            subscriber = session.createDurableSubscriber(topic, "s");
            Message found = subscriber.receive(SOON);
            same("2", text(found));
            same(topic, found.getJMSDestination());
        });
        check("6.11.1", "rollback with a topic", () -> {
            Session session = session(0);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createConsumer(topic);
            send(session(AUTO), topic, "1");
            expect(consumer, "1");
            session.rollback();
            expect(consumer, "1");
            session.commit();
        });
    }

    private void selected(String selector, String... wanted) throws JMSException {
        Session session = session(AUTO);
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int count = 0; count < 4; count++) {
            Message message = session.createTextMessage("" + count);
            message.setIntProperty("n", count);
            message.setDoubleProperty("d", count / 2.0);
            message.setStringProperty("s", "text" + count);
            message.setBooleanProperty("even", count % 2 == 0);
            message.setJMSType("kind" + count);
            message.setJMSCorrelationID("c" + count);
            if (count > 1) {
                message.setStringProperty("late", "yes");
            }
            producer.setPriority(count + 3);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue, selector);
        // The client brings what it has fetched in the order of priorities.
        List<String> found = new ArrayList<>();
        for (String each : wanted) {
            found.add(next(consumer));
        }
        Collections.sort(found);
        same(List.of(wanted), found);
        nothing(consumer);
    }

    private void selectors() {
        check("3.8.1.1", "selector: numbers", () -> selected("n >= 1 AND n < 3", "1", "2"));
        check("3.8.1.1", "selector: arithmetic", () -> selected("n * 2 + 1 = 5 OR d = 1.5", "2", "3"));
        check("3.8.1.1", "selector: texts", () -> selected("s = 'text1' OR s <> 'text0' AND n = 3", "1", "3"));
        check("3.8.1.1", "selector: BETWEEN", () -> selected("n BETWEEN 1 AND 2", "1", "2"));
        check("3.8.1.1", "selector: IN", () -> selected("s IN ('text0', 'text3')", "0", "3"));
        check("3.8.1.1", "selector: NOT IN", () -> selected("s NOT IN ('text0', 'text3')", "1", "2"));
        check("3.8.1.1", "selector: LIKE", () -> selected("s LIKE 't_xt%2'", "2"));
        check("3.8.1.1", "selector: LIKE with ESCAPE", () -> selected("s NOT LIKE 'x!_%' ESCAPE '!'", "0", "1", "2", "3"));
        check("3.8.1.1", "selector: IS NULL", () -> selected("late IS NULL", "0", "1"));
        check("3.8.1.1", "selector: IS NOT NULL", () -> selected("late IS NOT NULL", "2", "3"));
        check("3.8.1.1", "selector: what is missing is unknown", () -> selected("NOT (late = 'no')", "2", "3"));
        check("3.8.1.1", "selector: truth values", () -> selected("even = TRUE", "0", "2"));
        check("3.8.1.1", "selector: JMSPriority", () -> selected("JMSPriority > 4", "2", "3"));
        check("3.8.1.1", "selector: JMSType", () -> selected("JMSType = 'kind2'", "2"));
        check("3.8.1.1", "selector: JMSCorrelationID", () -> selected("JMSCorrelationID LIKE 'c%1'", "1"));
        check("3.8.1.1", "selector: JMSDeliveryMode", () -> selected("JMSDeliveryMode = 'PERSISTENT'", "0", "1", "2", "3"));
        check("3.8.1.1", "selector: a topic's subscriber", () -> {
            Session session = session(AUTO);
            Topic topic = topic(session);
            MessageConsumer consumer = session.createConsumer(topic, "n = 1");
            MessageProducer producer = session.createProducer(topic);
            for (int count = 0; count < 3; count++) {
                Message message = session.createTextMessage("" + count);
                message.setIntProperty("n", count);
                producer.send(message);
            }
            expect(consumer, "1");
            nothing(consumer);
        });
        check("3.8.1.2", "selector: one that cannot be read", () -> {
            Session session = session(AUTO);
            fails(InvalidSelectorException.class, () -> session.createConsumer(queue(session), "n = = 1"));
        });
        check("3.8.1", "selector: what nobody selects waits", () -> {
            Session session = session(AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue, "n = 1");
            send(session, queue, "0");
            nothing(consumer);
            consumer.close();
            expect(session.createConsumer(queue), "0");
        });
    }

    private void temporaries() {
        check("4.4.3", "request and reply over a temporary queue", () -> {
            Connection asking = started();
            Session session = asking.createSession(false, AUTO);
            Queue service = queue(session);
            Session server = session(AUTO);
            server.createConsumer(service).setMessageListener(request -> {
                try {
                    Message reply = server.createTextMessage("re " + text(request));
                    reply.setJMSCorrelationID(request.getJMSMessageID());
                    server.createProducer(request.getJMSReplyTo()).send(reply);
                } catch (JMSException error) {
                    error.printStackTrace();
                }
            });
            TemporaryQueue answers = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(answers);
            Message request = session.createTextMessage("x");
            request.setJMSReplyTo(answers);
            session.createProducer(service).send(request);
            Message reply = consumer.receive(SOON);
            same("re x", text(reply));
            same(request.getJMSMessageID(), reply.getJMSCorrelationID());
        });
        check("4.4.3", "only its own connection consumes from a temporary queue", () -> {
            Session session = session(AUTO);
            TemporaryQueue queue = session.createTemporaryQueue();
            Session other = session(AUTO);
            fails(JMSException.class, () -> other.createConsumer(queue));
        });
        check("4.4.3", "others send to a temporary queue", () -> {
            Session session = session(AUTO);
            TemporaryQueue queue = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(queue);
            Session other = session(AUTO);
            Thread.sleep(100);
            send(other, queue, "1");
            expect(consumer, "1");
        });
        check("4.4.3", "others that are there already send to a temporary queue", () -> {
            Session other = session(AUTO);
            Session session = session(AUTO);
            TemporaryQueue queue = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(queue);
            Thread.sleep(100);
            send(other, queue, "1");
            expect(consumer, "1");
        });
        check("4.4.3", "a temporary queue that was deleted is gone", () -> {
            Session session = session(AUTO);
            TemporaryQueue queue = session.createTemporaryQueue();
            Session other = session(AUTO);
            Thread.sleep(100);
            send(other, queue, "1");
            queue.delete();
            Thread.sleep(100);
            fails(JMSException.class, () -> send(other, queue, "2"));
        });
        check("4.4.3", "a temporary queue that is consumed cannot be deleted", () -> {
            Session session = session(AUTO);
            TemporaryQueue queue = session.createTemporaryQueue();
            session.createConsumer(queue);
            fails(JMSException.class, () -> queue.delete());
        });
        check("4.4.3", "a temporary queue ends with its connection", () -> {
            Connection connection = started();
            TemporaryQueue queue = connection.createSession(false, AUTO).createTemporaryQueue();
            Session other = session(AUTO);
            Thread.sleep(100);
            send(other, queue, "1");
            connection.close();
            Thread.sleep(100);
            fails(JMSException.class, () -> send(other, queue, "2"));
        });
        check("4.4.3", "a temporary topic", () -> {
            Session session = session(AUTO);
            TemporaryTopic topic = session.createTemporaryTopic();
            MessageConsumer one = session.createConsumer(topic);
            MessageConsumer two = session.createConsumer(topic);
            Session other = session(AUTO);
            Thread.sleep(100);
            send(other, topic, "1");
            expect(one, "1");
            expect(two, "1");
        });
        check("8.2", "QueueRequestor", () -> {
            ActiveMQConnection connection = (ActiveMQConnection) started();
            QueueSession session = connection.createQueueSession(false, AUTO);
            Queue service = queue(session);
            Session server = session(AUTO);
            server.createConsumer(service).setMessageListener(request -> {
                try {
                    server.createProducer(request.getJMSReplyTo()).send(server.createTextMessage("yes"));
                } catch (JMSException error) {
                    error.printStackTrace();
                }
            });
            QueueRequestor requestor = new QueueRequestor(session, service);
            same("yes", text(requestor.request(session.createTextMessage("?"))));
        });
    }

    private void extensions() {
        check("ActiveMQ", "a composite queue to send to", () -> {
            Session session = session(AUTO);
            String one = name("a");
            String two = name("b");
            send(session, session.createQueue(one + "," + two), "1");
            expect(session.createConsumer(session.createQueue(one)), "1");
            expect(session.createConsumer(session.createQueue(two)), "1");
        });
        check("ActiveMQ", "a composite of a queue and a topic", () -> {
            Session session = session(AUTO);
            String one = name("a");
            String two = name("b");
            MessageConsumer consumer = session.createConsumer(session.createTopic(two));
            send(session, session.createQueue(one + ",topic://" + two), "1");
            expect(session.createConsumer(session.createQueue(one)), "1");
            expect(consumer, "1");
        });
        check("ActiveMQ", "a composite queue to consume from", () -> {
            Session session = session(AUTO);
            String one = name("a");
            String two = name("b");
            MessageConsumer consumer = session.createConsumer(session.createQueue(one + "," + two));
            send(session, session.createQueue(one), "1");
            send(session, session.createQueue(two), "2");
            List<String> found = new ArrayList<>(List.of(next(consumer), next(consumer)));
            Collections.sort(found);
            same(List.of("1", "2"), found);
        });
        check("ActiveMQ", "wildcards of a topic, before it is there", () -> {
            Session session = session(AUTO);
            String base = name("w");
            MessageConsumer star = session.createConsumer(session.createTopic(base + ".*.x"));
            MessageConsumer rest = session.createConsumer(session.createTopic(base + ".>"));
            send(session, session.createTopic(base + ".a.x"), "1");
            send(session, session.createTopic(base + ".b.y"), "2");
            expect(star, "1");
            nothing(star);
            expect(rest, "1", "2");
        });
        check("ActiveMQ", "wildcards of queues that are there", () -> {
            Session session = session(AUTO);
            String base = name("w");
            send(session, session.createQueue(base + ".a"), "1");
            send(session, session.createQueue(base + ".b"), "2");
            MessageConsumer consumer = session.createConsumer(session.createQueue(base + ".*"));
            List<String> found = new ArrayList<>(List.of(next(consumer), next(consumer)));
            Collections.sort(found);
            same(List.of("1", "2"), found);
        });
        check("ActiveMQ", "virtual topics", () -> {
            Session session = session(AUTO);
            String topic = "VirtualTopic." + name("v");
            MessageConsumer a = session.createConsumer(session.createQueue("Consumer.A." + topic));
            MessageConsumer b1 = session.createConsumer(session.createQueue("Consumer.B." + topic));
            send(session, session.createTopic(topic), "1");
            expect(a, "1");
            expect(b1, "1");
        });
        check("ActiveMQ", "an exclusive consumer gets all", () -> {
            Session session = session(AUTO);
            String name = name("x");
            Queue queue = session.createQueue(name + "?consumer.exclusive=true");
            MessageConsumer one = session.createConsumer(queue);
            MessageConsumer two = session(AUTO).createConsumer(queue);
            Queue plain = session.createQueue(name);
            for (int count = 0; count < 10; count++) {
                send(session, plain, "" + count);
            }
            for (int count = 0; count < 10; count++) {
                expect(one, "" + count);
            }
            nothing(two);
            one.close();
            send(session, plain, "next");
            expect(two, "next");
        });
        check("ActiveMQ", "consumer priority", () -> {
            Session session = session(AUTO);
            String name = name("x");
            MessageConsumer low = session(AUTO).createConsumer(session.createQueue(name));
            MessageConsumer high =
                session.createConsumer(session.createQueue(name + "?consumer.priority=10"));
            send(session, session.createQueue(name), "1", "2", "3");
            expect(high, "1", "2", "3");
            nothing(low);
        });
        check("ActiveMQ", "a message group goes to one consumer", () -> {
            Queue queue = queue(session(AUTO));
            MessageConsumer one = session(AUTO).createConsumer(queue);
            MessageConsumer two = session(AUTO).createConsumer(queue);
            Session session = session(AUTO);
            MessageProducer producer = session.createProducer(queue);
            for (int count = 0; count < 10; count++) {
                Message message = session.createTextMessage("" + count);
                message.setStringProperty("JMSXGroupID", "g");
                producer.send(message);
            }
            Message first = one.receive(NEVER);
            MessageConsumer owner = first == null ? two : one;
            MessageConsumer other = first == null ? one : two;
            for (int count = first == null ? 0 : 1; count < 10; count++) {
                expect(owner, "" + count);
            }
            nothing(other);
        });
        check("ActiveMQ", "message groups are divided among consumers", () -> {
            Queue queue = queue(session(AUTO));
            MessageConsumer one = session(AUTO).createConsumer(queue);
            MessageConsumer two = session(AUTO).createConsumer(queue);
            Session session = session(AUTO);
            MessageProducer producer = session.createProducer(queue);
            for (int count = 0; count < 20; count++) {
                Message message = session.createTextMessage("" + count);
                message.setStringProperty("JMSXGroupID", "g" + count % 10);
                producer.send(message);
            }
            is(one.receive(SOON) != null && two.receive(SOON) != null, "one got all");
        });
    }

    /** What a program does with this option of the factory's URL. */
    private void option(String options) {
        check("URL", options, () -> {
            Connection connection = connection(options);
            connection.start();
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            String text = String.join("", Collections.nCopies(3000, "text "));
            for (int count = 0; count < 30; count++) {
                producer.send(session.createTextMessage(count + text));
            }
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeBytes(new byte[9000]);
            producer.send(bytes);
            for (int count = 0; count < 30; count++) {
                expect(consumer, count + text);
            }
            same(9000L, ((BytesMessage) consumer.receive(SOON)).getBodyLength());
            nothing(consumer);
            Session other = connection.createSession(true, 0);
            send(other, queue, "1");
            other.commit();
            expect(consumer, "1");
        });
    }

    private void options() {
        option("jms.useCompression=true");
        option("jms.prefetchPolicy.all=1");
        option("jms.prefetchPolicy.all=0");
        option("jms.producerWindowSize=10000");
        option("jms.optimizeAcknowledge=true&jms.useAsyncSend=true");
        option("jms.alwaysSyncSend=true");
        option("jms.dispatchAsync=false&jms.alwaysSessionAsync=false");
        option("jms.watchTopicAdvisories=false");
        option("jms.copyMessageOnSend=false&jms.disableTimeStampsByDefault=true");
        option("wireFormat.version=9");
        option("wireFormat.version=10");
        option("wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false");
        option("wireFormat.maxInactivityDuration=0");
        option("wireFormat.stackTraceEnabled=false&wireFormat.tcpNoDelayEnabled=false");
        check("URL", "failover:", () -> {
            String inner = "failover:(" + url + ")?maxReconnectAttempts=2";
            Connection connection =
                new org.apache.activemq.ActiveMQConnectionFactory(inner).createConnection();
            connection.start();
            Session session = connection.createSession(false, AUTO);
            Queue queue = queue(session);
            send(session, queue, "1");
            expect(session.createConsumer(queue), "1");
            TemporaryQueue temporary = session.createTemporaryQueue();
            send(session, temporary, "2");
            expect(session.createConsumer(temporary), "2");
            connection.close();
        });
    }
}
