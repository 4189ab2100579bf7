import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.TreeMap;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/** Sends messages of each kind that others read, or reads what others have sent: Mapped URL WAY. */
public final class Mapped {
    private Mapped() {
    }

    public static void main(String[] arguments) throws Exception {
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        if (arguments[1].equals("send")) {
            send(session, session.createQueue("mapped"));
        } else {
            take(session.createConsumer(session.createQueue("back")));
        }
        connection.close();
        System.out.println("END");
        System.exit(0);
    }

    private static void send(Session session, Queue queue) throws JMSException {
        MessageProducer producer = session.createProducer(queue);
        TextMessage text = session.createTextMessage("t\u00e4xt");
        text.setJMSCorrelationID("c-1");
        text.setJMSType("kind");
        text.setJMSReplyTo(session.createQueue("answers"));
        text.setStringProperty("colour", "red");
        text.setIntProperty("n", 7);
        text.setBooleanProperty("z", true);
        text.setDoubleProperty("d", 1.5);
        producer.send(text);
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, -1});
        producer.send(bytes);
        MapMessage map = session.createMapMessage();
        map.setString("name", "tea");
        map.setInt("count", 3);
        map.setBytes("raw", new byte[] {1, 2});
        producer.send(map);
        producer.setTimeToLive(1);
        producer.send(session.createTextMessage("expired"));
        producer.setTimeToLive(600000);
        producer.setPriority(9);
        producer.send(session.createTextMessage("urgent"));
    }

    private static void take(MessageConsumer consumer) throws JMSException {
        for (Message found = consumer.receive(2000); found != null; found = consumer.receive(500)) {
            String body = "";
            if (found instanceof TextMessage) {
                body = "text " + ((TextMessage) found).getText();
            } else if (found instanceof BytesMessage) {
                body = "bytes " + ((BytesMessage) found).getBodyLength();
            }
            TreeMap<String, Object> said = new TreeMap<>();
            for (Object each : Collections.list((Enumeration<?>) found.getPropertyNames())) {
                String name = (String) each;
                if (List.of("colour", "n").contains(name)) {
                    said.put(name, found.getObjectProperty(name));
                }
            }
            System.out.println(body + " " + found.getJMSPriority() + " " + found.getJMSCorrelationID()
                + " " + (found.getJMSExpiration() > 0) + " " + said);
        }
    }
}
