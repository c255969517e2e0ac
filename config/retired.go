package config

// retired are the keys, and the tables, of older files that do nothing any more, each with the reason. A
// file that sets one is accepted, whatever the value, and Load warns.
var retired = map[string]string{
	"write_buffer_size":      "is not used: loads choose their buffers themselves",
	"goforit_flag_json_path": "is not used: there are no feature flags; refresh with SIGHUP instead of refresh_period to decide when",
	"test":                   "is not used: there are no keys for tests",
}
