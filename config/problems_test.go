package config

import (
	"errors"
	"strings"
	"testing"
)

// Each file has one mistake; what is said about it has the file, the line, the key and the reason.
func TestProblems(t *testing.T) {
	tests := map[string]struct{ doc, want string }{
		"syntax":              {"source = \"/d\"\nbind = \n", "sequins.conf:2: "},
		"unclosed table":      {"source = \"/d\"\n\n[zk\n", "sequins.conf:3: "},
		"key twice":           {"source = \"/d\"\nsource = \"/e\"", "sequins.conf:2: "},
		"two spellings":       {"source = \"/d\"\nBind = \":1\"\nbind = \":2\"", "sequins.conf:2: bind: is here twice: as Bind and as bind"},
		"two odd spellings":   {"SOURCE = \"/d\"\nSource = \"/e\"", "sequins.conf:1: source: is here twice: as SOURCE and as Source"},
		"two odd tables":      {"source = \"/d\"\n[Zk]\nservers = []\n[ZK]\nservers = []", "sequins.conf:2: zk: is here twice: as ZK and as Zk"},
		"two odd keys below":  {"source = \"/d\"\n[zk]\nServers = []\nSERVERS = []", "sequins.conf:3: zk.servers: is here twice: as SERVERS and as Servers"},
		"two odd keys of db":  {"source = \"/d\"\n[db.x]\nAllow_Empty = true\nALLOW_EMPTY = true", "sequins.conf:3: db.x.allow_empty: is here twice: as ALLOW_EMPTY and as Allow_Empty"},
		"not UTF-8":           {"source = \"/d\xff\"", "sequins.conf:1: "},
		"no source":           {"bind = \":1\"", "sequins.conf: source: is not set"},
		"unknown key":         {"source = \"/d\"\n\nrefresh_perod = \"1m\"", "sequins.conf:3: refresh_perod: unknown key; did you mean refresh_period?"},
		"unknown in table":    {"source = \"/d\"\n[sharding]\nreplicas = 3", "sequins.conf:3: sharding.replicas: unknown key; did you mean sharding.replication?"},
		"below wrong header":  {"source = \"/d\"\n[zk]\nbind = \":1\"", "sequins.conf:3: zk.bind: unknown key; did you mean bind?"},
		"unknown table":       {"source = \"/d\"\n[shading]\nenabled = true", "sequins.conf:2: shading: unknown key; did you mean sharding?"},
		"unknown dotted":      {"source = \"/d\"\nzk.server = 1", "sequins.conf:2: zk.server: unknown key; did you mean zk.servers?"},
		"unknown inline":      {"source = \"/d\"\nzk = { server = 1 }", "sequins.conf:2: zk.server: unknown key; did you mean zk.servers?"},
		"unknown for a db":    {"source = \"/d\"\n[db.x]\ncontent-type = \"a/b\"", "sequins.conf:3: db.x.content-type: unknown key; did you mean db.<name>.content_type?"},
		"key of a later day":  {"source = \"/d\"\ndefragment_period = \"1h\"", "sequins.conf:2: defragment_period: unknown key"},
		"control characters":  {"source = \"/d\"\n\"\\u001b[2J\\n\" = 1", `sequins.conf:2: "\x1b[2j\n": unknown key`},
		"string for integer":  {"source = \"/d\"\nmax_parallel_loads = \"4\"", "sequins.conf:2: max_parallel_loads: must be an integer"},
		"float for integer":   {"source = \"/d\"\nmax_parallel_loads = 1.5", "sequins.conf:2: max_parallel_loads: must be an integer"},
		"integer for string":  {"source = 5", "sequins.conf:1: source: must be a string"},
		"integer for bool":    {"source = \"/d\"\ndebug.pprof = 1", "sequins.conf:2: debug.pprof: must be true or false"},
		"date for bool":       {"source = \"/d\"\ndebug.pprof = 2026-01-01", "sequins.conf:2: debug.pprof: must be true or false"},
		"array for string":    {"source = [\"/d\"]", "sequins.conf:1: source: must be a string"},
		"string for array":    {"source = \"/d\"\n[zk]\nservers = \"a:1\"", "sequins.conf:3: zk.servers: must be an array of strings"},
		"integer in array":    {"source = \"/d\"\n[zk]\nservers = [\"a:1\", 2]", "sequins.conf:3: zk.servers: must be an array of strings"},
		"table for string":    {"[source]\nx = 1", "sequins.conf:1: source: must be a string"},
		"string for table":    {"source = \"/d\"\nzk = \"a:1\"", "sequins.conf:2: zk: must be a table"},
		"array of tables":     {"source = \"/d\"\n[[zk]]\nservers = []", "sequins.conf:2: zk: must be a table"},
		"string for dbs":      {"source = \"/d\"\ndb = \"x\"", "sequins.conf:2: db: must be a table"},
		"string for a db":     {"source = \"/d\"\n[db]\nx = true", "sequins.conf:3: db.x: must be a table"},
		"duration, no unit":   {"source = \"/d\"\nrefresh_period = \"10\"", `sequins.conf:2: refresh_period: "10" is not a duration such as`},
		"duration as integer": {"source = \"/d\"\nrefresh_period = 10", `sequins.conf:2: refresh_period: "10" is not a duration such as "10m" or "800us"`},
		"size, bad unit":      {"source = \"/d\"\n[load]\nmemory = \"5 parsecs\"", `sequins.conf:3: load.memory: "5 parsecs" is not a size`},
		"size as bool":        {"source = \"/d\"\n[load]\nmemory = true", `sequins.conf:3: load.memory: "true" is not a size such as`},
		"size too large":      {"source = \"/d\"\n[load]\nmemory = \"9000000 TiB\"", "sequins.conf:3: load.memory: \"9000000 TiB\" is more than"},
		"limit below memory":  {"source = \"/d\"\n[load]\nmemory = \"1GiB\"\nmemory_limit = \"1GiB\"", "sequins.conf:4: load.memory_limit: must be 0 or, with this load.memory"},
		"size too small":      {"source = \"/d\"\n[load]\nmemory = 1000", "sequins.conf:3: load.memory: must be at least 1MiB, not 1000B"},

		"origin with a path":     {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example/\"]", `sequins.conf:3: http.allowed_origins: "https://a.example/" is not an origin`},
		"origin with its port":   {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example:443\"]", `sequins.conf:3: http.allowed_origins: "https://a.example:443" has a port that browsers leave out`},
		"origin with zeros":      {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example:0443\"]", `sequins.conf:3: http.allowed_origins: "https://a.example:0443" is not an origin`},
		"origin with more zeros": {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example:08443\"]", `sequins.conf:3: http.allowed_origins: "https://a.example:08443" is not an origin`},
		"origin with a colon":    {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example:\"]", `sequins.conf:3: http.allowed_origins: "https://a.example:" is not an origin`},
		"origin with a bad port": {"source = \"/d\"\n[http]\nallowed_origins = [\"https://a.example:65536\"]", `sequins.conf:3: http.allowed_origins: "https://a.example:65536" is not an origin`},
		"origin of all hosts":    {"source = \"/d\"\n[http]\nallowed_origins = [\"https://*.example.com\"]", `sequins.conf:3: http.allowed_origins: "https://*.example.com" is not an origin`},
		"origin of all ports":    {"source = \"/d\"\n[http]\nallowed_origins = [\"http://a.example:*\"]", `sequins.conf:3: http.allowed_origins: "http://a.example:*" is not an origin`},
		"origin in capitals":     {"source = \"/d\"\n[http]\nallowed_origins = [\"http://A.example:8080\"]", `sequins.conf:3: http.allowed_origins: "http://A.example:8080" is not an origin`},
		"origin in IPv6":         {"source = \"/d\"\n[http]\nallowed_origins = [\"http://[0::1]:80\"]", `sequins.conf:3: http.allowed_origins: "http://[0::1]:80" has a port that browsers leave out`},
		"origin of a host":       {"source = \"/d\"\n[http]\nallowed_origins = [\"a.example\"]", `sequins.conf:3: http.allowed_origins: "a.example" is not an origin such as`},
		"origin with a user":     {"source = \"/d\"\n[http]\nallowed_origins = [\"http://me@a.example\"]", `sequins.conf:3: http.allowed_origins: "http://***@a.example" is not an origin`},
		"origin with a pattern":  {"source = \"/d\"\n[http]\nallowed_origins = [\"https://ok.example\", \"*.example\"]", `sequins.conf:3: http.allowed_origins: "*.example" is not an origin`},
		"origin null":            {"source = \"/d\"\n[http]\nallowed_origins = [\"null\"]", `sequins.conf:3: http.allowed_origins: "null" is not an origin`},
		"origin in Unicode":      {"source = \"/d\"\n[http]\nallowed_origins = [\"https://bücher.example\"]", `sequins.conf:3: http.allowed_origins: "https://bücher.example" is not an origin`},
		"Cache-Control colon":    {"source = \"/d\"\n[http]\ncache_control = \"max-age: 60\"", `sequins.conf:3: http.cache_control: "max-age: 60" is not a directive such as max-age=60`},
		"Cache-Control number":   {"source = \"/d\"\n[http]\ncache_control = \"public, max-age=1h\"", `sequins.conf:3: http.cache_control: max-age needs a number of seconds: max-age=60`},
		"Cache-Control line":     {"source = \"/d\"\n[http]\ncache_control = \"no-cache\\r\\nX: y\"", `sequins.conf:3: http.cache_control: "no-cache\r\nX: y" is not a directive`},
		"unknown coding":         {"source = \"/d\"\n[http]\ncompression = [\"br\"]", `sequins.conf:3: http.compression: "br" is none of zstd, gzip`},
		"Cache-Control of a db":  {"source = \"/d\"\n[db.x]\ncache_control = \"max-age=x\"", "sequins.conf:3: db.x.cache_control: max-age needs a number of seconds"},

		"negative integer":         {"source = \"/d\"\nmax_parallel_loads = -1", "sequins.conf:2: max_parallel_loads: must be at least 0, not -1"},
		"negative bandwidth":       {"source = \"/d\"\nmax_download_bandwidth_mb_per_second = -1", "sequins.conf:2: max_download_bandwidth_mb_per_second: must be from 0 to 1TiB/s, not -1MiB/s"},
		"huge bandwidth":           {"source = \"/d\"\nmax_download_bandwidth_mb_per_second = 9000000000000", "sequins.conf:2: max_download_bandwidth_mb_per_second: \"9000000000000\" is not a rate"},
		"slow copies":              {"source = \"/d\"\n[load]\npeer_bandwidth_mb_per_second = \"200KiB/s\"", "sequins.conf:3: load.peer_bandwidth_mb_per_second: must be 0 or from 256KiB/s to 1TiB/s, not 200KiB/s"},
		"negative throttle":        {"source = \"/d\"\nthrottle_loads = \"-1s\"", "sequins.conf:2: throttle_loads: must be at least 0s, not -1s"},
		"negative period":          {"source = \"/d\"\nrefresh_period = \"-1s\"", "sequins.conf:2: refresh_period: must be at least 0s"},
		"negative timeout":         {"source = \"/d\"\nversion_remove_timeout = \"-1s\"", "sequins.conf:2: version_remove_timeout: must be at least 0s"},
		"negative scrub":           {"source = \"/d\"\nscrub_period = \"-1s\"", "sequins.conf:2: scrub_period: must be at least 0s"},
		"half a key pair":          {"source = \"/d\"\n[s3]\naccess_key_id = \"A\"", "sequins.conf:3: s3.access_key_id: is set, and secret_access_key is not"},
		"the other half":           {"source = \"/d\"\n[s3]\nsecret_access_key = \"S\"", "sequins.conf:3: s3.secret_access_key: is set, and access_key_id is not"},
		"endpoint without http":    {"source = \"/d\"\n[s3]\nendpoint = \"localhost:9000\"", "sequins.conf:3: s3.endpoint: \"localhost:9000\" is not a URL of the form https://host:port"},
		"collector without http":   {"source = \"/d\"\n[tracing]\notlp_endpoint = \"localhost:4318\"", "sequins.conf:3: tracing.otlp_endpoint: \"localhost:4318\" is not a URL of the form http://host:port"},
		"collector by gRPC":        {"source = \"/d\"\n[tracing]\notlp_endpoint = \"grpc://collector:4317\"", "sequins.conf:3: tracing.otlp_endpoint: \"grpc://collector:4317\" is not a URL"},
		"collector with password":  {"source = \"/d\"\n[tracing]\notlp_endpoint = \"https://u:secret@collector\"", "sequins.conf:3: tracing.otlp_endpoint: has more than host, port and path"},
		"collector with query":     {"source = \"/d\"\n[tracing]\notlp_endpoint = \"https://collector?token=x\"", "sequins.conf:3: tracing.otlp_endpoint: has more than host, port and path"},
		"negative sample":          {"source = \"/d\"\n[tracing]\nsample = -0.1", "sequins.conf:3: tracing.sample: must be from 0 to 1, not -0.1"},
		"sample in percent":        {"source = \"/d\"\n[tracing]\nsample = 5", "sequins.conf:3: tracing.sample: must be from 0 to 1, not 5"},
		"sample not a number":      {"source = \"/d\"\n[tracing]\nsample = nan", "sequins.conf:3: tracing.sample: must be from 0 to 1, not NaN"},
		"no such assignment":       {"source = \"/d\"\n[sharding]\nassignment = \"random\"", "sequins.conf:3: sharding.assignment: \"random\" is none of round_robin, balanced"},
		"no such role":             {"source = \"/d\"\n[sharding]\nrole = \"leader\"", "sequins.conf:3: sharding.role: \"leader\" is none of node, router"},
		"no weight":                {"source = \"/d\"\n[sharding]\nweight = 0", "sequins.conf:3: sharding.weight: must be from 0.01 to 1000, not 0"},
		"weight as string":         {"source = \"/d\"\n[sharding]\nweight = \"1\"", "sequins.conf:3: sharding.weight: must be a number"},
		"weight not a number":      {"source = \"/d\"\n[sharding]\nweight = nan", "sequins.conf:3: sharding.weight: must be from 0.01 to 1000, not NaN"},
		"cluster name":             {"source = \"/d\"\n[sharding]\ncluster_name = \"a//b\"", "sequins.conf:3: sharding.cluster_name: \"a//b\" is not the name of a cluster"},
		"negative nodes":           {"source = \"/d\"\n[sharding]\nmin_nodes = -1", "sequins.conf:3: sharding.min_nodes: must be at least 0, not -1"},
		"negative healing":         {"source = \"/d\"\n[sharding]\nheal_after = \"-1s\"", "sequins.conf:3: sharding.heal_after: must be at least 0s"},
		"auth without password":    {"source = \"/d\"\n[zk]\nauth = \"me\"", "sequins.conf:3: zk.auth: is not of the form user:password"},
		"half a certificate":       {"source = \"/d\"\n[zk]\ntls = true\ntls_key = \"/k\"", "sequins.conf:4: zk.tls_key: is set, and tls_certificate is not"},
		"certificates unused":      {"source = \"/d\"\n[zk]\ntls_ca = \"/c\"", "sequins.conf:3: zk.tls_ca: is set, and tls is not"},
		"no key":                   {"source = \"/d\"\n[tls]\ncertificate = \"/c\"", "sequins.conf:3: tls.certificate: is set, and key is not"},
		"no certificate":           {"source = \"/d\"\n[tls]\nkey = \"/k\"", "sequins.conf:3: tls.key: is set, and certificate is not"},
		"clients' CA alone":        {"source = \"/d\"\n[tls]\nclient_ca = \"/k\"", "sequins.conf:3: tls.client_ca: is set, and certificate is not"},
		"nodes' CA alone":          {"source = \"/d\"\n[tls]\nca = \"/k\"", "sequins.conf:3: tls.ca: is set, and certificate is not"},
		"keytab of nobody":         {"source = \"/d\"\n[hdfs]\nkeytab = \"/k\"", "sequins.conf:3: hdfs.keytab: is set, and principal is not"},
		"principal without keys":   {"source = \"/d\"\n[hdfs]\nprincipal = \"p\"", "sequins.conf:3: hdfs.principal: is set, and keytab is not"},
		"empty compression":        {"source = \"/d\"\n[storage]\ncompression = \"\"", `sequins.conf:3: storage.compression: "" is none of fsst, none, zstd, snappy`},
		"empty level":              {"source = \"/d\"\n[log]\nlevel = \"\"", `sequins.conf:3: log.level: "" is none of debug, info, warn, error`},
		"unknown compression":      {"source = \"/d\"\n[storage]\ncompression = \"gzip\"", `sequins.conf:3: storage.compression: "gzip" is none of fsst, none, zstd, snappy`},
		"unknown partitioner":      {"source = \"/d\"\npartitioner = \"range\"", `sequins.conf:2: partitioner: "range" is none of auto, string, hadoop, spark, cascading`},
		"columns without key":      {"source = \"/d\"\n[db.x]\npartition_columns = true", "sequins.conf:3: db.x.partition_columns: is set, and key is not"},
		"columns beside a value":   {"source = \"/d\"\n[db.x]\nkey = \"k\"\nvalue = \"v\"\npartition_columns = true", `sequins.conf:5: db.x.partition_columns: adds fields to whole records, and value is "v"`},
		"name with a blank":        {"source = \"/d\"\n[db.\"a b\"]\nkey = \"k\"", `sequins.conf:2: db."a b": "a b" cannot be the name of a database`},
		"value without key":        {"source = \"/d\"\n[db.x]\nvalue = \"v\"", "sequins.conf:3: db.x.value: is set, and key is not"},
		"small blocks":             {"source = \"/d\"\n[storage]\nblock_size = 255", "sequins.conf:3: storage.block_size: must be at least 256B, not 255B"},
		"bind without port":        {"source = \"/d\"\nbind = \"localhost\"", `sequins.conf:2: bind: "localhost" is not an address of the form host:port`},
		"bind with large port":     {"source = \"/d\"\nbind = \"localhost:70000\"", `sequins.conf:2: bind: "localhost:70000" has no valid port`},
		"bind with empty port":     {"source = \"/d\"\nbind = \"localhost:\"", `sequins.conf:2: bind: "localhost:" has no valid port`},
		"empty bind":               {"source = \"/d\"\nbind = \"\"", `sequins.conf:2: bind: "" is not an address`},
		"bad debug bind":           {"source = \"/d\"\n[debug]\nbind = \"x\"", `sequins.conf:3: debug.bind: "x" is not an address`},
		"bad redis bind":           {"source = \"/d\"\n[redis]\nbind = \"x\"", `sequins.conf:3: redis.bind: "x" is not an address`},
		"redis idle":               {"source = \"/d\"\n[redis]\nidle_timeout = \"-1s\"", `sequins.conf:3: redis.idle_timeout: `},
		"log level":                {"source = \"/d\"\n[log]\nlevel = \"verbose\"", `sequins.conf:3: log.level: "verbose" is none of debug, info, warn, error`},
		"log format":               {"source = \"/d\"\n[log]\nformat = \"xml\"", `sequins.conf:3: log.format: "xml" is none of text, json`},
		"statsd address":           {"source = \"/d\"\n[datadog]\nurl = \"localhost\"", `sequins.conf:3: datadog.url: "localhost" is not an address of the form host:port`},
		"statsd socket":            {"source = \"/d\"\n[datadog]\nurl = \"unix://agent\"", `sequins.conf:3: datadog.url: "unix://agent" is not unix:// and an absolute path`},
		"log sample":               {"source = \"/d\"\n[debug]\nrequest_log_sample = 0", "sequins.conf:3: debug.request_log_sample: must be at least 1"},
		"log without file":         {"source = \"/d\"\n[debug]\nrequest_log_enable = true\nrequest_log_file = \"\"", "sequins.conf:3: debug.request_log_enable: is set, and request_log_file is not"},
		"header injection":         {"source = \"/d\"\ncontent_type = \"text/plain\\r\\nX: y\"", "sequins.conf:2: content_type: "},
		"relative store":           {"source = \"/d\"\nlocal_store = \"store\"", `sequins.conf:2: local_store: "store" is not an absolute path`},
		"relative source":          {"source = \"foo/bar\"", `sequins.conf:1: source: "foo/bar" is not an absolute path`},
		"file URL with host":       {"source = \"file://foo/bar\"", "sequins.conf:1: source: \"file://foo/bar\" names a host; a local path has three slashes: file:///foo/bar"},
		"file URL without path":    {"source = \"file://\"", "sequins.conf:1: source: \"file://\" has no path"},
		"s3 without bucket":        {"source = \"s3:///x\"", "sequins.conf:1: source: \"s3:///x\" has no bucket"},
		"s3a without bucket":       {"source = \"s3a:///x\"", "sequins.conf:1: source: \"s3a:///x\" has no bucket: s3a://bucket/path"},
		"unknown scheme of s3":     {"source = \"s3x://b/x\"", `sequins.conf:1: source: "s3x://b/x" is of none of the kinds`},
		"unknown scheme":           {"source = \"ftp://b/x\"", `sequins.conf:1: source: "ftp://b/x" is of none of the kinds`},
		"gs without bucket":        {"source = \"gs:///x\"", "sequins.conf:1: source: \"gs:///x\" has no bucket: gs://bucket/path"},
		"abfss without container":  {"source = \"abfss://@a.dfs.core.windows.net/x\"", "sequins.conf:1: source: \"abfss://@a.dfs.core.windows.net/x\" has no container: abfss://container@account.dfs.core.windows.net/path"},
		"abfss without anything":   {"source = \"abfss:///x\"", "sequins.conf:1: source: \"abfss:///x\" has no container: abfss://container@account.dfs.core.windows.net/path"},
		"key in abfss":             {"source = \"abfss://c:hunter2@a.dfs.core.windows.net/x\"", "sequins.conf:1: source: has more than a host and a path"},
		"SAS in abfss":             {"source = \"abfss://c@a.dfs.core.windows.net/x?sig=hunter2\"", "sequins.conf:1: source: has more than a host and a path"},
		"two secrets of Azure":     {"source = \"/d\"\n[azure]\naccount_key = \"AAAA\"\nsas_token_file = \"/f\"", "sequins.conf:4: azure.sas_token_file: is set, and so is account_key"},
		"endpoint of Azure":        {"source = \"/d\"\n[azure]\nendpoint = \"127.0.0.1:10000\"", "sequins.conf:3: azure.endpoint: \"127.0.0.1:10000\" is not a URL of the form https://host:port"},
		"broken URL":               {"source = \"s3://b:x/%zz\"", "sequins.conf:1: source: \"s3://b:x/%zz\" is not a valid URL"},
		"password in URL":          {"source = \"s3://key:secret@b/x\"", "sequins.conf:1: source: has more than a host and a path"},
		"store is source":          {"source = \"/d\"\nlocal_store = \"/d/\"", `sequins.conf:2: local_store: "/d/" is within the source, "/d"`},
		"store in source":          {"source = \"/foo/bar\"\nlocal_store = \"/foo/bar/baz\"", `sequins.conf:2: local_store: "/foo/bar/baz" is within the source`},
		"store in source URL":      {"source = \"file:///foo/./bar\"\nlocal_store = \"/foo/x/../bar/..baz\"", `sequins.conf:2: local_store: "/foo/x/../bar/..baz" is within the source`},
		"source in store":          {"source = \"/var/sequins/data\"", `sequins.conf:1: source: "/var/sequins/data" is within the local store`},
		"source in a store's data": {"source = \"/d/s/data/x\"\nlocal_store = \"/d/s\"", `sequins.conf:1: source: "/d/s/data/x" is within the local store's "/d/s/data"`},
		"success file, a string":   {"source = \"/d\"\nrequire_success_file = \"true\"", `sequins.conf:2: require_success_file: must be true, false or "auto"`},
		"negative settle":          {"source = \"/d\"\nsettle = \"-1s\"", "sequins.conf:2: settle: must be at least 0s"},
		"no replication":           {"source = \"/d\"\n[sharding]\nreplication = 0", "sequins.conf:3: sharding.replication: must be at least 1, not 0"},
		"no minimum":               {"source = \"/d\"\n[sharding]\nmin_replication = 0", "sequins.conf:3: sharding.min_replication: must be at least 1, not 0"},
		"one port":                 {"source = \"/d\"\n[redis]\nbind = \"10.0.0.1:9599\"", "sequins.conf:3: redis.bind: \"10.0.0.1:9599\" has the port of bind, \"0.0.0.0:9599\""},
		"minimum over all":         {"source = \"/d\"\n[sharding]\nmin_replication = 3", "sequins.conf:3: sharding.min_replication: 3 is more than sharding.replication, 2"},
		"negative convergence":     {"source = \"/d\"\n[sharding]\ntime_to_converge = \"-1s\"", "sequins.conf:3: sharding.time_to_converge: must be at least 0s"},
		"no proxy timeout":         {"source = \"/d\"\n[sharding]\nproxy_timeout = 0", "sequins.conf:3: sharding.proxy_timeout: must be at least 1ns, not 0s"},
		"negative stage timeout":   {"source = \"/d\"\n[sharding]\nproxy_stage_timeout = \"-1s\"", "sequins.conf:3: sharding.proxy_stage_timeout: must be at least 0s"},
		"two zones":                {"source = \"/d\"\n[sharding]\nenabled = true\nzone = \"a\"\nzone_file = \"/z\"", "sequins.conf:5: sharding.zone_file: is set, and so is zone"},
		"zone of two lines":        {"source = \"/d\"\n[sharding]\nenabled = true\nzone = \"a\\nb\"", "sequins.conf:4: sharding.zone: is not one line of at most 255 bytes"},
		"slash in shard id":        {"source = \"/d\"\n[sharding]\nshard_id = \"a/b\"", "sequins.conf:3: sharding.shard_id: "},
		"at in host name":          {"source = \"/d\"\n[sharding]\nadvertised_hostname = \"a@b\"", "sequins.conf:3: sharding.advertised_hostname: "},
		"no servers":               {"source = \"s3://b\"\n[sharding]\nenabled = true\n[zk]\nservers = []", "sequins.conf:5: zk.servers: is empty"},
		"empty server":             {"source = \"/d\"\n[zk]\nservers = [\"\"]", "sequins.conf:3: zk.servers: \"\" is not an address"},
		"no session timeout":       {"source = \"/d\"\n[zk]\nsession_timeout = \"0s\"", "sequins.conf:3: zk.session_timeout: must be at least 1ms, not 0s"},
		"name of a db":             {"source = \"/d\"\n[db.\"a/b\"]", `sequins.conf:2: db."a/b": "a/b" cannot be the name of a database`},
		"reserved name":            {"source = \"/d\"\n[db.healthz]", `sequins.conf:2: db.healthz: "healthz" cannot be the name of a database`},
		"partitioner of a db":      {"source = \"/d\"\n[db.x]\npartitioner = \"x\"", `sequins.conf:3: db.x.partitioner: "x" is none of`},
		"content type of a db":     {"source = \"/d\"\n[db.x]\ncontent_type = \"\\t\"", "sequins.conf:3: db.x.content_type: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(test.doc)
			got := report(err)
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if strings.Contains(got, "\n") {
				t.Errorf("more than one problem:\n%s", got)
			}
		})
	}
}

