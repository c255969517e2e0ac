package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/config"
)

const haConf = `<configuration>
<property><name>dfs.nameservices</name><value>ns</value></property>
<property><name>dfs.ha.namenodes.ns</name><value>a,b</value></property>
<property><name>dfs.namenode.rpc-address.ns.a</name><value>NN2:8020</value></property>
<property><name>dfs.namenode.rpc-address.ns.b</name><value>nn1</value></property>
</configuration>`

// The ID of a source has what decides where it is, and no secrets.
func TestSourceID(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(haConf), 0o600); err != nil {
		t.Fatal(err)
	}
	const box, connection = "abfss://box@acc.dfs.core.windows.net/p", "AccountName=acc;AccountKey=U0VDUkVU"
	type vars map[string]string
	for name, test := range map[string]struct {
		source string
		env    vars
		set    func(c *config.Config)
		want   string
	}{
		"s3":                    {source: "s3://data", want: "s3://data"},
		"s3 slash":              {source: "s3://data/", want: "s3://data"},
		"s3a":                   {source: "s3a://data/p//q/", want: "s3://data/p/q"},
		"s3n":                   {source: "s3n://data/a b", want: "s3://data/a%20b"},
		"s3 line":               {source: "s3://data/a%0Ab", want: "s3://data/a%0Ab"},
		"s3 region":             {source: "s3://data", set: func(c *config.Config) { c.S3.Region = "eu-west-1" }, want: "s3://data"},
		"s3 partition":          {source: "s3://data", env: vars{"AWS_REGION": "cn-north-1"}, want: "s3://data in aws-cn"},
		"s3 endpoint":           {source: "s3://data", set: func(c *config.Config) { c.S3.Endpoint = "http://LOCALHOST:9000/" }, want: "s3://data at http://localhost:9000"},
		"s3 variable":           {source: "s3://data", env: vars{"AWS_ENDPOINT_URL": "https://s:443/x"}, want: "s3://data at https://s/x"},
		"s3 variables":          {source: "s3://data", env: vars{"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, want: "s3://data at http://b"},
		"s3 ignored":            {source: "s3://data", env: vars{"AWS_ENDPOINT_URL": "http://a"}, set: func(c *config.Config) { c.S3.Endpoint = "http://c" }, want: "s3://data at http://c"},
		"s3 secrets":            {source: "s3://data", env: vars{"AWS_ENDPOINT_URL": "http://u:SECRET@a/?k=SECRET#SECRET", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_ACCESS_KEY_ID": "SECRET"}, want: "s3://data at http://a"},
		"s3 no URL":             {source: "s3://data", env: vars{"AWS_ENDPOINT_URL": "SECRET"}, want: "s3://data at an endpoint that is not a URL"},
		"s3 user":               {source: "s3://key:SECRET@data/p?x=SECRET", want: "s3://data/p"},
		"gs":                    {source: "gs://data/p/", want: "gs://data/p"},
		"gs variable":           {source: "gs://data", env: vars{"STORAGE_EMULATOR_HOST": "B:4443"}, want: "gs://data at http://b:4443"},
		"gs secret":             {source: "gs://data", env: vars{"STORAGE_EMULATOR_HOST": "http://u:SECRET@b"}, want: "gs://data"},
		"azure":                 {source: box, want: box},
		"azure wasbs":           {source: "wasbs://box@ACC.blob.core.windows.net/p/", want: box},
		"azure variable":        {source: "abfss://box/p", env: vars{"AZURE_STORAGE_ACCOUNT": "acc"}, want: box},
		"azure endpoint":        {source: box, set: func(c *config.Config) { c.Azure.Endpoint = "http://h:1/acc/" }, want: "abfss://box/p at http://h:1/acc"},
		"azure BlobEndpoint":    {source: "abfss://box/p", env: vars{"AZURE_STORAGE_CONNECTION_STRING": connection + ";BlobEndpoint=http://h:1/acc"}, want: "abfss://box/p at http://h:1/acc"},
		"azure SAS":             {source: "abfss://box/p", env: vars{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://h:1/acc;SharedAccessSignature=sig=SECRET"}, want: "abfss://box/p at http://h:1/acc"},
		"azure user":            {source: "abfss://box:SECRET@acc.dfs.core.windows.net/p?sig=SECRET", want: "abfss://acc.dfs.core.windows.net/p"},
		"hdfs":                  {source: "hdfs://NN/p/", want: "hdfs://nn:8020/p"},
		"hdfs port":             {source: "hdfs://nn:8020/p", want: "hdfs://nn:8020/p"},
		"hdfs nameservice":      {source: "hdfs://ns/p", set: func(c *config.Config) { c.HDFS.ConfigDir = dir }, want: "hdfs://ns/p at nn1:8020,nn2:8020"},
		"hdfs variable":         {source: "hdfs://ns/p", env: vars{"HADOOP_CONF_DIR": dir}, want: "hdfs://ns/p at nn1:8020,nn2:8020"},
		"hdfs user":             {source: "hdfs://u:SECRET@nn/p", want: "hdfs://nn/p"},
		"local":                 {source: "/data/p/", want: "/data/p"},
		"local URL":             {source: "file:///data/p", want: "/data/p"},
		"another scheme's user": {source: "http://u:SECRET@h/p?SECRET", want: "http://h/p"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE", "STORAGE_EMULATOR_HOST",
				"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "HADOOP_CONF_DIR"} {
				t.Setenv(v, "") // so that it is restored
				if err := os.Unsetenv(v); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "none"))
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			c := config.Default()
			c.Source = test.source
			if test.set != nil {
				test.set(&c)
			}
			got := sourceID(&c)
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if strings.Contains(got, "SECRET") || strings.Contains(got, "U0VDUkVU") {
				t.Errorf("%q has a secret", got)
			}
		})
	}
}

// An ID is a line of bounded size, and those of long sources differ.
func TestSourceIDLine(t *testing.T) {
	long := strings.Repeat("é", maxSourceID)
	one, other := printableLine(long+"1"), printableLine(long+"2")
	if len(one) > maxSourceID || one == other {
		t.Errorf("%d bytes, the same %v", len(one), one == other)
	}
	if got := printableLine("/a\nb\xff"); got != "/a%0Ab%FF" {
		t.Errorf("%q", got)
	}
}
