package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"sequins/internal/nearest"
)

// keys returns every key in the order of the struct, without retired ones. Keys of a database are named db.<name>.content_type and so on.
var keys = sync.OnceValue(func() []field {
	all := slices.DeleteFunc(fieldsOf("", reflect.ValueOf(Config{})), func(f field) bool { return f.key == "db" })
	return append(all, fieldsOf("db.<name>", reflect.ValueOf(DB{}))...)
})

var byName = sync.OnceValue(func() map[string]field {
	all := make(map[string]field)
	for _, k := range keys() {
		all[k.key] = k
	}
	return all
})

// nearestKey returns the known key or table that an unknown key probably stands for. A key of the same name in another table comes first:
// keys are often put into the wrong table. Then it is a key or table with a similar name. It returns "" if there is none.
func nearestKey(key string) string {
	if parts := strings.SplitN(key, ".", 3); parts[0] == "db" && len(parts) == 3 {
		key = "db.<name>." + parts[2]
	}
	for _, known := range keysAndTables() {
		if lastPart(known) == lastPart(key) {
			return known
		}
	}
	return nearest.Of(key, keysAndTables())
}

// keysAndTables returns the names of all keys, of the tables that they are in, and of the keys of files.
var keysAndTables = sync.OnceValue(func() (names []string) {
	for _, key := range keys() {
		for i, c := range key.key {
			if table := key.key[:i]; c == '.' && !slices.Contains(names, table) {
				names = append(names, table)
			}
		}
		names = append(names, key.key)
		if key.hasFile() {
			names = append(names, key.key+fileSuffix)
		}
	}
	return names
})

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

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
