import idmint.client.Idmint;
import java.util.List;
import javax.persistence.Entity;

/** Runs the recipe in Numbered.java. An order must keep its id, and another order must get another id. */
@Entity
class Order extends Numbered {
    public static void main(String[] args) throws ReflectiveOperationException {
        ids = new Idmint(List.of(args[0]), "snowflake", new Idmint.Options());
        var field = Numbered.class.getDeclaredField("id");
        field.setAccessible(true);
        var order = new Order();
        order.number();
        var id = (Long) field.get(order);
        order.number();
        var other = new Order();
        other.number();
        if (id < 1L << 60 || !id.equals(field.get(order)) || id.equals(field.get(other))) {
            throw new AssertionError(id);
        }
        System.out.println("done");
        System.exit(0);
    }
}
