package config

import (
	"slices"
	"strings"
	"testing"
)

// Values that do not go together, and keys without effect, are warned of.
func TestWarnings(t *testing.T) {
	const enabled = "source = \"/d\"\n[sharding]\nenabled = true\n"
	for doc, want := range map[string]string{
		// keys without effect
		enabled + "proxy_stage_timeout = \"2s\"":                                "sequins.conf:4: sharding.proxy_stage_timeout: 2s is not less than sharding.proxy_timeout, 100ms: only one node is asked unless it fails",
		enabled + "proxy_stage_timeout = \"100ms\"":                             "sequins.conf:4: sharding.proxy_stage_timeout: 100ms is not less than",
		enabled + "proxy_stage_timeout = \"99ms\"":                              "",
		enabled + "weight = 2\nassignment = \"round_robin\"":                    "sequins.conf:4: sharding.weight: has no effect: sharding.assignment is round_robin",
		enabled + "zone = \"a\"\nassignment = \"round_robin\"":                  "sequins.conf:4: sharding.zone: decides only which replicas are read first",
		enabled + "zone = \"a\"\nweight = 2":                                    "",
		enabled + "zone = \"a\"\nweight = 2\nassignment = \"balanced\"":         "",
		"source = \"/d\"\n[sharding]\nzone = \"a\"\ncluster_name = \"b\"":       "sequins.conf:3: sharding.zone: has no effect: sharding.enabled is false",
		"source = \"/d\"\n[zk]\nservers = [\"a\"]":                              "sequins.conf:3: zk.servers: has no effect: sharding.enabled is false",
		"source = \"/d\"\n[load]\nmin_free_disk = 1\ncheck_disk = false":        "sequins.conf:3: load.min_free_disk: has no effect: load.check_disk is false",
		"source = \"/d\"\n[debug]\npprof = true":                                "sequins.conf:3: debug.pprof: has no effect: debug.bind is empty",
		enabled + "heal_after = \"5s\"":                                         "sequins.conf:4: sharding.heal_after: 5s is less than zk.session_timeout, 10s: a node that ZooKeeper does not hear from for a moment is replaced",
		"source = \"/d\"\nmax_parallel_loads = 1000\n[load]\nmemory = \"1TiB\"": "sequins.conf:2: max_parallel_loads: 1000 loads may need 1TiB each to sort",
		enabled + "min_nodes = 2\nreplication = 3":                              "sequins.conf:4: sharding.min_nodes: 2 nodes cannot hold sharding.replication, 3, replicas of a partition",
		// others
		"source = \"/d\"\ncontent_type = \"json\"":                                                                 "sequins.conf:2: content_type: \"json\" is not a media type such as text/plain",
		"source = \"/d\"\ncontent_type = \"application/json; charset=utf-8\"":                                      "",
		enabled + "[zk]\nservers = [\"a\", \"b\", \"a\"]":                                                          "sequins.conf:5: zk.servers: \"a\" is there twice",
		"source = \"/d\"\nbind = \"127.0.0.1:1\"\n[sharding]\nenabled = true":                                      "sequins.conf:2: bind: \"127.0.0.1:1\" is the loopback interface: nodes on other machines cannot reach this one",
		"source = \"/d\"\nbind = \"127.0.0.1:1\"\n[sharding]\nenabled = true\nadvertised_hostname = \"127.0.0.2\"": "",
	} {
		_, warnings, err := load(doc)
		if err != nil {
			t.Errorf("%q: %v", doc, err)
		}
		got := slices.DeleteFunc(warnings, func(w *Problem) bool { // that the memory of this machine is too small
			return w.Key == "load.memory" && strings.Contains(w.Reason, "of memory of this machine")
		})
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || want == "" || !strings.HasPrefix(got[0].Error(), want) {
			t.Errorf("%q\ngot  %v\nwant %s", doc, got, want)
		}
	}
}

