// Writes files by Spark into DIR. Beside each file, in FILE.raw, are the schema that Spark reads in it, as JSON, and its
// rows as Spark reads them, a line for each. spark.py renders them: floats are their bits, decimals unscaled, dates,
// timestamps and intervals counts of their unit since 1970, bytes are hexadecimal, records are arrays of their fields,
// maps arrays of pairs. What was written is in DIR/manifest.ndjson. Everything is the same in each run.

import java.math.{BigDecimal, BigInteger}
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.time.{Duration, Instant, LocalDate, LocalDateTime, Period, ZoneOffset}
import java.time.temporal.ChronoUnit.MICROS
import scala.collection.JavaConverters._
import scala.util.Random
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._

object Values {
  def micros(i: Instant): Long = i.getEpochSecond * 1000000 + i.getNano / 1000 // MICROS.between overflows

  val firstMicros = micros(Instant.parse("0001-01-01T00:00:00Z"))
  val lastMicros = micros(Instant.parse("9999-12-31T23:59:59.999999Z"))

  def between(r: Random, first: Long, last: Long) = first + Math.floorMod(r.nextLong(), last - first + 1)

  def micros(r: Random): Long = r.nextInt(8) match {
    case 0 => firstMicros
    case 1 => lastMicros
    case 2 => -1L
    case 3 => between(r, firstMicros, lastMicros) / 1000000 * 1000000
    case _ => between(r, firstMicros, lastMicros)
  }

  def word(r: Random) = Seq.fill(r.nextInt(12))(Seq("a", "b", "é", "\n", "\"", "\\", " ", "\u0000", "😀")(r.nextInt(9))).mkString

  def double(r: Random) = r.nextInt(10) match {
    case 0 => Double.NaN
    case 1 => Double.NegativeInfinity
    case 2 => -0.0
    case 3 => Double.MinPositiveValue
    case 4 => Double.MaxValue
    case _ => r.nextGaussian() * Math.pow(10, r.nextInt(40) - 20)
  }

  def float(r: Random) = r.nextInt(10) match {
    case 0 => Float.NaN
    case 1 => Float.PositiveInfinity
    case 2 => -0.0f
    case 3 => Float.MinPositiveValue
    case 4 => Float.MaxValue
    case _ => (r.nextGaussian() * Math.pow(10, r.nextInt(20) - 10)).toFloat
  }

  def decimal(r: Random, t: DecimalType) = {
    val digits = r.nextInt(4) match {
      case 0 => "9" * t.precision
      case 1 => r.nextInt(10).toString
      case _ => Seq.fill(1 + r.nextInt(t.precision))(r.nextInt(10)).mkString
    }
    new BigDecimal(new BigInteger(if (r.nextBoolean()) "-" + digits else digits), t.scale)
  }

  /** A value of a type. About half of them are of a few, so that dictionaries are of use. */
  def of(t: DataType, random: Random): Any = {
    val r = if (random.nextBoolean()) new Random(random.nextInt(8)) else random
    t match {
      case StringType => word(r)
      case IntegerType => r.nextInt()
      case LongType => r.nextLong()
      case ShortType => r.nextInt().toShort
      case ByteType => r.nextInt().toByte
      case BooleanType => r.nextBoolean()
      case FloatType => float(r)
      case DoubleType => double(r)
      case d: DecimalType => decimal(r, d)
      case DateType => LocalDate.ofEpochDay(Math.floorDiv(micros(r), 86400000000L))
      case TimestampType => Instant.EPOCH.plus(micros(r), MICROS)
      case TimestampNTZType => LocalDateTime.ofInstant(Instant.EPOCH.plus(micros(r), MICROS), ZoneOffset.UTC)
      case BinaryType => Array.fill(r.nextInt(10))(r.nextInt().toByte)
      case _: YearMonthIntervalType => Period.ofMonths(r.nextInt(100000) - 50000)
      case _: DayTimeIntervalType => Duration.of(between(r, -1000000000000L, 1000000000000L), MICROS)
      case ArrayType(element, nulls) => Seq.fill(r.nextInt(4))(maybe(element, nulls, r))
      case MapType(key, value, nulls) =>
        (0 until r.nextInt(4)).map(_ => of(key, r)).distinct.map(k => k -> maybe(value, nulls, r)).toMap // up to four stay in order
      case s: StructType => Row.fromSeq(s.map(f => maybe(f.dataType, f.nullable, r)))
    }
  }

  def maybe(t: DataType, nullable: Boolean, r: Random): Any = if (nullable && r.nextInt(5) == 0) null else of(t, r)

  def quote(s: String) = s.flatMap {
    case c if c < ' ' || c == '"' || c == '\\' => f"\\u${c.toInt}%04x"
    case c => c.toString
  }.mkString("\"", "", "\"")

