import org.apache.spark.sql.streaming.Trigger
Seq(("apple", "red", 1), ("fig", "green", 1), ("plum", "blue", 2)).toDF("k", "v", "day").write.json("DIR/in")
for (path <- Seq("sink", "sink-version/1")) {
  val rows = spark.readStream.schema("k string, v string, day int").json("DIR/in")
  rows.writeStream.format("parquet").partitionBy("day").option("checkpointLocation", "DIR/in/_checkpoint/" + path).
    trigger(Trigger.AvailableNow).start("DIR/source/" + path).awaitTermination()
}