func TestAllProblemsAtOnceInOrder(t *testing.T) {
	_, _, err := load(`refresh_period = "soon"
bind = "x"
nonsense = 1
[storage]
compression = "gzip"
block_size = -1
[zk]
servers = 1
[db.words]
partitioner = "rar"
`)
	want := strings.Join([]string{
		`sequins.conf: source: is not set: name the directory or URL where the data is, here or with --source`,
		`sequins.conf:1: refresh_period: "soon" is not a duration such as "10m" or "800us"`,
		`sequins.conf:2: bind: "x" is not an address of the form host:port`,
		`sequins.conf:3: nonsense: unknown key`,
		`sequins.conf:5: storage.compression: "gzip" is none of fsst, none, zstd, snappy`,
		`sequins.conf:6: storage.block_size: must be at least 256B, not -1B`,
		`sequins.conf:8: zk.servers: must be an array of strings`,
		`sequins.conf:10: db.words.partitioner: "rar" is none of auto, string, hadoop, spark, cascading, murmur3, murmur3-int, murmur3-long, kafka, hive, hive-int, hive-long, hive-murmur3, hive-murmur3-int, hive-murmur3-long`,
	}, "\n")
	if got := report(err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var first *Problem
	if !errors.As(err, &first) || first.Key != "source" {
		t.Errorf("no *Problem in %v", err)
	}
}

func TestLargeBlocksWarn(t *testing.T) {
	_, warnings, err := load("source = \"/d\"\n[storage]\nblock_size = 65536")
	want := "sequins.conf:3: storage.block_size: pages have at most 61440 bytes, and get them"
	if err != nil || len(warnings) != 1 || warnings[0].Error() != want {
		t.Errorf("error %v, warnings %v, want %q", err, warnings, want)
	}
}

// Configurations that look odd and are right.
func TestNoProblems(t *testing.T) {
	for _, doc := range []string{
		"source = \"/foo/bar\"\nlocal_store = \"/foo/barn\"",
		"source = \"/foo/bar\"\nlocal_store = \"/foo\\u00e9\"",
		"source = \"/d with space/%zz?\"",
		"source = \"file:///d\"",
		"source = \"s3://bucket\"",
		"source = \"hdfs://n1/x\"",
		"source = \"/d\"\nbind = \":0\"\n[debug]\nbind = \":0\"",
		"source = \"/d\"\nbind = \"[::1]:http\"",
		"source = \"/d\"\nversion_remove_timeout = \"0s\"",
		"source = \"/d\"\ndb.x.content_type = \"a/b\"",
		"source = \"/d\"\ndb = { x = { content_type = \"a/b\" } }",
		"source = \"/d\"\r\n[db.x]\r\n",
	} {
		if _, warnings, err := load(doc); err != nil || len(warnings) > 0 {
			t.Errorf("%q: error %v, warnings %v", doc, err, warnings)
		}
	}
}

func TestValidate(t *testing.T) {
	c := Default()
	c.Source, c.Bind = "/d", "x"
	if got, want := report(c.Validate()), `bind: "x" is not an address of the form host:port`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.Bind = ":1"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
