package main

import (
	"io"
	"testing"

	"sequins/config"
	"sequins/source/hdfs"
)

// What the configuration says of a source's defaults is what they are.
func TestSourceDefaults(t *testing.T) {
	if c := config.Default().HDFS; c.Timeout != hdfs.DefaultTimeout || c.RetryFor != hdfs.DefaultRetryFor {
		t.Errorf("%+v, want %v and %v", c, hdfs.DefaultTimeout, hdfs.DefaultRetryFor)
	}
}

// The schemes of Hadoop's file systems are those of S3, in the configuration and wherever a source is opened.
func TestSchemesOfS3(t *testing.T) {
	for _, scheme := range []string{"s3", "s3a", "s3n"} {
		c := config.Default()
		c.Source, c.S3.Region = scheme+"://bucket/prefix", "r"
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		src, err := openSource(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		if got := src.Path("db", "1"); got != "s3://bucket/prefix/db/1" {
			t.Errorf("%s: %s", scheme, got)
		}
		if err := src.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
}
