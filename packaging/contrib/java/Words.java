import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

public class Words {
  static final HttpClient client =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(1)).build();

  static HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create("http://node1:9599" + path)).timeout(Duration.ofSeconds(2));
  }

  /** The value of a key, or null if it is absent. */
  static byte[] get(String db, String key) throws Exception {
    String escaped = URLEncoder.encode(key, StandardCharsets.UTF_8).replace("+", "%20");
    HttpResponse<byte[]> r = client.send(request("/" + db + "/" + escaped).build(), HttpResponse.BodyHandlers.ofByteArray());
    if (r.statusCode() == 404 && r.headers().firstValue("X-Sequins-Version").isPresent()) {
      return null;
    }
    return checked(r);
  }

  /** The values of several keys from one version; null for those that are absent. */
  static byte[][] multiGet(String db, byte[]... keys) throws Exception {
    int size = 0;
    for (byte[] key : keys) {
      size += 4 + key.length;
    }
    ByteBuffer body = ByteBuffer.allocate(size);
    for (byte[] key : keys) {
      body.putInt(key.length).put(key);
    }
    String binary = "application/octet-stream";
    HttpRequest post = request("/" + db).header("Content-Type", binary).header("Accept", binary)
        .POST(HttpRequest.BodyPublishers.ofByteArray(body.array())).build();
    ByteBuffer answer = ByteBuffer.wrap(checked(client.send(post, HttpResponse.BodyHandlers.ofByteArray())));
    byte[][] values = new byte[keys.length][];
    for (int i = 0; i < values.length; i++) {
      int length = answer.getInt();
      if (length != -1) {
        values[i] = new byte[length];
        answer.get(values[i]);
      }
    }
    return values;
  }

  static byte[] checked(HttpResponse<byte[]> r) throws Exception {
    if (r.statusCode() != 200) {
      throw new Exception("status " + r.statusCode() + ": " + new String(r.body(), StandardCharsets.UTF_8));
    }
    return r.body();
  }

  public static void main(String[] args) throws Exception {
    System.out.println("apple is " + new String(get("words", "apple"), StandardCharsets.UTF_8));
    System.out.println("absent is " + get("words", "absent"));
    byte[][] values = multiGet("words", "apple".getBytes(), "absent".getBytes(), "beet".getBytes());
    System.out.println(new String(values[0]).trim() + ", " + values[1] + ", " + new String(values[2]).trim());
  }
}
