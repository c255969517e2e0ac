package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const (
	variablePrefix = "SEQUINS_"
	// variableDB begins the variables of [db.<name>]: SEQUINS_DB__<name>__<KEY>.
	variableDB = variablePrefix + "DB__"
)

// Variable returns the variable of the environment that sets a key: SEQUINS_SHARDING_ZONE for sharding.zone, and
// SEQUINS_DB__words__PARTITIONER for db.words.partitioner.
func Variable(key string) string {
	if rest, ok := strings.CutPrefix(key, "db."); ok {
		if name, key, ok := strings.Cut(rest, "."); ok {
			return variableDB + name + "__" + shout(key)
		}
	}
	return variablePrefix + shout(key)
}

func shout(key string) string { return strings.ToUpper(strings.ReplaceAll(key, ".", "_")) }

// notKeys are variables that begin like those of keys: those of this program that set none, and those that Kubernetes sets for
// services whose names begin with sequins.
var notKeys = regexp.MustCompile(`^SEQUINS_(SERVER$|TOKEN$|TEST_|BENCH_|(.+_)?SERVICE_(HOST|PORT(_.*)?)$|(.+_)?PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?$)`)

// flagsOf returns the keys that variables of an environment set, and the variables that are like those of keys. Empty variables count as not
// set.
func flagsOf(environ []string) (set []Flag, unknown []string) {
	for _, v := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || !strings.HasPrefix(name, variablePrefix) {
			continue
		}
		if key, db := keyOf(name); key != "" {
			set = append(set, Flag{Name: name, Key: key, Value: value, db: db})
		} else if !notKeys.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	return set, unknown
}

// keyOf returns the key that a variable sets, and the database if it is of one; "" if there is no such key.
func keyOf(variable string) (key, db string) {
	rest, ofDB := strings.CutPrefix(variable, variableDB)
	if i := strings.LastIndex(rest, "__"); ofDB && i > 0 {
		db, variable = rest[:i], variableDB+"<name>"+rest[i:]
	}
	for _, k := range keys() {
		if variable == Variable(k.key) {
			return strings.Replace(k.key, "db.<name>", join("db", db), 1), db
		}
		if k.hasFile() && variable == Variable(k.key+fileSuffix) {
			return k.key + fileSuffix, ""
		}
	}
	return "", ""
}

// text is the value of a flag or of a variable, which was not written as one of TOML.
type text string

// as returns the value that a field can be set to, or the text if it is none.
func (t text) as(field any) any {
	switch field.(type) {
	case *[]string:
		return list(string(t))
	case *bool, *Require, *int, *float64, *map[string]string: // which are written as in a file
		var doc map[string]any
		if err := toml.Unmarshal(fmt.Appendf(nil, "value = %s", t), &doc); err == nil && len(doc) == 1 {
			return doc["value"]
		}
	}
	return string(t)
}

func list(s string) []any {
	var all []any
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
