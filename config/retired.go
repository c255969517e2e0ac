package config

// retired are keys and tables of older files that have no effect any more, with the reason. A file may
// set them to any value; Load returns a warning.
var retired = map[string]string{
	"write_buffer_size":      "is not used: loads choose their buffers themselves",
	"goforit_flag_json_path": "is not used: there are no feature flags; refresh with SIGHUP instead of refresh_period to decide when",
	"test":                   "is not used: there are no keys for tests",
}
