package main

import (
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
