package config

// retired are keys and tables of older files that have no effect any more, with the reason. A file may
// set them to any value; Load returns a warning.
var retired = map[string]string{
	"s3.max_retries":           "is not used: a request is repeated three times, and a load that fails is tried again later",
	"sharding.max_replication": "is not used: a partition has as many replicas as replication says",
	"zk.connect_timeout":       "is not used: it is a tenth of session_timeout, and at least a second",
	"debug.expvars":            "is not used: the debug listener always has /debug/vars",
	"write_buffer_size":        "is not used: loads choose their buffers themselves",
	"goforit_flag_json_path":   "is not used: there are no feature flags; refresh with SIGHUP instead of refresh_period to decide when",
	"test":                     "is not used: there are no keys for tests",
}