  /** Writes a value without rendering it. */
  def raw(v: Any, t: DataType): String = (v, t) match {
    case (null, _) => "null"
    case (s: String, _) => quote(s)
    case (f: Float, _) => java.lang.Float.floatToRawIntBits(f).toString
    case (d: Double, _) => java.lang.Double.doubleToRawLongBits(d).toString
    case (d: BigDecimal, t: DecimalType) => d.setScale(t.scale).unscaledValue.toString
    case (d: LocalDate, _) => d.toEpochDay.toString
    case (i: Instant, _) => micros(i).toString
    case (l: LocalDateTime, _) => micros(l.toInstant(ZoneOffset.UTC)).toString
    case (p: Period, _) => p.toTotalMonths.toString
    case (d: Duration, _) => (d.getSeconds * 1000000 + d.getNano / 1000).toString
    case (b: Array[Byte], _) => b.map("%02x".format(_)).mkString("\"", "", "\"")
    case (a: scala.collection.Seq[_], t: ArrayType) => a.map(raw(_, t.elementType)).mkString("[", ",", "]")
    case (m: scala.collection.Map[_, _], t: MapType) =>
      m.map { case (k, v) => "[" + raw(k, t.keyType) + "," + raw(v, t.valueType) + "]" }.mkString("[", ",", "]")
    case (r: Row, t: StructType) => t.indices.map(i => raw(r.get(i), t(i).dataType)).mkString("[", ",", "]")
    case (_: Boolean | _: Byte | _: Short | _: Int | _: Long, _) => v.toString
  }
}

class Writers(out: Path) {
  val manifest = new StringBuilder
  var files = 0

  def frame(spark: SparkSession, seed: Int, rows: Int, schema: StructType): DataFrame = {
    val r = new Random(seed)
    val all = (0 until rows).map(i => Row.fromSeq(f"k$i%06d" +: schema.tail.map(f => Values.maybe(f.dataType, f.nullable, r))))
    spark.createDataFrame(all.asJava, schema).coalesce(1)
  }

  /** Writes a file, reads it, and notes it. */
  def write(spark: SparkSession, variant: String, codec: String, format: String, frame: DataFrame, options: (String, String)*): Unit = {
    val name = f"spark-$files%03d.$format"
    files += 1
    val (dir, file) = (out.resolve(name + ".dir"), out.resolve(name))
    frame.write.option("compression", codec).options(options.toMap).format(format).save(dir.toString)
    val parts = Files.list(dir).iterator.asScala.filter(_.getFileName.toString.startsWith("part-")).toSeq
    require(parts.size == 1, s"$name: $parts")
    Files.move(parts.head, file)
    val read = spark.read.format(format).load(file.toString)
    val rows = read.schema.json +: read.collect().map(Values.raw(_, read.schema)).toSeq
    Files.write(out.resolve(name + ".raw"), rows.asJava)
    manifest ++= s"""{"writer":"Spark","variant":"$variant","codec":"$codec","file":"$name","key":"k","reads":true}""" + "\n"
  }

  def close(): Unit = Files.write(out.resolve("manifest.ndjson"), manifest.toString.getBytes)
}

object Schemas {
  val key = StructField("k", StringType, nullable = false)
  val word = StructType(Seq(StructField("größe", IntegerType), StructField("b c", StringType), StructField("d.e", LongType, nullable = false)))

  val plain = Seq(
    StringType, IntegerType, LongType, ShortType, ByteType, BooleanType, FloatType, DoubleType, BinaryType, DateType, TimestampType,
    TimestampNTZType, DecimalType(1, 0), DecimalType(5, 2), DecimalType(9, 9), DecimalType(10, 0), DecimalType(18, 4),
    DecimalType(19, 1), DecimalType(30, 10), DecimalType(38, 0), DecimalType(38, 38), YearMonthIntervalType(), DayTimeIntervalType())

  val nested = Seq(
    ArrayType(IntegerType), ArrayType(StringType, containsNull = false), ArrayType(ArrayType(DoubleType)), ArrayType(DecimalType(12, 3)),
    MapType(StringType, LongType), MapType(StringType, TimestampType, valueContainsNull = false), MapType(StringType, ArrayType(MapType(StringType, IntegerType))), word,
    ArrayType(word), MapType(StringType, word), StructType(Seq(StructField("array", ArrayType(StructType(Seq(StructField("element", DateType))))))),
    ArrayType(StructType(Seq(StructField("array", BooleanType), StructField("b", StructType(Seq(StructField("c", ArrayType(ArrayType(BinaryType))))))))),
    StructType(Seq(StructField("a", StructType(Seq(StructField("b", StructType(Seq(StructField("c", FloatType)))))), nullable = false))))

  val keyed = Seq(MapType(IntegerType, DateType), MapType(DateType, StringType), MapType(DecimalType(7, 2), IntegerType), MapType(BooleanType, BooleanType))

  def of(types: Seq[DataType], nullable: Boolean = true) =
    StructType(key +: types.zipWithIndex.map { case (t, i) => StructField(f"c$i%02d", t, nullable) })
}

