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

// Each form of a source is one for the configuration and wherever a source is opened.
func TestForms(t *testing.T) {
	const azure = "@account.dfs.core.windows.net/prefix"
	for form, want := range map[string]string{
		"s3://bucket/prefix":     "s3://bucket/prefix/db/1",
		"s3a://bucket/prefix":    "s3://bucket/prefix/db/1",
		"s3n://bucket/prefix":    "s3://bucket/prefix/db/1",
		"gs://bucket/prefix":     "gs://bucket/prefix/db/1",
		"abfss://box" + azure:    "abfss://box" + azure + "/db/1",
		"abfs://box" + azure:     "abfs://box" + azure + "/db/1",
		"wasbs://box" + azure:    "wasbs://box" + azure + "/db/1",
		"wasb://box" + azure:     "wasb://box" + azure + "/db/1",
		"abfss://box/prefix":     "abfss://box/prefix/db/1",
		"hdfs://namenode/prefix": "hdfs://namenode:8020/prefix/db/1",
		"/prefix":                "/prefix/db/1",
		"file:///prefix":         "/prefix/db/1",
	} {
		c := config.Default()
		c.Source, c.S3.Region, c.Azure.Account = form, "r", "account"
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		src, err := openSource(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		if got := src.Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
		if closer, ok := src.(io.Closer); ok {
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
