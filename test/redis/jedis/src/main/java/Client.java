import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

/** Reads from sequins with Jedis, and prints what it has read: see clients_test.go. */
public class Client {
  static String text(List<String> list) {
    return String.join(",", list.stream().map(v -> v == null ? "nil" : v).toList());
  }

  public static void main(String[] args) {
    var address = new HostAndPort(args[0], Integer.parseInt(args[1]));
    var protocol = args[2].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
    try (Jedis r = new Jedis(address, DefaultJedisClientConfig.builder().protocol(protocol).clientName("test").build())) {
      System.out.println("get " + r.get("words/key-001"));
      System.out.println("absent " + (r.get("words/nokey") == null ? "None" : "?"));
      System.out.println("mget " + text(r.mget("words/key-001", "words/nokey", "words/key-002")));
      System.out.println("hget " + r.hget("words", "key-003"));
      System.out.println("hmget " + text(r.hmget("words", "key-003", "nokey")));
      System.out.println("exists " + r.exists("words/key-001", "words/nokey") + " strlen " + r.strlen("words/large"));
      Pipeline p = r.pipelined();
      var answers = new ArrayList<Response<String>>();
      for (int i = 0; i < 300; i++) answers.add(p.get(String.format("words/key-%03d", i)));
      p.sync();
      int right = 0;
      for (int i = 0; i < 300; i++) if (answers.get(i).get().equals("value-" + i)) right++;
      System.out.println("pipeline " + right);
      System.out.println("large " + (r.get("words/large").equals("0123456789".repeat(20000)) ? "True" : "False"));
      int found = 0;
      String cursor = ScanParams.SCAN_POINTER_START;
      do {
        ScanResult<java.util.Map.Entry<String, String>> page = r.hscan("words", cursor, new ScanParams().match("key-*").count(77));
        found += page.getResult().size();
        cursor = page.getCursor();
      } while (!cursor.equals("0"));
      System.out.println("scan " + found + " hlen " + r.hlen("words"));
      try {
        r.set("words/x", "y");
      } catch (JedisDataException e) {
        if (e.getMessage().startsWith("ERR unknown command")) System.out.println("write refused");
      }
      System.out.println("ping " + (r.ping().equals("PONG") ? "True" : "False"));
    }
  }
}