object Main {
  val codecs = Seq("none", "snappy", "gzip", "zstd", "lz4", "lz4_raw")
  val small = Seq("parquet.page.size" -> "500", "parquet.page.size.row.check.min" -> "10", "parquet.block.size" -> "60000", "parquet.block.size.row.check.min" -> "50")
  val noDictionary = "parquet.enable.dictionary" -> "false"

  def session(spark: SparkSession, timestamps: String, legacy: Boolean, zone: String = "America/New_York", calendar: String = "CORRECTED"): SparkSession = {
    val s = spark.newSession()
    s.conf.set("spark.sql.datetime.java8API.enabled", "true")
    s.conf.set("spark.sql.session.timeZone", zone)
    s.conf.set("spark.sql.codegen.wholeStage", "false") // which takes longer to compile than these rows take
    for (key <- Seq("parquet.datetime", "parquet.int96", "avro.datetime")) s.conf.set(s"spark.sql.${key}RebaseModeInWrite", calendar)
    s.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    s.conf.set("spark.sql.parquet.writeLegacyFormat", legacy.toString)
    s
  }

  def parquet(version: String, w: Writers, spark: SparkSession): Unit = {
    val v = "parquet.writer.version" -> version
    val s = session(spark, "TIMESTAMP_MICROS", legacy = false)
    val all = w.frame(s, 1, 200, Schemas.of(Schemas.plain ++ Schemas.nested ++ Schemas.keyed))
    for (codec <- codecs) {
      w.write(s, s"$version, dictionaries", codec, "parquet", all, small :+ v: _*)
      w.write(s, s"$version, no dictionaries", codec, "parquet", all, small :+ v :+ noDictionary: _*)
    }
    w.write(s, s"$version, dictionaries that become full", "snappy", "parquet", all, small :+ v :+ "parquet.dictionary.page.size" -> "200": _*)
    val required = w.frame(s, 2, 200, Schemas.of(Schemas.plain ++ Schemas.nested, nullable = false))
    for (codec <- Seq("none", "snappy")) w.write(s, s"$version, required", codec, "parquet", required, small :+ v: _*)
    val large = w.frame(s, 3, 5000, Schemas.of(Seq(LongType, BooleanType, StringType), nullable = false))
    for (codec <- codecs) w.write(s, s"$version, 5,000 rows", codec, "parquet", large, v)
  }

  def avro(w: Writers, spark: SparkSession): Unit = {
    val s = session(spark, "TIMESTAMP_MICROS", legacy = false)
    val all = w.frame(s, 4, 200, Schemas.of(Schemas.plain))
    for (codec <- Seq("uncompressed", "deflate", "snappy", "bzip2", "zstandard", "xz")) w.write(s, "Avro", codec, "avro", all)
  }

  def times(version: String, w: Writers, spark: SparkSession): Unit = {
    val v = "parquet.writer.version" -> version
    for (timestamps <- Seq("INT96", "TIMESTAMP_MILLIS")) {
      val s = session(spark, timestamps, legacy = false)
      val some = w.frame(s, 5, 200, Schemas.of(Seq(TimestampType, ArrayType(TimestampType), TimestampNTZType)))
      w.write(s, s"$version, $timestamps", "snappy", "parquet", some, small :+ v: _*)
      w.write(s, s"$version, $timestamps", "zstd", "parquet", some, small :+ v :+ noDictionary: _*)
    }
    for (timestamps <- Seq("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS")) {
      val s = session(spark, timestamps, legacy = true)
      val all = w.frame(s, 6, 200, Schemas.of(Schemas.plain ++ Schemas.nested ++ Schemas.keyed))
      w.write(s, s"$version, $timestamps, writeLegacyFormat", "snappy", "parquet", all, small :+ v: _*)
      w.write(s, s"$version, $timestamps, writeLegacyFormat", "zstd", "parquet", all, small :+ v :+ noDictionary: _*)
    }
  }

  /** Writes times by the calendar of Spark 2. */
  def julian(w: Writers, spark: SparkSession): Unit =
    for (timestamps <- Seq("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS")) {
      val s = session(spark, timestamps, legacy = false, "UTC", "LEGACY")
      val some = w.frame(s, 7, 400, Schemas.of(Seq(DateType, TimestampType, ArrayType(TimestampType), TimestampNTZType)))
      w.write(s, s"$timestamps, datetimeRebaseMode LEGACY", "snappy", "parquet", some)
    }

  def run(spark: SparkSession, dir: String): Unit = {
    val w = new Writers(Paths.get(dir))
    for (version <- Seq("PARQUET_1_0", "PARQUET_2_0")) {
      parquet(version, w, spark)
      times(version, w, spark)
    }
    julian(w, spark)
    avro(w, spark)
    w.close()
  }
}
Main.run(spark, "DIR")
