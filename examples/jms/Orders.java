import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * A JMS program: it orders something, and a service confirms the order in a transaction.
 *
 * <p>Start a server, then run it with ActiveMQ's client on the class path:
 *
 * <pre>
 * tmqp-server --door openwire
 * java -cp 'activemq-all-5.16.4.jar' examples/jms/Orders.java tcp://localhost:61616
 * </pre>
 *
 * <p>Nothing in it is for this server: it is a program for ActiveMQ.
 */
public final class Orders {
    private static final long PATIENCE = 10_000;

    private Orders() {
    }

    public static void main(String[] arguments) throws JMSException {
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        try {
            connection.start();
            TemporaryQueue answers = order(connection, "tea", 3);
            serve(connection);
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Message answer = session.createConsumer(answers).receive(PATIENCE);
            System.out.println(((TextMessage) answer).getText());
        } finally {
            connection.close();
        }
    }

    /** Orders something; the answer comes to the queue that is returned. */
    private static TemporaryQueue order(Connection connection, String what, int count)
            throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue answers = session.createTemporaryQueue();
        MapMessage order = session.createMapMessage();
        order.setString("what", what);
        order.setInt("count", count);
        order.setJMSReplyTo(answers);
        order.setStringProperty("country", "DE");
        session.createProducer(session.createQueue("orders")).send(order);
        return answers;
    }

    /** Takes an order of this country, and answers it: both, or neither. */
    private static void serve(Connection connection) throws JMSException {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Queue orders = session.createQueue("orders");
        MessageConsumer consumer = session.createConsumer(orders, "country IN ('DE', 'AT')");
        MapMessage order = (MapMessage) consumer.receive(PATIENCE);
        String text = order.getInt("count") + " x " + order.getString("what") + " are on their way";
        TextMessage answer = session.createTextMessage(text);
        answer.setJMSCorrelationID(order.getJMSMessageID());
        MessageProducer producer = session.createProducer(order.getJMSReplyTo());
        producer.send(answer);
        session.commit();
    }
}
