package hdfs

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// configure writes a configuration directory.
func configure(t *testing.T, properties map[string]string) string {
	t.Helper()
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	var all struct {
		XMLName  xml.Name   `xml:"configuration"`
		Property []property `xml:"property"`
	}
	for name, value := range properties {
		all.Property = append(all.Property, property{name, value})
	}
	b, err := xml.Marshal(all)
	expect.NoError(t, err)
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), b, 0o644))
	return dir
}

var twoNamenodes = map[string]string{
	"fs.defaultFS":                      "hdfs://prod",
	"dfs.nameservices":                  "prod, other,lame",
	"dfs.ha.namenodes.prod":             "nn1,nn2",
	"dfs.namenode.rpc-address.prod.nn1": " one:9000\n",
	"dfs.namenode.rpc-address.prod.nn2": "two",
	"dfs.namenode.rpc-address.other":    "three:1",
	"dfs.ha.namenodes.lame":             "nn1,nn2",
	"dfs.namenode.rpc-address.lame.nn1": "four:1",
	"dfs.namenode.rpc-address.vars":     "${host}:1",
}

func TestURLs(t *testing.T) {
	dir := configure(t, twoNamenodes)
	bad := configure(t, map[string]string{"fs.defaultFS": "file:///"})
	tests := []struct {
		url, dir  string
		namenodes string
		path, err string
	}{
		{"hdfs://host:9000/data", "", "host:9000", "hdfs://host:9000/data/db/1", ""},
		{"HDFS://host/data/../x//", "", "host:8020", "hdfs://host:8020/x/db/1", ""},
		{"hdfs://host", "", "host:8020", "hdfs://host:8020/db/1", ""},
		{"hdfs://[::1]/data", "", "[::1]:8020", "hdfs://[::1]:8020/data/db/1", ""},
		{"hdfs://[::1]:9/data%20sets", "", "[::1]:9", "hdfs://[::1]:9/data sets/db/1", ""},
		{"hdfs://host:9000/data", dir, "host:9000", "hdfs://host:9000/data/db/1", ""},
		{"hdfs://prod/data", dir, "one:9000 two:8020", "hdfs://prod/data/db/1", ""},
		{"hdfs:///data", dir, "one:9000 two:8020", "hdfs://prod/data/db/1", ""},
		{"hdfs://other/data", dir, "three:1", "hdfs://other/data/db/1", ""},
		{"hdfs://prod/data", "", "prod:8020", "hdfs://prod:8020/data/db/1", ""},
		{"hdfs://lame/data", dir, "", "", "dfs.namenode.rpc-address.lame.nn2"},
		{"hdfs://vars/data", dir, "", "", "variables are not supported"},
		{"hdfs:///data", "", "", "", "no configuration with fs.defaultFS"},
		{"hdfs:///data", bad, "", "", `fs.defaultFS is "file:///"`},
		{"hdfs://:9000/data", "", "", "", "not the address of a namenode"},
		{"hdfs://me@host/data", "", "", "", "contains a user"},
		{"hdfs://me:secret@host/data", "", "", "", "hdfs://me:xxxxx@host/data contains a user"},
		{"hdfs://host/data?x", "", "", "", "%3F"},
		{"hdfs://host/data?", "", "", "", "%3F"},
		{"hdfs://host/data#x", "", "", "", "%23"},
		{"hdfs:data", "", "", "", "not of the form"},
		{"s3://host/data", "", "", "", "not of the form"},
		{"/data", "", "", "", "not of the form"},
		{"hdfs://%zz", "", "", "", "invalid URL escape"},
		{"hdfs://host/data", "/nowhere", "", "", "/nowhere has no core-site.xml"},
	}
	for _, tt := range tests {
		s, err := New(Options{URL: tt.url, ConfigDir: tt.dir})
		if tt.err != "" {
			wantError(t, err, nil, "hdfs: ", tt.err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		got := []string{strings.Join(s.addresses(), " "), s.Path("db", "1")}
		if diff := cmp.Diff([]string{tt.namenodes, tt.path}, got); diff != "" {
			t.Errorf("%s: %s", tt.url, diff)
		}
	}
}

func TestConfigurationFromTheEnvironment(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", configure(t, twoNamenodes))
	t.Setenv("HADOOP_USER_NAME", "somebody")
	s, err := New(Options{URL: "hdfs://prod/"})
	expect.NoError(t, err)
	if n := len(s.addresses()); n != 2 || s.library.User != "somebody" {
		t.Errorf("%d namenodes for %q", n, s.library.User)
	}
	expect.NoError(t, os.WriteFile(filepath.Join(os.Getenv("HADOOP_CONF_DIR"), "hdfs-site.xml"), []byte("<configuration>"), 0o644))
	_, err = New(Options{URL: "hdfs://prod/"})
	wantError(t, err, nil, "the configuration in "+os.Getenv("HADOOP_CONF_DIR"))
}

func TestThisUser(t *testing.T) {
	t.Setenv("HADOOP_USER_NAME", "")
	s, err := New(Options{URL: "hdfs://host/"})
	if err != nil || s.library.User == "" {
		t.Errorf("%v, %q", err, s.library.User)
	}
}

func TestProtection(t *testing.T) {
	tests := []struct{ conf, encrypt, want, err string }{
		{"", "", "", ""},
		{"authentication", "", "authentication", ""},
		{"privacy", "", "privacy", ""},
		{"privacy,authentication", "", "authentication", ""},
		{"authentication , integrity,privacy", "", "authentication", ""},
		{"authentication", "true", "privacy", ""},
		{"integrity", "", "", `"integrity" is not supported`},
	}
	for _, tt := range tests {
		dir := configure(t, map[string]string{"dfs.data.transfer.protection": tt.conf, "dfs.encrypt.data.transfer": tt.encrypt})
		s, err := New(Options{URL: "hdfs://host/", ConfigDir: dir})
		if tt.err != "" {
			wantError(t, err, nil, tt.err, "AES/CTR/NoPadding")
		} else if err != nil || s.library.DataTransferProtection != tt.want {
			t.Errorf("%+v: %v, %v", tt, s, err)
		}
	}
}
