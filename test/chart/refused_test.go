//go:build integration

package chart

import (
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
)

// Values that cannot work are refused, with a message that has the value and the reason.
func TestRefusedValues(t *testing.T) {
	good := []string{"--set", "source=s3://b/p", "--set", "zookeeper.servers={zk:2181}"}
	if _, err := Template("release", good...); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ set, want string }{
		{"replicaCount=3", "additional properties 'replicaCount' not allowed"},
		{"replicas=0", "at '/replicas': minimum: got 0, want 1"},
		{"replicas=three", "at '/replicas': got string, want integer"},
		{"source=b/p", "at '/source': 'b/p' does not match pattern"},
		{"source=", "source is empty: set it to where the data is"},
		{"zookeeper.servers=null", "zookeeper.servers is empty: a sharded cluster needs a ZooKeeper"},
		{"zookeeper.servers={zk:2181:x}", "at '/zookeeper/servers/0': 'zk:2181:x' does not match"},
		{"zookeeper.servers=zk:2181", "at '/zookeeper/servers': got string, want array"},
		{"config.sharding.replicaton=2", "at '/config/sharding': additional properties 'replicaton' not allowed"},
		{"config.bind=:80", "at '/config': additional properties 'bind' not allowed"},
		{"config.sharding.secret=x", "additional properties 'secret' not allowed"},
		{"config.refresh_period=60", "at '/config/refresh_period': got number, want string"},
		{"config.refresh_period=1 minute", "at '/config/refresh_period': '1 minute' does not match"},
		{"config.load.memory=64Mi", "at '/config/load/memory': '64Mi' does not match"},
		{"config.partitioner=hdoop", "at '/config/partitioner': value must be one of 'auto', 'string', 'hadoop'"},
		{"config.db.words.partitioner=hdoop", "at '/config/db/words/partitioner': value must be one of"},
		{"config.require_success_file=maybe", "at '/config/require_success_file': value must be one of true, false, 'auto'"},
		{"config.sharding.min_replication=3", "config.sharding.min_replication, 3, is more than config.sharding.replication, 2"},
		{"replicas=2,config.sharding.min_replication=3,config.sharding.replication=3", "config.sharding.min_replication, 3, is more than replicas, 2: no version would ever be served"},
		{"config.sharding.min_nodes=4", "config.sharding.min_nodes, 4, is more than replicas, 3: no pod would ever begin to serve"},
		{"tokens.existingSecret=t", "clusterSecret.existingSecret is empty, and tokens.existingSecret is set"},
		{"tokens.existingSecret=T_", "at '/tokens/existingSecret': 'T_' does not match"},
		{"tls.enabled=true", "tls is enabled, and there is no certificate: set tls.existingSecret or tls.certManager.enabled"},
		{"tls.existingSecret=t", "tls has a certificate or clientCertificates, and tls.enabled is false"},
		{"tls.enabled=true,tls.existingSecret=t,tls.certManager.enabled=true", "tls.existingSecret and tls.certManager.enabled are both set"},
		{"tls.enabled=true,tls.certManager.enabled=true", "tls.certManager.issuerRef.name is empty"},
		{"zookeeper.tls.existingSecret=t", "zookeeper.tls.enabled is false"},
		{"zookeeper.tls.enabled=true,zookeeper.tls.clientCertificate=true", "zookeeper.tls.existingSecret, which has the certificate, is not"},
		{"zone.from=label", "at '/zone/from': value must be one of 'pod', 'none'"},
		{"metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true", "Prometheus would scrape each pod twice"},
		{"events.existingSecret=e", "events.existingSecret is set, and config.events.webhook is not"},
		{"resources.limits.memory=2Gi", "resources.limits.memory, 2Gi, is not enough: config.max_parallel_loads × config.load.memory_limit are 2048 MiB of it, and the node needs at least 512 MiB"},
		{"config.max_parallel_loads=2", "resources.limits.memory, 4Gi, is not enough: config.max_parallel_loads × config.load.memory_limit are 4096 MiB"},
		{"config.max_parallel_loads=0", "config.max_parallel_loads is 0"},
		{"resources.limits.memory=4x", "at '/resources/limits/memory': '4x' does not match"},
		{"config.load.memory_limit=600MiB", "config.load.memory_limit, 600 MiB, is less than 640 MiB: config.load.memory, 128 MiB, and 64 MiB for each of 4 cores"},
		{"config.load.memory_limit=0", "config.load.memory_limit, 0 MiB, is less than 640 MiB"},
		{"resources.requests.cpu=16", "config.load.memory_limit, 2048 MiB, is less than 2432 MiB: config.load.memory, 128 MiB, and 64 MiB for each of 32 cores"},
		{"persistence.size=1GiB", "at '/persistence/size': '1GiB' does not match"},
		{"persistence.whenScaled=Keep", "at '/persistence/whenScaled': value must be one of 'Retain', 'Delete'"},
		{"podDisruptionBudget.maxUnavailable=half", "at '/podDisruptionBudget/maxUnavailable': 'half' does not match"},
		{"image.digest=sha256:12", "at '/image/digest': 'sha256:12' does not match"},
		{"clusterDomain=cluster.local.", "at '/clusterDomain': 'cluster.local.' does not match"},
	} {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			_, err := Template("release", append(slices.Clone(good), "--set", test.set)...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// What does not matter without sharding is no mistake then: one value is enough.
func TestOneValue(t *testing.T) {
	out := template(t, "--set", "source=/data,sharded=false,config.sharding.min_nodes=9")
	for _, word := range []string{"[sharding]", "[zk]", "SEQUINS_SHARDING"} {
		if strings.Contains(out, word) {
			t.Errorf("%s is rendered", word)
		}
	}
}

// The budget leaves each partition a replica, and does not keep nodes from being drained for ever.
func TestBudget(t *testing.T) {
	for set, want := range map[string]string{
		"config.sharding.replication=2": "1", "config.sharding.replication=3": "1", "replicas=9,config.sharding.replication=5,config.sharding.min_replication=3": "2",
		"config.sharding.replication=3,config.sharding.min_replication=3": "1", "config.sharding.replication=3,config.sharding.min_replication=1": "1",
		"config.sharding.replication=1": "1", "sharded=false,config.sharding.replication=3": "1",
		"podDisruptionBudget.maxUnavailable=0": "0", "podDisruptionBudget.maxUnavailable=25%": "25%",
	} {
		out := template(t, "--set", "source=s3://b/p,zookeeper.servers={zk:2181}", "--set", set)
		if !strings.Contains(out, "\n  maxUnavailable: "+want+"\n") {
			t.Errorf("%s: want maxUnavailable: %s", set, want)
		}
	}
}

// The cores and the memory of a pod become limits of Go.
func TestLimitsOfGo(t *testing.T) {
	for set, want := range map[string][2]string{ // GOMAXPROCS, GOMEMLIMIT
		"resources.limits.memory=4Gi":                                         {`"4"`, "1024MiB"},
		"resources.limits.memory=null":                                        {`"4"`, ""},
		"resources.limits.memory=8G":                                          {`"4"`, "2791MiB"},
		"resources.limits.memory=6442450944,config.load.memory_limit=2048MiB": {`"4"`, "2048MiB"},
		"resources.requests.cpu=3500m,config.load.memory_limit=1GiB":          {`"8"`, "1536MiB"},
		"resources.requests.cpu=16,goMaxProcs=6":                              {`"6"`, "1024MiB"},
		"resources.limits.cpu=2500m":                                          {"", "1024MiB"},
	} {
		out := template(t, "--set", "source=s3://b/p,zookeeper.servers={zk:2181}", "--set", set)
		for i, name := range []string{"GOMAXPROCS", "GOMEMLIMIT"} {
			_, after, found := strings.Cut(out, "- name: "+name+"\n              value: ")
			value, _, _ := strings.Cut(after, "\n")
			if found != (want[i] != "") || value != want[i] {
				t.Errorf("%s: %s=%s, want %s", set, name, value, want[i])
			}
		}
	}
}

// Names that look like numbers or truths of YAML stay names.
func TestNamesAreStrings(t *testing.T) {
	out, err := Template("on", "--namespace", "456", "--set", "source=s3://b/p,zookeeper.servers={zk:2181}",
		"--set-string", "s3.existingSecret=123,s3.accessKeyIDKey=true,clusterSecret.existingSecret=1e3,persistence.storageClass=0x10")
	expect.NoError(t, err)
	for _, want := range []string{`instance: "on"`, `namespace: "456"`, `name: "123"`, `key: "true"`, `name: "1e3"`, `storageClassName: "0x10"`} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	for _, odd := range []string{"instance: on\n", ": 456\n", ": 123\n", "key: true\n"} {
		if strings.Contains(out, odd) {
			t.Errorf("there is %s", odd)
		}
	}
}

// The codings of answers are not those of blocks.
func TestCodings(t *testing.T) {
	if out := template(t, "--set", "source=s3://b/p,zookeeper.servers={zk:2181},config.http.compression={zstd,gzip}"); !strings.Contains(out, `compression = ["zstd", "gzip"]`) {
		t.Errorf("not rendered:\n%s", out)
	}
	if _, err := Template("release", "--set", "source=s3://b/p,zookeeper.servers={zk:2181},config.http.compression={snappy}"); err == nil {
		t.Error("snappy is no coding of HTTP")
	}
}
