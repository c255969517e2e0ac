package daemon

import (
	"testing"

	"sequins/config"
	"sequins/test/expect"
)

// Each form of a source is one for the configuration and wherever a source is opened.
func TestForms(t *testing.T) {
	const azure = "@account.dfs.core.windows.net/prefix"
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
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
		c.Source, c.S3.Region = form, "r"
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		src, err := OpenSource(t.Context(), &c)
		expect.NoError(t, err)
		if got := src.Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
}
