package s3_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/s3"
)

// TestSecrets: a session token of the environment is sent without white space around it, and errors do not have the password of
// an endpoint in the environment.
func TestSecrets(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("X-Amz-Security-Token")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_SESSION_TOKEN": "token\n", "AWS_ENDPOINT_URL_S3": server.URL,
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	o := s3.Options{URL: "s3://bucket/p", Region: "r", PathStyle: true}
	o.MaxRetries = -1
	if _, err := source.Databases(t.Context(), open(t, o)); !errors.Is(err, fs.ErrPermission) || sent != "token" {
		t.Errorf("sent %q, %v", sent, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://u:hunter2@127.0.0.1:1/")
	if _, err := source.Databases(t.Context(), open(t, o)); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	o.Endpoint = "http://u:hunter2@127.0.0.1:1/"
	if _, err := s3.New(t.Context(), o); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for want, o := range map[string]s3.Options{
		"not of the form":               {URL: "s3:///x", Region: "r"},
		"s3://bucket/prefix":            {URL: "hdfs://x/y", Region: "r"},
		"s3x://b":                       {URL: "s3x://b", Region: "r"},
		"must be of the form s3:":       {URL: "s3://key:secret@b/x", Region: "r"},
		"set both or neither":           {URL: "s3://b/x", Region: "r", AccessKeyID: "a"},
		"set both":                      {URL: "s3://b/x", Region: "r", SecretAccessKey: "s"},
		"is not an http":                {URL: "s3://b/x", Region: "r", Endpoint: "localhost:9000"},
		"endpoint":                      {URL: "s3://b/x", Region: "r", Endpoint: "ftp://h"},
		"region is unknown: set region": {URL: "s3://b/x"},
	} {
		if _, err := s3.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for url, want := range map[string]string{
		"s3://b": "s3://b/db/1", "s3://b/": "s3://b/db/1", "s3://b/x/y/": "s3://b/x/y/db/1", "s3://b//x/./z": "s3://b/x/z/db/1",
		"s3a://b/x": "s3://b/x/db/1", "s3n://b": "s3://b/db/1", "S3A://b": "s3://b/db/1",
	} {
		if got := open(t, s3.Options{URL: url, Region: "r"}).Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
