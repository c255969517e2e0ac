// Package corpus compares what sequins reads with what other readers read, for any folder of Parquet and Avro files: pyarrow
// and DuckDB, fastavro and Avro for Java. corpus.py does it, and known.tsv are the differences that are known, with their
// reasons. The test runs it on the files of this repository, and on others with
//
//	go test -tags integration ./test/corpus -v -folder DIR
package corpus
