// Package writers compares what package parquet and package avro read with what other programs wrote: pyarrow, DuckDB,
// polars, fastparquet, fastavro and Spark, with every codec, page version and encoding that they have. Each file is compared
// value by value with what its writer's own reader returns. A table in docs/DATA.md is the outcome; go test -tags integration -update writes it.
//
// What Spark has written in partitioned tables, and partitioned by keys, is served.
package writers
