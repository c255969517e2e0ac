// Writes a partitioned table of random columns, and how Spark reads it. No column has only texts that Spark takes for
// dates, times or numbers with a point.
import java.nio.file.{Files, Paths, StandardOpenOption}
import org.apache.spark.sql.functions._
import scala.util.Random

val base = "DIR"
val texts = Seq("Bonn", "São Paulo", "a/b", "x=y", "100%", "%41", "q\"\\", "a b", "ключ", "new\nline", "a:b", "#", "7x", "c*d", "^", "[e]", "{f}")
val lines = new StringBuilder
for (seed <- 0 until 3) {
  val r = new Random(seed)
  val rows = (0 until 40).map { i =>
    (s"key-$i", if (r.nextBoolean) Some(i) else None, r.nextInt(20) - 10, if (r.nextInt(4) == 0) null else texts(r.nextInt(texts.size)),
      f"${r.nextInt(12)}%02d", if (r.nextInt(3) == 0) None else Some(5000000000L + r.nextInt(3)))
  }
  val table = s"table$seed"
  rows.toDF("k", "v", "number", "text", "padded", "big").write.partitionBy("number", "text", "padded", "big").parquet(s"$base/$table/1")
  val read = spark.read.parquet(s"$base/$table/1")
  val value = to_json(struct(read.columns.map(c => col(s"`$c`")): _*), Map("ignoreNullFields" -> "false"))
  val record = to_json(struct(lit(table).as("Table"), col("k").as("Key"), value.as("Value")))
  read.select(record).as[String].collect.foreach(line => lines.append(line).append("\n"))
}
Files.write(Paths.get(base, "records.ndjson"), lines.toString.getBytes("UTF-8"), StandardOpenOption.CREATE)
