//go:build integration

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/expect"
)

// set are the keys of sequins.conf that the chart sets itself, or has Secrets for. config refuses them.
var set = []string{
	"source", "local_store", "bind", "shutdown_delay", "debug.bind", "redis.bind", "auth.tokens_file",
	"tls.certificate", "tls.key", "tls.ca", "tls.client_ca",
	"sharding.enabled", "sharding.advertised_hostname", "sharding.shard_id", "sharding.zone", "sharding.secret",
	"zk.servers", "zk.auth", "zk.tls", "zk.tls_ca", "zk.tls_certificate", "zk.tls_key",
	"s3.access_key_id", "s3.secret_access_key",
	"azure.account_key", "azure.sas_token",
	"events.secret",
}

// TestSchemaOfConfig holds config of values.schema.json against the keys of sequins.conf.
func TestSchemaOfConfig(t *testing.T) {
	path := filepath.Join(Dir(), "values.schema.json")
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	var schema map[string]any
	expect.NoError(t, json.Unmarshal(text, &schema))
	refused := slices.Clone(set)
	properties := schema["properties"].(map[string]any)
	properties["config"] = table(reflect.TypeFor[config.Config](), "", &refused)
	if len(refused) > 0 {
		t.Errorf("the chart sets %v, which are no keys", refused)
	}
	sharding := properties["config"].(schemaOf)["properties"].(schemaOf)["sharding"].(schemaOf)["properties"].(schemaOf)
	for _, name := range []string{"min_nodes", "min_replication"} { // empty means a number that depends on other values
		sharding[name] = schemaOf{"type": []string{"integer", "null"}}
	}
	compare(t, path, string(indented(t, schema)))
}

type schemaOf map[string]any

// table is the schema of a table of sequins.conf. It removes the keys that it leaves out from refused.
func table(typ reflect.Type, path string, refused *[]string) schemaOf {
	properties := schemaOf{}
	for f := range typ.Fields() {
		name := f.Tag.Get("toml")
		if name == "-" {
			continue
		}
		key := strings.TrimPrefix(path+"."+name, ".")
		if i := slices.Index(*refused, key); i >= 0 {
			*refused = slices.Delete(*refused, i, i+1)
			continue
		}
		if f.Tag.Get("secret") == "yes" && key != "events.webhook" { // which a variable can stand in for
			panic(key + " is secret, and the chart has no Secret for it")
		}
		properties[name] = value(f.Type, key, strings.Fields(f.Tag.Get("oneof")), refused)
	}
	return schemaOf{"type": "object", "additionalProperties": false, "properties": properties}
}

// value is the schema of a value, which is one of words unless there are none.
func value(typ reflect.Type, key string, words []string, refused *[]string) schemaOf {
	switch typ {
	case reflect.TypeFor[time.Duration]():
		return schemaOf{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`, "description": "Duration such as 10m or 800us."}
	case reflect.TypeFor[config.Size]():
		return schemaOf{"type": []string{"integer", "string"}, "minimum": 0, "pattern": "^[0-9]+ ?([KMGT]i?B|B)?$", "description": "Bytes, or a size such as 256MiB."}
	case reflect.TypeFor[config.Rate]():
		return schemaOf{"type": []string{"integer", "string"}, "minimum": 0, "pattern": "^[0-9]+ ?([KMGT]i?B|B)?(/s)?$", "description": "MiB/s, or a rate such as 50MiB/s."}
	case reflect.TypeFor[config.Require]():
		return schemaOf{"enum": []any{true, false, "auto"}}
	}
	switch typ.Kind() {
	case reflect.Bool:
		return schemaOf{"type": "boolean"}
	case reflect.Int:
		return schemaOf{"type": "integer"}
	case reflect.Float64:
		return schemaOf{"type": "number"}
	case reflect.String:
		if len(words) > 0 {
			return schemaOf{"enum": words}
		}
		return schemaOf{"type": "string"}
	case reflect.Slice:
		return schemaOf{"type": "array", "items": value(typ.Elem(), key, words, refused)}
	case reflect.Map:
		return schemaOf{"type": "object", "additionalProperties": value(typ.Elem(), key+".<name>", words, refused)}
	case reflect.Struct:
		return table(typ, key, refused)
	}
	panic(fmt.Sprintf("%s is a %s", key, typ))
}

// indented is JSON as a person would write it.
func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	expect.NoError(t, e.Encode(v))
	return []byte(b.String())
}