// Values that cannot work are refused before a node finds that out.
func TestNonsense(t *testing.T) {
	const sharding, zk = "source = \"/d\"\n[sharding]\nenabled = true\n", "source = \"/d\"\n[sharding]\nenabled = true\n[zk]\n"
	for doc, want := range map[string]string{
		"source = \"/d\"\nbind = \"a b:1\"":                                        `sequins.conf:2: bind: "a b:1" has no valid host`,
		"source = \"/d\"\nbind = \"[fe80::1%eth0]:1\"":                             "",
		"source = \"/d\"\nbind = \"127.0.0.1:1\"\n[redis]\nbind = \"127.0.0.2:1\"": "",
		"source = \"/d\"\nbind = \":0\"\n[redis]\nbind = \":0\"":                   "",
		"source = \"/d\"\nlocal_store = \"/./\"":                                   `sequins.conf:2: local_store: "/./" is the root of the file system`,
		"source = \"hdfs://n:70000/d\"":                                            `sequins.conf:1: source: "hdfs://n:70000/d" has no valid port`,
		"source = \"hdfs://n:0/d\"":                                                `sequins.conf:1: source: "hdfs://n:0/d" has no valid port`,
		"source = \"s3://b/d\"\n[s3]\nendpoint = \"http://:9000\"":                 `sequins.conf:3: s3.endpoint: "http://:9000" is not a URL`,
		"source = \"s3://b/d\"\n[s3]\nendpoint = \"minio:9000\"":                   `sequins.conf:3: s3.endpoint: "minio:9000" is not a URL`,
		"source = \"/d\"\n[tracing]\notlp_endpoint = \"http://c:99999\"":           `sequins.conf:3: tracing.otlp_endpoint: "http://c:99999" is not a URL`,
		"source = \"/d\"\n[tracing]\notlp_endpoint = \"http://c/v1/traces\"":       `sequins.conf:3: tracing.otlp_endpoint: "http://c/v1/traces" ends with /v1/traces, which is added to it`,
		"source = \"/d\"\n[events]\nwebhook = \"https://u:hunter2@h:x\"":           "sequins.conf:3: events.webhook: is not an http:// or https:// URL",
		"source = \"/d\"\n[events]\nwebhook = \"http://h\"\nwebhook_file = \"/f\"": "sequins.conf:4: events.webhook_file: is set, and so is webhook",
		sharding + "cluster_name = \"zookeeper\"":                                  `sequins.conf:4: sharding.cluster_name: "zookeeper" is below /zookeeper, where ZooKeeper keeps its own znodes`,
		sharding + "cluster_name = \"a/../b\"":                                     `sequins.conf:4: sharding.cluster_name: "a/../b" is not the name of a cluster`,
		sharding + "cluster_name = \"zookeeper2/a\"":                               "",
		sharding + "shard_id = \"a\\u0007\"":                                       `sequins.conf:4: sharding.shard_id: "a\a" must not have`,
		sharding + "zone = \"a\\n\"\nassignment = \"balanced\"":                    `sequins.conf:4: sharding.zone: is not one line of at most 255 bytes of characters that are printed`,
		sharding + "advertised_hostname = \"0.0.0.0\"":                             `sequins.conf:4: sharding.advertised_hostname: "0.0.0.0" is no address that other nodes can connect to`,
		zk + "session_timeout = \"1us\"\nconnect_timeout = \"1us\"":                "sequins.conf:5: zk.session_timeout: must be at least 1ms, not 1µs",
		zk + "servers = [\"a:0\"]":                                                 `sequins.conf:5: zk.servers: "a:0" is not an address of the form host:port`,
		zk + "tls_certificate = \"/c\"\ntls_key = \"/k\"":                          "sequins.conf:5: zk.tls_certificate: is set, and tls is not",
	} {
		_, _, err := load(doc)
		if got := report(err); want == "" && err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") || strings.Contains(got, "hunter2") {
			t.Errorf("%q\ngot  %s\nwant %s", doc, got, want)
		}
	}
}
