import com.fasterxml.jackson.databind.ObjectMapper;
import com.github.brainlag.nsq.NSQProducer;
import java.util.Arrays;
import java.util.List;

/** Sends objects to a topic, which Jackson's object mapper turns into JSON: HOST PORT TOPIC. */
public final class Orders {
    private Orders() {
    }

    /** A line of an order. */
    public static final class Line {
        public String article;
        public int count;

        Line(String article, int count) {
            this.article = article;
            this.count = count;
        }
    }

    /** An order of a customer. */
    public static final class Order {
        public long id;
        public String customer;
        public double total;
        public boolean paid;
        public String note;
        public List<Line> lines;

        Order(long id, String customer, double total, boolean paid, String note, Line... lines) {
            this.id = id;
            this.customer = customer;
            this.total = total;
            this.paid = paid;
            this.note = note;
            this.lines = Arrays.asList(lines);
        }
    }

    public static void main(String[] words) throws Exception {
        System.setOut(System.err);  // where the library's log goes
        ObjectMapper mapper = new ObjectMapper();
        NSQProducer producer =
            new NSQProducer().addAddress(words[0], Integer.parseInt(words[1])).start();
        List<Order> orders = Arrays.asList(
            new Order(1L << 40, "Zoë", 12.5, true, null, new Line("tea", 2), new Line("cup", 1)),
            new Order(2, "Jürgen", 0.1, false, "leave at the door"));
        for (Order order : orders) {
            producer.produce(words[2], mapper.writeValueAsBytes(order));
        }
        System.exit(0);
    }
}
