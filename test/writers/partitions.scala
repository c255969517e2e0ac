// Writes DataFrames that are partitioned by their key. Of the first, partition 5 is empty, so that Spark writes no file for it; each
// of its values is 10 KB that do not compress.
import org.apache.spark.sql.functions._
val noise = new scala.util.Random(1)
val filling = udf((n: Long) => n.toString + " " + Iterator.continually("%016x".format(noise.nextLong())).take(640).mkString)
val all = spark.range(3000).select($"id", concat(lit("ключ-"), $"id") as "text", concat($"id", lit(" ")) as "value")
all.filter(pmod(hash($"text"), lit(8)) =!= 5).select($"text" as "key", filling($"id") as "value").repartition(8, $"key").write.parquet("DIR/strings/1")
all.select(($"id" * 1000003 - 2000000000L).cast("int") as "key", $"value").repartition(6, $"key").write.parquet("DIR/ints/1")
all.select($"id" * 1000000000003L - 3000000000000000L as "key", $"value").repartition(6, $"key").write.parquet("DIR/longs/1")
all.select($"text" as "key", $"value").repartition(3).write.bucketBy(5, "key").option("path", "DIR/buckets/1").format("parquet").saveAsTable("buckets")
